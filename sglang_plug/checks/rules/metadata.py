"""SP2xx: what the packages' metadata says, and whether the files agree."""

from __future__ import annotations

import os
import re
import tomllib
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.world import KINDS, Entry, World, close, find, names
from sglang_plug.core import entrypoints as groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

#: Group names from early drafts, from SGLang's own messages, and from habit -> the group that is read.
OLD_GROUPS = {
    "sglang.platform_plugins": groups.SRT_PLATFORMS,
    "sglang.platforms": groups.SRT_PLATFORMS,
    "sglang.platform": groups.SRT_PLATFORMS,
    "sglang.srt.platform": groups.SRT_PLATFORMS,
    "sglang.srt.platform_plugins": groups.SRT_PLATFORMS,
    "sglang.hardware_plugins": groups.SRT_PLATFORMS,
    "sglang.plugins": groups.SRT_PLUGINS,
    "sglang.plugin": groups.SRT_PLUGINS,
    "sglang.general_plugins": groups.SRT_PLUGINS,
    "sglang.srt.plugin": groups.SRT_PLUGINS,
    "sglang.srt.general_plugins": groups.SRT_PLUGINS,
    "sglang.hooks": groups.SRT_PLUGINS,
    "sglang.diffusion.platforms": groups.DIFFUSION_PLATFORMS,
    "sglang.multimodal_gen.platform": groups.DIFFUSION_PLATFORMS,
    "sglang.diffusion.plugins": groups.DIFFUSION_PLUGINS,
    "sglang.multimodal_gen.plugin": groups.DIFFUSION_PLUGINS,
    "sglang.backends": groups.SERVE_BACKENDS,
    "sglang.serve_backend": groups.SERVE_BACKENDS,
    "sglang.serve.backends": groups.SERVE_BACKENDS,
}
_VALUE = re.compile(r"(?P<module>[\w.]+)\s*(:\s*(?P<attr>[\w.]+)\s*)?((?P<extras>\[.*\])\s*)?$")  # as importlib.metadata reads it
_BACKENDS = ("llm", "diffusion", "auto")


def broken_entry_points(world: World) -> Iterator[Finding]:
    """SP201: one such file fails `entry_points()` for the whole environment."""
    for problem in world.facts["problems"]:
        if problem["fatal"]:
            dist = problem["dist"] or problem["path"]
            yield find(
                "SP201",
                {"kind": "dist", "name": str(dist)},
                f"{dist}: {problem['path']}:{problem['line']} {problem['why']}, so importlib.metadata.entry_points() raises for every "
                "package: even `import sglang` fails",
                cause=f"the line is {problem['text'].strip()!r}",
                hint=f"correct that line, or reinstall {dist}",
                location=Location(problem["path"], problem["line"]),
            )


def odd_entry_points(world: World) -> Iterator[Finding]:
    """SP202: lines that the host passes over in silence."""
    for problem in world.facts["problems"]:
        if not problem["fatal"]:
            dist = problem["dist"] or problem["path"]
            nameless = problem["kind"] == "nameless"
            yield find(
                "SP202",
                {"kind": "dist", "name": str(dist)},
                f"{problem['path']} has metadata without a name"
                if nameless
                else f"{dist}: {problem['path']}:{problem['line']} {problem['why']}",
                cause=problem["why"] if nameless else f"the line is {problem['text'].strip()!r}",
                hint=f"reinstall the package that left it, or delete {problem['path']}"
                if nameless
                else "save the file as UTF-8 without a mark",
                location=Location(problem["path"], problem["line"]),
            )


def malformed_value(world: World) -> Iterator[Finding]:
    """SP203: told before the value is loaded, because the host's own message is about None."""
    for entry in world.entries:
        why, better = judge_value(entry.value)
        if why is not None:
            yield find(
                "SP203",
                entry.subject(),
                f"{entry.kind} {entry.name} = {entry.value!r} of {entry.dist}: {why}",
                cause="importlib.metadata then fails with an AttributeError on None" if _VALUE.match(entry.value) is None else None,
                hint=f'write {entry.name} = "{better}"' if better else 'write NAME = "package.module:function"',
                location=_line(entry),
            )


def judge_value(value: str) -> tuple[str | None, str | None]:
    """Return what is wrong with an entry point's value, and what may be meant; (None, None) where nothing is."""
    match = _VALUE.match(value)
    if match is not None and match["attr"]:
        return None, None
    if match is not None:
        return "it names a module and no function in it", f"{match['module']}:activate" if match["module"] else None
    module, _, attribute = value.partition(":")
    if not value.strip():
        return "the value is empty", None
    if "/" in module or module.endswith(".py"):
        better = re.sub(r"(/__init__)?\.py$", "", module).strip("/").replace("/", ".")
        return f"{module!r} is a file, not a module", f"{better}:{attribute or 'register'}"
    if "-" in module:
        return f"{module!r} is no module name: it has a dash", f"{module.replace('-', '_')}:{attribute or 'register'}"
    better = re.sub(r"[^\w.:]", "", value)
    return f"{value!r} is not of the form module:attribute", better if _VALUE.match(better) and ":" in better else None


def unread_group(world: World) -> Iterator[Finding]:
    """SP204: a group that resembles one of SGLang's."""
    for entry in world.others:
        meant = OLD_GROUPS.get(entry.group.lower().replace("-", "_")) or _resembles(entry.group)
        if meant is not None:
            yield find(
                "SP204",
                entry.subject(),
                f"{entry.dist} declares '{entry.name}' in the group {entry.group!r}, which SGLang does not read: it reads {meant!r}",
                hint=f'[project.entry-points."{meant}"], then reinstall {entry.dist}',
                location=_line(entry),
            )


def _resembles(group: str) -> str | None:
    exact = {_plain(known): known for known in KINDS}
    return exact.get(_plain(group)) or close(group, tuple(KINDS), cutoff=0.88)


def _plain(group: str) -> str:
    return re.sub(r"[-_.:/]+", ".", group).lower()


def duplicate_name(world: World) -> Iterator[Finding]:
    """SP205: SRT keeps the last one in an order that nobody set; diffusion aborts."""
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in world.entries:
        found[entry.group, entry.name].append(entry)
    for (group, name), same in found.items():
        if len(same) < 2:
            continue
        owners = " and ".join(f"{entry.dist} ({entry.value})" for entry in same)
        runtime, kind = KINDS[group]
        if runtime == "srt" and kind != "serve backend":
            result = (
                f"SRT keeps the last one found, here that of {same[-1].dist}; the order follows sys.path and the directory, not a setting"
            )
        else:
            result = "startup aborts" if kind != "serve backend" else "`sglang serve --model-type` refuses to choose"
        yield find(
            "SP205",
            same[-1].subject(),
            f"the {kind} name '{name}' is taken by {owners}: {result}",
            hint=f"uninstall one: pip uninstall {same[0].dist}",
        )


def reserved_name(world: World) -> Iterator[Finding]:
    """SP206: names of built-in platforms and backends."""
    for entry in world.entries:
        if entry.kind == "platform" and entry.runtime == "diffusion":
            decision = world.decisions.get("diffusion")
            if decision is not None and entry.name.lower() in decision.policy.reserved:
                yield find(
                    "SP206",
                    entry.subject(),
                    f"the diffusion platform of {entry.dist} is called '{entry.name}', the name of a built-in one: automatic selection "
                    "aborts, and the selector always means the built-in one",
                    hint=f"rename the entry point, for example to {re.sub(r'[^a-z0-9]+', '_', entry.dist.lower())}",
                    location=_line(entry),
                )
        elif entry.kind == "serve backend" and entry.name in _BACKENDS:
            yield find(
                "SP206",
                entry.subject(),
                f"the serve backend of {entry.dist} is called '{entry.name}', which SGLang keeps for itself: every `sglang serve` fails",
                hint="rename the entry point",
                location=_line(entry),
            )


def hidden_metadata(world: World) -> Iterator[Finding]:
    """SP207: of two metadata folders with one name, the first on sys.path is read."""
    versions = {row["where"]: (row["name"], row["version"]) for row in world.facts["distributions"]}
    entries: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    for row in world.facts["entry_points"]:
        entries[row["where"]].add((row["group"], row["name"], row["value"]))
    for hidden in world.facts["shadowed"]:
        winner, version = versions.get(hidden["by"], (hidden["name"], _version_of(hidden["by"])))
        mine = {(row["group"], row["name"], row["value"]) for row in hidden["entries"]}
        theirs = entries[hidden["by"]]
        if mine == theirs and hidden["version"] == version:
            continue
        lost = sorted(f"{name} ({group})" for group, name, _ in mine - theirs)
        gained = sorted(f"{name} ({group})" for group, name, _ in theirs - mine)
        told = [f"entry points not seen: {', '.join(lost)}"] if lost else []
        told += [f"entry points only of the older folder: {', '.join(gained)}"] if gained else []
        yield find(
            "SP207",
            {"kind": "dist", "name": str(winner), "version": str(version)},
            f"{winner} has two metadata folders: {version} in {hidden['by']} comes first on sys.path and hides {hidden['version']} in "
            f"{hidden['where']}" + (f"; {'; '.join(told)}" if told else ""),
            cause=f"{winner} and {hidden['name']} are one name for Python" if winner != hidden["name"] else None,
            hint=f"delete {hidden['by']}, or reinstall {winner}",
            level=None if mine != theirs else Level.WARNING,
        )


def _version_of(where: str) -> str:
    match = re.search(r"-([^-]+)\.dist-info$", where)
    return match[1] if match else "another version"


def shadowed_module(world: World) -> Iterator[Finding]:
    """SP209: the import takes another folder than the distribution's own."""
    for entry in world.entries:
        loaded = entry.report.get("module_file")
        own = _own_module(world, entry)
        if not loaded or not own or os.path.realpath(loaded) == os.path.realpath(own):
            continue
        if os.path.realpath(os.path.dirname(loaded)) == os.path.realpath(os.path.dirname(own)) and not own.endswith("__init__.py"):
            continue
        yield find(
            "SP209",
            entry.subject(),
            f"{entry.label} was imported from {loaded}, not from its distribution's {own}",
            cause=f"{os.path.dirname(os.path.dirname(loaded))} comes earlier on sys.path",
            hint=f"start from another folder, or rename {loaded}",
            location=Location(loaded),
            level=None if entry.failed else Level.WARNING,
        )


def _own_module(world: World, entry: Entry) -> str | None:
    """Return the file that the distribution itself has for the entry point's top module, or None where it has none there."""
    details = _details(world, entry)
    if details.get("editable"):
        return None
    top = entry.module.partition(".")[0]
    folder = os.path.dirname(entry.row["where"])
    for candidate in (os.path.join(folder, top, "__init__.py"), os.path.join(folder, f"{top}.py")):
        if os.path.isfile(candidate):
            return candidate
    return None


def _details(world: World, entry: Entry) -> Mapping[str, Any]:
    return next((row for row in world.facts["distributions"] if row["where"] == entry.row["where"]), {})


def editable(world: World) -> Iterator[Finding]:
    """SP210, SP211: an editable install links the code, not the metadata."""
    for dist in world.facts["distributions"]:
        if not dist.get("editable") or not str(dist.get("url", "")).startswith("file:"):
            continue
        folder = unquote(urlparse(dist["url"]).path)
        subject = {"kind": "dist", "name": str(dist["name"]), "version": str(dist["version"])}
        if not os.path.isdir(folder):
            yield find(
                "SP211",
                subject,
                f"{dist['name']} is installed editable from {folder}, which is not there",
                hint=f"pip uninstall {dist['name']}, or reinstall it from where its source is now",
            )
            continue
        declared = declared_entry_points(folder)
        if declared is None:
            continue
        installed = {
            (r["group"], r["name"], r["value"]) for r in world.facts["entry_points"] if r["where"] == dist["where"] and r["group"] in KINDS
        }
        ours = {row for row in declared if row[0] in KINDS}
        if ours != installed:
            new = sorted(f"{name} = {value}" for _, name, value in ours - installed)
            old = sorted(f"{name} = {value}" for _, name, value in installed - ours)
            yield find(
                "SP210",
                subject,
                f"{dist['name']} is installed editable, and its metadata is older than {folder}: "
                + "; ".join([f"the source declares {names(new)}"] * bool(new) + [f"the metadata has {names(old)}"] * bool(old)),
                hint=f"pip install -e {folder}",
                location=Location(os.path.join(folder, "pyproject.toml")),
            )


def declared_entry_points(folder: str) -> set[tuple[str, str, str]] | None:
    """Return (group, name, value) of what a source folder's pyproject.toml or setup.cfg declares; None where neither tells."""
    try:
        with open(os.path.join(folder, "pyproject.toml"), "rb") as file:
            project = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        project = {}
    if "entry-points" in project.get("project", {}).get("dynamic", []):
        return None
    tables = project.get("project", {}).get("entry-points") or project.get("tool", {}).get("poetry", {}).get("plugins")
    if isinstance(tables, dict):
        return {(group, name, str(value)) for group, rows in tables.items() if isinstance(rows, dict) for name, value in rows.items()}
    found = _from_setup_cfg(os.path.join(folder, "setup.cfg"))
    if found is not None:
        return found
    return set() if "project" in project and not os.path.exists(os.path.join(folder, "setup.py")) else None


def _from_setup_cfg(path: str) -> set[tuple[str, str, str]] | None:
    import configparser

    parser = configparser.ConfigParser()
    try:
        if not parser.read(path, encoding="utf-8") or not parser.has_section("options.entry_points"):
            return None
        rows = [(group, line) for group, text in parser.items("options.entry_points") for line in text.splitlines() if "=" in line]
    except (configparser.Error, UnicodeDecodeError):
        return None
    return {(group, line.split("=", 1)[0].strip(), line.split("=", 1)[1].strip()) for group, line in rows}


def files_missing(world: World) -> Iterator[Finding]:
    """SP212: RECORD lists modules that are not there."""
    for dist in world.facts["distributions"]:
        missing = dist.get("missing") or []
        if missing:
            yield find(
                "SP212",
                {"kind": "dist", "name": str(dist["name"]), "version": str(dist["version"])},
                f"{dist['name']} records {len(missing)} module file{'s' * (len(missing) > 1)} that {'are' if len(missing) > 1 else 'is'} "
                f"not there: {', '.join(missing[:3])}",
                hint=f"pip install --force-reinstall --no-deps {dist['name']}",
            )


def startup_code(world: World) -> Iterator[Finding]:
    """SP213: a .pth line that runs in every Python process of the environment."""
    for dist in world.facts["distributions"]:
        for file in dist.get("pth") or []:
            code = [line for line in file["code"] if not line.startswith("import __editable__")]
            if code:
                yield find(
                    "SP213",
                    {"kind": "dist", "name": str(dist["name"]), "version": str(dist["version"])},
                    f"{dist['name']} runs code at the start of every Python process: {file['path']}",
                    cause=f"its line is {code[0]!r}",
                    hint=f"neither SGLANG_PLUGINS nor SGLANG_PLATFORM controls it; to be rid of it: pip uninstall {dist['name']}",
                    location=Location(file["path"]),
                )


def requires_other_sglang(world: World) -> Iterator[Finding]:
    """SP214: what the package declares, against what is installed."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.version import InvalidVersion

    for dist in world.facts["distributions"]:
        for text in dist.get("requires") or []:
            try:
                requirement = Requirement(text)
                have = _installed(world, dist, requirement.name.lower())
                if have is None or (requirement.marker is not None and not requirement.marker.evaluate({"extra": ""})):
                    continue
                fits = requirement.specifier.contains(have, prereleases=True)
            except (InvalidRequirement, InvalidVersion):
                continue
            placeholder = have.startswith("0.0.0")
            if not fits:
                yield find(
                    "SP214",
                    {"kind": "dist", "name": str(dist["name"]), "version": str(dist["version"])},
                    f"{dist['name']} requires {text!r}, and {requirement.name} {have} is installed"
                    + (" (a placeholder version, which proves nothing)" if placeholder else ": pip would replace it"),
                    hint=f"pip install --no-deps {dist['name']} keeps what is there; ask its author for a wider range",
                    level=Level.INFO if placeholder else Level.ERROR if requirement.name.lower() == "sglang" else None,
                )


def _installed(world: World, dist: Mapping[str, Any], name: str) -> str | None:
    if name == "sglang":
        return world.facts["sglang"]["version"]  # type: ignore[no-any-return]
    return (
        (dist.get("installed") or {}).get(name) if name in {"torch", "torchvision", "torchaudio", "numpy", "triton", "sgl-kernel"} else None
    )


def no_version(world: World) -> Iterator[Finding]:
    """SP215: nothing can be pinned or compared."""
    for dist in world.facts["distributions"]:
        if str(dist["version"]) in {"0.0.0", "0", "None", "0.0"} or str(dist["version"]).startswith("0.0.0"):
            yield find(
                "SP215",
                {"kind": "dist", "name": str(dist["name"]), "version": str(dist["version"])},
                f"{dist['name']} has the version {dist['version']}, which says nothing about what is installed",
                hint="give the package a version that rises with each release",
            )


def _line(entry: Entry) -> Location | None:
    return Location(os.path.join(entry.row["where"], "entry_points.txt"), entry.row.get("line"))


RULES = (
    broken_entry_points,
    odd_entry_points,
    malformed_value,
    unread_group,
    duplicate_name,
    reserved_name,
    hidden_metadata,
    shadowed_module,
    editable,
    files_missing,
    startup_code,
    requires_other_sglang,
    no_version,
)
