"""The hooks of the plugins that will be loaded, read off their source: what the launch will meet, without running any of it.

A forecast: what a plugin computes at run time cannot be read. The guard tells the rest from inside the engine's processes.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Finding, Level
from sglang_plug.errors import CatalogueError
from sglang_plug.launch.hooktraps import target_traps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.project import PythonFile
    from sglang_plug.checks.source.registrations import Registration
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.core.selection import Choice

# A hook that one of these speaks of is not applied; the others are about hooks that do not do what their author thinks.
_CANNOT_APPLY = frozenset({"SP501", "SP502", "SP503", "SP511"})
_UNREADABLE = "SP706"
_WRONG_REGISTRY = "SP517"
_MANY_FILES = 400


@dataclass(frozen=True)
class Foreseen:
    """One hook that a plugin registers, as far as its source tells. `target` is None where it is computed."""

    plugin: str
    target: str | None
    type: str | None


def foresee(
    choices: Sequence[Choice], path: Sequence[str], release: str, runtime: str, *, own: str | None = None
) -> tuple[list[Foreseen], list[Finding]]:
    """Return the hooks that will be registered in a runtime, and what is known to be wrong with them.

    Args:
        choices: what becomes of each plugin.
        path: the `sys.path` of the engine's interpreter.
        release: SGLang's version, or the nearest that the catalogue knows.
        runtime: `srt` or `diffusion`.
        own: the distribution of the selected platform.
    """
    from sglang_plug.checks.source.registrations import registrations
    from sglang_plug.checks.source.run import with_near
    from sglang_plug.checks.source.targets import judge_target
    from sglang_plug.contract import catalogue

    try:
        known = catalogue.load(catalogue.nearest(release))
    except CatalogueError:
        return [], []
    hooks: list[Foreseen] = []
    findings: dict[tuple[str, str], Finding] = {}
    for choice in choices:
        if choice.verdict != "load":
            continue
        for registration in registrations(_source(choice.candidate.value, path), known):
            if registration.facts.file.is_test or not _is_of(registration, choice.candidate, choices):
                continue
            said = list(judge_target(registration, known))
            if registration.runtime != runtime:
                said = [finding for finding in said if finding.code == _WRONG_REGISTRY]
            else:
                hooks.append(Foreseen(choice.candidate.name, registration.target, registration.type))
                said += _traps(registration, choice.candidate.name, known)
            for finding in said:
                if finding.code != _UNREADABLE:
                    findings.setdefault(
                        (finding.code, finding.subject["name"]), _weighed(with_near(finding, known.version), choice, own, runtime)
                    )
    return hooks, list(findings.values())


def device_type(qualname: str, path: Sequence[str]) -> str | None:
    """Return the device type that a platform class's own body gives as a constant; None where it is computed, inherited or not found.

    Args:
        qualname: `module:Class` or dotted.
        path: the `sys.path` of the engine's interpreter.
    """
    module, _, name = qualname.replace(":", ".").rpartition(".")
    for file in _source(module, path).project.files:
        for node in ast.walk(_parsed(file)) if file.module == module else ():
            if isinstance(node, ast.ClassDef) and node.name == name:
                for line in node.body:
                    names = line.targets if isinstance(line, ast.Assign) else [line.target] if isinstance(line, ast.AnnAssign) else []
                    if any(isinstance(target, ast.Name) and target.id == "device_type" for target in names):
                        value = getattr(line, "value", None)
                        return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
    return None


def not_out_of_tree(qualname: str, path: Sequence[str], release: str, runtime: str) -> list[Finding]:
    """SP404: the platform's class does not say that it is out of tree, which diffusion refuses and SRT takes for a built-in.

    Args:
        qualname: `module:Class` or dotted.
        path: the `sys.path` of the engine's interpreter.
        release: SGLang's version, or the nearest that the catalogue knows.
        runtime: `srt` or `diffusion`.
    """
    from sglang_plug.checks.source.platforms import judge_platforms
    from sglang_plug.contract import catalogue

    module, _, name = qualname.replace(":", ".").rpartition(".")
    try:
        said = list(judge_platforms(_source(module, path), catalogue.load(catalogue.nearest(release))))
    except CatalogueError:
        return []
    level = Level.ERROR if runtime == "diffusion" else Level.WARNING
    return [replace(told, level=level) for told in said if told.code == "SP404" and told.subject["name"] == name]


def _parsed(file: PythonFile) -> ast.AST:
    try:
        return ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])  # its import says so


def _is_of(registration: Registration, candidate: Candidate, choices: Sequence[Choice]) -> bool:
    """Tell whether a plugin runs what its package registers: not what stands in another entry point's callback, or in its module."""
    file, line = registration.facts.file, registration.node.lineno
    around = [each.node for each in registration.facts.functions if each.scope is registration.facts.scope]
    inside = next((node.name for node in around if node.lineno <= line <= (node.end_lineno or line)), "")
    values = {
        choice.candidate.value.replace(" ", "") for choice in choices if choice.candidate.value.partition(":")[0].strip() == file.module
    }
    callbacks = {value for value in values if value.partition(":")[2] == inside} or values
    return not callbacks or candidate.value.replace(" ", "") in callbacks


def _traps(registration: Registration, plugin: str, known: Release) -> Iterator[Finding]:
    if registration.target is not None:
        yield from target_traps(known, registration.target, (registration.type or "after").lower(), plugin)


def _weighed(finding: Finding, choice: Choice, own: str | None, runtime: str) -> Finding:
    """A hook that cannot apply forbids the start where it ships with the selected platform; everything else is told.

    There SRT goes on without the hook, and so may the user; diffusion aborts.
    """
    from sglang_plug.checks.source.targets import GOES_ON

    named = replace(finding, subject={**finding.subject, "plugin": choice.candidate.name})
    fatal = finding.code in _CANNOT_APPLY and own is not None and choice.candidate.dist == own
    if finding.level is Level.ERROR and not fatal:
        return replace(named, level=Level.WARNING)
    if fatal and runtime == "diffusion":
        aborts = "the hook ships with the selected platform, so diffusion aborts its start"
        return replace(named, message=finding.message.replace(GOES_ON, aborts))
    return replace(named, hint=f"{finding.hint or 'correct the hook'}; or go on with --allow {finding.code}") if fatal else named


def _source(value: str, path: Sequence[str]) -> Plugin:
    """Return the source of an entry point's package, found on `path` as an import would find it; empty where it is not there."""
    from sglang_plug.checks.source.declared import Declared
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.project import Project

    top = value.partition(":")[0].split(".")[0].strip()
    places = [Path(place) for place in path]
    for place in (*places, *_mapped(top, places)):
        single = place / f"{top}.py"
        inside = sorted((place / top).rglob("*.py")) if (place / top).is_dir() else [single] if single.is_file() else []
        if inside:
            files = [] if len(inside) > _MANY_FILES else [_file(file, place) for file in inside]
            return Plugin(Project(place, tuple(files), Declared(), (place,)))
    return Plugin(Project(Path(), (), Declared(), ()))


def _mapped(top: str, places: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders from which setuptools' finders of editable installs import a name; they are asked after `sys.path`."""
    for finder in (finder for place in places for finder in sorted(place.glob("__editable__*_finder.py"))):
        try:
            body = ast.parse(finder.read_bytes()).body
            found = [
                ast.literal_eval(line.value)
                for line in body
                if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "MAPPING" and line.value
            ]
            yield from (Path(mapping[top]).parent for mapping in found if top in mapping)
        except (OSError, SyntaxError, ValueError, TypeError, RecursionError):
            continue  # its import says so


def _file(path: Path, root: Path) -> PythonFile:
    from sglang_plug.checks.source.project import PythonFile

    module = ".".join(path.relative_to(root).with_suffix("").parts)
    package = path.name == "__init__.py"
    is_test = path.name.startswith("test_") or "tests" in path.relative_to(root).parts
    return PythonFile(path, str(path), module.removesuffix(".__init__"), package, path.read_bytes(), is_test)
