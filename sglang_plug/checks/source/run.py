"""`check`: every source rule over every asked release, the answers merged into one finding a defect with the releases that have it."""

from __future__ import annotations

import ast
import gc
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Finding, Level
from sglang_plug.checks.source.activation import judge_activation
from sglang_plug.checks.source.belongings import missing_own
from sglang_plug.checks.source.declarations import judge_declarations, unread_groups
from sglang_plug.checks.source.fitting import judge_hook
from sglang_plug.checks.source.imports import missing_attributes, missing_imports
from sglang_plug.checks.source.patches import lost_patches
from sglang_plug.checks.source.platforms import judge_platforms
from sglang_plug.checks.source.plugin import Plugin
from sglang_plug.checks.source.project import read_project
from sglang_plug.checks.source.registrations import registrations
from sglang_plug.checks.source.scripts import judge_scripts
from sglang_plug.checks.source.startup import judge_startup
from sglang_plug.checks.source.targets import judge_target
from sglang_plug.checks.table import rule
from sglang_plug.contract import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sglang_plug.checks.source.project import Project
    from sglang_plug.contract.catalogue import Release

_IGNORE = re.compile(rb"#\s*sglang-plug:\s*ignore(?:\[([^\]]*)\])?")
_IGNORE_FILE = re.compile(rb"^\s*#\s*sglang-plug:\s*ignore-file(?:\[([^\]]*)\])?", re.MULTILINE)


@dataclass(frozen=True)
class CheckReport:
    """What `check` found. Has the face that the renderers of findings ask for.

    Attributes:
        host: what was checked, against what, as plain values.
        releases: the releases, oldest first.
        findings: most severe first; `data["releases"]` names those that have it, and is absent for what no release matters to.
        entry_points: one row for each declared entry point.
        hooks: how many hooks were read, and how many targets could not be.
    """

    host: dict[str, Any]
    releases: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    entry_points: list[dict[str, Any]] = field(default_factory=list)
    hooks: dict[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> dict[str, int]:
        """How many findings of each level, and how many files and hooks were read."""
        counts = {level.value: sum(finding.level is level for finding in self.findings) for level in Level}
        return {**counts, "files": int(self.host["files"]), "entry_points": len(self.entry_points), **self.hooks}

    def failed(self, *, strict: bool = False) -> bool:
        """True where there are errors; with `strict` warnings count too."""
        return any(finding.level is Level.ERROR or (strict and finding.level is Level.WARNING) for finding in self.findings)

    def verdict(self, release: str) -> Level | None:
        """The worst level on one release, or None where it is clean."""
        levels = [finding.level for finding in self.findings if release in finding.data.get("releases", self.releases)]
        return min(levels, key=lambda level: level.rank, default=None)


def check(
    path: Path, releases: Iterable[str], *, runtimes: tuple[str, ...] = ("srt", "diffusion"), project: Project | None = None
) -> CheckReport:
    """Check the plugin at a path against releases. Reads source and metadata; imports and runs nothing of either side.

    Args:
        path: the plugin's folder, an unpacked wheel, or one file.
        releases: versions of the catalogue, oldest first.
        runtimes: leave out findings about the other one.
        project: what `read_project` returned for the path, where it has been read.

    Raises:
        UsageError: there is nothing to check.
        CatalogueError: a release is not known.
    """
    project = project or read_project(path)
    with _collector_paused():
        return _check(path, project, tuple(releases), runtimes)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Syntax trees hold no circles worth finding, and the collector walks all of them again and again: half of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.freeze()  # what was made meanwhile counts as old now, and is not walked at the next allocation
            gc.unfreeze()
            gc.enable()


def _check(path: Path, project: Project, chosen: tuple[str, ...], runtimes: tuple[str, ...]) -> CheckReport:
    plugin = Plugin(project)
    gathered: list[tuple[Finding, str | None]] = [(finding, None) for finding in (*judge_declarations(plugin), *judge_scripts(plugin))]
    counts = {"hooks": 0, "unreadable": 0}
    for version in chosen:
        release = catalogue.load(version)
        hooks = list(registrations(plugin, release))
        counts["hooks"] = max(counts["hooks"], len(hooks))
        counts["unreadable"] = max(counts["unreadable"], sum(hook.target is None for hook in hooks))
        gathered += [(finding, version) for finding in _judge(plugin, release, hooks)]
    findings = [finding for finding in _merge(gathered, chosen) if finding.subject.get("runtime", runtimes[0]) in runtimes]
    findings = [finding for finding in findings if not _ignored(finding, project)]
    host = {
        "command": "check",
        "path": str(path),
        "project": project.declared.name,
        "version": project.declared.version,
        "files": len(project.files),
    }
    return CheckReport({**host, "releases": list(chosen)}, chosen, tuple(_ordered(findings)), _entry_rows(project, findings), counts)


def _entry_rows(project: Project, findings: list[Finding]) -> list[dict[str, Any]]:
    failed = {
        (f.subject.get("group"), f.subject["name"]) for f in findings if f.subject["kind"] == "entry_point" and f.level is Level.ERROR
    }
    rows = []
    for entry in project.declared.entries:
        kind = "platform" if entry.group.endswith("platforms") else "hook" if entry.group.endswith("plugins") else "other"
        outcome = "failed" if (entry.group, entry.name) in failed else "ok"
        row = {"group": entry.group, "name": entry.name, "value": entry.value, "kind": kind, "outcome": outcome}
        rows.append({**row, "dist": project.declared.name, "version": project.declared.version})
    return rows


def kept(report: CheckReport, wanted: frozenset[str], unwanted: frozenset[str]) -> CheckReport:
    """Return the report without the findings that are not wanted; an empty `wanted` is every rule."""
    rest = tuple(finding for finding in report.findings if (not wanted or finding.code in wanted) and finding.code not in unwanted)
    return replace(report, findings=rest)


def _judge(plugin: Plugin, release: Release, hooks: list[Any]) -> Iterator[Finding]:
    yield from missing_own(plugin, release)
    yield from missing_imports(plugin, release)
    yield from missing_attributes(plugin, release)
    yield from lost_patches(plugin, release)
    for hook in hooks:
        yield from judge_target(hook, release)
        yield from judge_hook(hook, release)
    yield from judge_platforms(plugin, release)
    yield from judge_activation(plugin, release)
    yield from judge_startup(plugin, release)
    yield from unread_groups(plugin, release)


def _merge(gathered: list[tuple[Finding, str | None]], releases: tuple[str, ...]) -> Iterator[Finding]:
    """One finding for each code, place and subject: the newest release's words, the worst level, all releases that have it."""
    groups: dict[tuple[Any, ...], list[tuple[Finding, str | None]]] = {}
    for finding, version in gathered:
        place = (finding.location.path, finding.location.line) if finding.location else ()
        groups.setdefault((finding.code, *place, finding.subject["name"]), []).append((finding, version))
    for group in groups.values():
        newest = with_near(*group[-1])
        worst = min((finding.level for finding, _ in group), key=lambda level: level.rank)
        versions = [version for version in releases if any(version == found for _, found in group)]
        if newest.code == "SP409" and len(versions) < len(releases):
            continue  # called by one of the releases that the plugin is for: it has its reason
        yield replace(newest, level=worst, data={**newest.data, "releases": versions} if versions else newest.data)


def with_near(finding: Finding, version: str | None) -> Finding:
    """Return the finding with a hint at what may be meant: looked up once, in the newest release, because it reads every module."""
    near = finding.data.get("near")
    if near is None or version is None:
        return finding
    names, later = _near(version, near), _later(version, near)
    if later is not None:
        hint = f"SGLang {later} has it: require sglang>={later}, or guard its use"
        return replace(finding, hint=hint, data={key: value for key, value in finding.data.items() if key != "near"})
    hint = f"look at {' or '.join(names)}" if names else finding.hint or "it may be gone: guard its use, or require another SGLang"
    return replace(finding, hint=hint, data={key: value for key, value in finding.data.items() if key != "near"})


@lru_cache(maxsize=1024)
def _later(version: str, name: str) -> str | None:
    """The first release after one that has a name."""
    known = catalogue.releases()
    return next((other for other in known[known.index(version) + 1 :] if catalogue.load(other).find(name) is not None), None)


@lru_cache(maxsize=1024)
def _near(version: str, name: str) -> tuple[str, ...]:
    return catalogue.load(version).near(name, limit=2)


def _ordered(findings: Iterable[Finding]) -> list[Finding]:
    def key(finding: Finding) -> tuple[Any, ...]:
        place = finding.location
        return finding.level.rank, place.path if place else "", (place.line or 0) if place else 0, finding.code, finding.subject["name"]

    return sorted(findings, key=key)


def _ignored(finding: Finding, project: Project) -> bool:
    """True where a comment in the statement, on the line above it, or for the whole file says so."""
    place = finding.location
    file = next((file for file in project.files if place is not None and file.shown == place.path), None)
    if file is None or place is None or b"sglang-plug:" not in file.text:
        return False
    whole = _IGNORE_FILE.search(file.text)
    if whole is not None and _covers(whole[1], finding.code):
        return True
    lines = file.text.splitlines()
    number = place.line or 0
    first, last = next((span for span in _statements(file.text) if span[0] <= number <= span[1]), (number, number))
    own = lines[max(0, first - 1) : last]
    above = [line for line in lines[max(0, first - 2) : max(0, first - 1)] if line.strip().startswith(b"#")]
    return any((match := _IGNORE.search(line)) is not None and _covers(match[1], finding.code) for line in (*own, *above))


@lru_cache(maxsize=64)
def _statements(text: bytes) -> tuple[tuple[int, int], ...]:
    """The first and last lines of a file's plain statements and decorators: not of those that hold others."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    plain = [node for node in nodes if isinstance(node, ast.stmt) and not hasattr(node, "body") and not hasattr(node, "cases")]
    decorators = [decorator for node in nodes for decorator in getattr(node, "decorator_list", ())]
    return tuple((node.lineno, node.end_lineno or node.lineno) for node in (*plain, *decorators))


def _covers(words: bytes | None, code: str) -> bool:
    if words is None:
        return True
    named = [word.strip().upper() for word in words.decode(errors="replace").split(",") if word.strip()]
    return any(code.startswith(word) or rule(code).slug.upper() == word for word in named)
