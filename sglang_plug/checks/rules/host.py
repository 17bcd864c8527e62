"""SP0xx: the interpreter and the SGLang that is, or is not, installed there."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.world import World, cause_of, find, names
from sglang_plug.core.policy import policy
from sglang_plug.errors import CatalogueError
from sglang_plug.probe.decision import numbers
from sglang_plug.probe.environment import interpreter_of, prefix_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

#: Group -> the first release that reads it.
SINCE = {
    "sglang.srt.platforms": "0.5.11",
    "sglang.srt.plugins": "0.5.11",
    "sglang.serve_backends": "0.5.18",
    "sglang.multimodal_gen.platforms": "0.5.21",
    "sglang.multimodal_gen.plugins": "0.5.21",
}


def no_sglang(world: World) -> Iterator[Finding]:
    """SP001: nothing to compare with; the stand-in answers."""
    if not world.real and world.facts["sglang"]["kind"] != "directory":
        python = world.facts["interpreter"]["executable"]
        version = world.rehearsal.get("sglang", {}).get("version") or world.release
        half = " (its metadata is there, its code is not)" if world.facts["sglang"]["metadata"] else ""
        yield find(
            "SP001",
            {"kind": "host", "name": "sglang"},
            f"SGLang is not installed in {python}{half}; plugins were tried on the stand-in, {version}",
            hint="to examine another environment: sglang-plug doctor --python /path/to/python",
        )


def sglang_does_not_import(world: World) -> Iterator[Finding]:
    """SP002: the import of SGLang's own modules fails with a built-in platform too."""
    for record in world.rehearsal.get("imports", ()):
        if "error" in record and not record.get("plugin"):
            yield find(
                "SP002",
                {"kind": "host", "name": record["module"]},
                f"`import {record['module']}` fails, without any plugin at work",
                cause=cause_of(record["error"]),
                hint=f"{world.environment.python} -c 'import {record['module']}' shows it; reinstall SGLang or what it misses",
                traceback=record["error"]["traceback"],
            )
    ended = world.rehearsal.get("ended")
    if ended and ended.get("kind") != "ok":
        yield find(
            "SP002",
            {"kind": "host", "name": "sglang"},
            f"the host's dry run ended before its time ({ended_words(ended)})",
            cause=(world.rehearsal.get("output") or {}).get("head", "")[-1500:] or None,
            hint=f"{world.environment.python} -c 'import sglang' may show why",
        )


def ended_words(ended: Mapping[str, object]) -> str:
    """Return how a process ended, in words."""
    kind = ended["kind"]
    if kind == "timeout":
        return f"no answer in {ended['seconds']:g} s"
    if kind == "signal":
        return f"killed by {ended['name']}"
    if kind == "broken":
        return str(ended["error"])
    return f"exit status {ended['code']}" if kind == "exit" else str(kind)


def sglang_is_a_folder(world: World) -> Iterator[Finding]:
    """SP003: Python imports a bare folder as a namespace package."""
    sglang = world.facts["sglang"]
    if sglang["kind"] == "directory":
        yield find(
            "SP003",
            {"kind": "host", "name": "sglang"},
            f"the folder {sglang['origin']} is called sglang and holds no SGLang: `import sglang` takes it for the package",
            hint=f"start from another folder, or rename {sglang['origin']}; it is on sys.path",
        )


def other_sglang_command(world: World) -> Iterator[Finding]:
    """SP004: what is examined is not what `sglang serve` would use."""
    command = shutil.which("sglang", path=world.environment.env.get("PATH"))
    if command is None:
        return
    theirs = interpreter_of(command)
    ours = world.facts["interpreter"]["prefix"]
    if theirs is None or os.path.realpath(prefix_of(theirs)) == os.path.realpath(ours):
        return
    if os.path.realpath(theirs) == os.path.realpath(world.facts["interpreter"]["executable"]) and prefix_of(theirs) == ours:
        return
    yield find(
        "SP004",
        {"kind": "host", "name": "sglang", "value": command},
        f"the sglang command on PATH ({command}) runs {theirs}, but {world.facts['interpreter']['executable']} was examined: "
        "its plugins may be others",
        hint=f"sglang-plug doctor --python {theirs}",
        level=Level.INFO if world.explicit_python else None,
    )


def no_plugin_system(world: World) -> Iterator[Finding]:
    """SP005: the installed release came before the plugins' group."""
    version = world.facts["sglang"]["version"]
    if not version or numbers(version) < (0, 1):  # nothing is concluded from a placeholder
        return
    for entry in world.entries:
        since = SINCE[entry.group]
        if numbers(version) < numbers(since):
            yield find(
                "SP005",
                entry.subject(),
                f"SGLang {version} does not read {entry.group}: {entry.label} is ignored",
                cause=f"the group exists since {since}",
                hint=f'pip install "sglang>={since}"',
            )


def unknown_release(world: World) -> Iterator[Finding]:
    """SP006: rules that need release data are silent."""
    if not world.real or world.assumed:
        return
    try:
        policy("srt", world.release)
        known = world.catalogue is not None
    except CatalogueError:
        known = False
    if not known:
        yield find(
            "SP006",
            {"kind": "host", "name": "sglang", "version": world.release},
            f"SGLang {world.release} is not in the catalogue; what depends on the release was not checked",
            hint=f"sglang-plug contract build {world.release}",
        )


def frozen(world: World) -> Iterator[Finding]:
    """SP009: PyInstaller and its like leave metadata out unless they are told to take it."""
    interpreter = world.facts["interpreter"]
    if interpreter.get("frozen"):
        yield find(
            "SP009",
            {"kind": "host", "name": "interpreter"},
            f"{interpreter['executable']} is a frozen application: it sees those plugins alone whose metadata was copied into it",
            hint="build it with the plugins' metadata: pyinstaller --copy-metadata DISTRIBUTION",
        )


def launch_differs(world: World) -> Iterator[Finding]:
    """SP007: `python -m` puts the working directory first on sys.path."""
    yield from _shadows(world)
    other = world.module_facts
    if other is None:
        return
    here, there = _rows(world.facts), _rows(other)
    if here != there:
        yield find(
            "SP007",
            {"kind": "host", "name": "launch", "value": world.environment.cwd},
            f"`python -m …` started in {world.environment.cwd} sees other plugins than the sglang command: {_difference(here, there)}",
            cause=f"metadata in {world.environment.cwd} comes first on sys.path there",
            hint="delete the stale *.egg-info folder there, or reinstall the package",
        )


def _shadows(world: World) -> Iterator[Finding]:
    """Yield SP007 for modules in the working directory that `python -m` would import in place of installed ones."""
    cwd = world.environment.cwd
    if world.environment.launch != "script" or os.path.realpath(cwd) in {
        os.path.realpath(part) for part in world.facts["interpreter"]["path"]
    }:
        return
    known = {entry.module.partition(".")[0]: entry for entry in world.entries if entry.runtime in world.runtimes and entry.report}
    for top, entry in known.items():
        theirs = entry.report.get("module_file")
        for mine in (os.path.join(cwd, top, "__init__.py"), os.path.join(cwd, f"{top}.py")):
            if theirs and os.path.isfile(mine) and os.path.realpath(mine) != os.path.realpath(theirs):
                yield find(
                    "SP007",
                    entry.subject(),
                    f"`python -m …` started in {cwd} imports {mine} for {entry.label}, and the sglang command imports {theirs}",
                    cause="python -m puts the working directory first on sys.path",
                    hint="start from another folder, or: python -P -m …",
                    location=Location(mine),
                )


def _rows(facts: object) -> set[tuple[str, str, str]]:
    return {(row["group"], row["name"], str(row["version"])) for row in facts["entry_points"]}  # type: ignore[index]


def _difference(here: set[tuple[str, str, str]], there: set[tuple[str, str, str]]) -> str:
    only_here = sorted(name for _, name, _ in here - there)
    only_there = sorted(name for _, name, _ in there - here)
    parts = [f"only the command sees {names(only_here)}"] if only_here else []
    parts += [f"only python -m sees {names(only_there)}"] if only_there else []
    return "; ".join(parts)


RULES = (
    no_sglang,
    sglang_does_not_import,
    sglang_is_a_folder,
    other_sglang_command,
    no_plugin_system,
    unknown_release,
    frozen,
    launch_differs,
)
