"""SP201 to SP206: the entry points that packages declare."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Location
from sglang_plug.checks.world import KINDS, Entry, World, close, find
from sglang_plug.core import entrypoints as groups

if TYPE_CHECKING:
    from collections.abc import Iterator

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
_ODD = {"bom": "save the file as UTF-8 without a mark", "sectionless": "begin the file with a section: [sglang.srt.plugins]"}
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
                hint=f"reinstall the package that left it, or delete {problem['path']}" if nameless else _ODD[problem["kind"]],
                location=Location(problem["path"], problem["line"]),
            )


def malformed_value(world: World) -> Iterator[Finding]:
    """SP203: told before the value is loaded, because the host's own message is about None."""
    for entry in world.entries:
        why, better = judge_value(entry.value, "activate" if entry.kind == "platform" else "register")
        if why is not None and better and entry.error("load") and "." in entry.value and ":" not in entry.value:
            better = ":".join(entry.value.strip().rsplit(".", 1))  # the module is not there: its last part may be the function
        if why is None and not entry.name:
            why, better = "it has no name in front of the '='", None
        if why is not None:
            name = entry.name.strip("'\"")
            yield find(
                "SP203",
                entry.subject(),
                f"{entry.kind} {entry.name} = {entry.value!r} of {entry.dist}: {why}",
                cause="importlib.metadata then fails with an AttributeError on None" if _VALUE.match(entry.value) is None else None,
                hint=f'write {name} = "{better}" in pyproject.toml, which gives {name} = {better} in entry_points.txt'
                if better
                else 'write NAME = "package.module:function"',
                location=_line(entry),
            )


def judge_value(value: str, default: str = "activate") -> tuple[str | None, str | None]:
    """Return what is wrong with an entry point's value, and what may be meant; (None, None) where nothing is."""
    match = _VALUE.match(value)
    if match is not None and match["attr"]:
        return None, None
    if match is not None:
        return "it names a module and no function in it", f"{match['module']}:{default}" if match["module"] else None
    module, _, attribute = value.partition(":")
    if not value.strip():
        return "the value is empty", None
    if "/" in module or module.endswith(".py"):
        why = f"{module!r} is a file, not a module"
        better = re.sub(r"(/__init__)?\.py$", "", module).strip("/").replace("/", ".")
    elif "-" in module:
        why, better = f"{module!r} is no module name: it has a dash", module.replace("-", "_")
    else:
        why, better = f"{value!r} is not of the form module:attribute", re.sub(r"[^\w.]", "", module)
    name = "".join(re.findall(r"[\w.]+", attribute)[:1]) or default
    meant = f"{better}:{name}"
    return why, meant if _VALUE.match(meant) else None


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
            hint=f"uninstall one: pip uninstall {same[0].dist}"
            if same[0].row["where"] != same[-1].row["where"]
            else f"keep one of the lines in the source of {same[0].dist}, and reinstall it",
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


def _line(entry: Entry) -> Location | None:
    return Location(os.path.join(entry.row["where"], "entry_points.txt"), entry.row.get("line"))


RULES = (broken_entry_points, odd_entry_points, malformed_value, unread_group, duplicate_name, reserved_name)
