"""A hook plugin made from a target: as a package of its own, or as a module for a package that exists. Values and texts, no disk writes."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.contract import catalogue, peculiarities
from sglang_plug.contract.diff import matching_names
from sglang_plug.contract.model import CALLABLE, Kind
from sglang_plug.core.policy import DIFFUSION, REGISTRIES, SRT
from sglang_plug.core.words import a
from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold import pyproject
from sglang_plug.scaffold.answers import MAX_NAME, judge_module
from sglang_plug.scaffold.render import render
from sglang_plug.scaffold.shape import WIDTH, HookType, shape

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol
    from sglang_plug.scaffold.answers import Name

GROUPS = {"srt": SRT.hook_group or "", "diffusion": DIFFUSION.hook_group or ""}


@dataclass(frozen=True)
class HookAnswers:
    """What is hooked, and how.

    Attributes:
        target: dotted.
        type: the hook's type.
        runtime: whose registry.
        release: the catalogue's page.
        symbol: what the target is there.
    """

    target: str
    type: HookType
    runtime: str
    release: Release
    symbol: Symbol

    @property
    def function(self) -> str:
        """The hook function's name."""
        *_, owner, name = ["", *self.target.split(".")]
        plain = name.strip("_") or "call"
        words = f"{self.type}_{owner}_{plain}" if name.startswith("__") else f"{self.type}_{plain}"
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()


def judge_target(text: str, kind: HookType, runtime: str | None, release: str) -> HookAnswers:
    """Return the answers for a hook on `text`.

    Raises:
        ScaffoldError: the release has no such name, or it cannot be hooked like that; the hint names what can.
    """
    page = catalogue.load(release)
    target = text.strip().replace(":", ".")
    symbol = page.find(target)
    if symbol is None:
        near = page.near(target, limit=4) or tuple(_ending(page, target))[:4]
        raise ScaffoldError(
            f"SGLang {release} has no such name",
            subject=text,
            cause=f"near: {', '.join(near)}" if near else "nothing like it either",
            hint=f"`--target {near[0]}`" if near else "`sglang-plug contract targets` lists what can be hooked",
        )
    _refuse_kind(symbol, kind, text)
    chosen = runtime or ("diffusion" if target.startswith("sglang.multimodal_gen.") else "srt")
    return HookAnswers(target, kind, chosen, page, symbol)


def _ending(page: Release, part: str) -> Iterator[str]:
    """The names that end in what was typed, where that is a name's end alone."""
    if "." in part and not part.startswith("sglang."):
        yield from (name for name in matching_names(page, part) if name.endswith(f".{part}"))


def refuse_dead(answers: HookAnswers) -> None:
    """Refuse a target on which a hook has no effect, or stops the start.

    Raises:
        ScaffoldError: it is one; the hint names a better one.
    """
    for note in peculiarities.of(answers.release, answers.target, replaces=answers.type == "replace"):
        if note.level == "dead":
            raise ScaffoldError(
                "a hook on this target is of no use",
                subject=answers.target,
                cause=f"SGLang {answers.release.version} {note.text}",
                hint=f"{f'`--target {note.instead}`; or ' if note.instead else ''}--force, to have it all the same",
            )


def _refuse_kind(symbol: Symbol, kind: HookType, text: str) -> None:
    if symbol.kind is Kind.CLASS:
        if kind != "replace":
            raise ScaffoldError(
                f"a class cannot take {a(kind)} hook",
                subject=text,
                cause="it would become a function, and isinstance() would fail; SGLang refuses it",
                hint=f"`--target {symbol.name}.__init__`, or `--type replace` for a subclass",
            )
        return
    if symbol.kind in {Kind.CLASSMETHOD, Kind.STATICMETHOD} and symbol.inherited:
        raise ScaffoldError(
            f"an inherited {symbol.kind} cannot be hooked where it is inherited",
            subject=text,
            cause="SGLang finds the bound method there, and calls the hook with one argument too many",
            hint=f"`--target {symbol.origin}`",
        )
    if symbol.kind is Kind.MODULE:
        raise ScaffoldError(
            "a module cannot be hooked",
            subject=text,
            hint=f"name a function, a class or a method in it: `sglang-plug contract targets '{symbol.name}.*'` lists them",
        )
    if symbol.kind not in CALLABLE | {Kind.UNKNOWN, Kind.EXTERNAL}:
        raise ScaffoldError(
            f"{a(symbol.label)} cannot be hooked",
            subject=text,
            cause="it is read, never called: the hook would put a function in its place",
            hint=f"hook the code that reads it; `sglang-plug contract targets '{symbol.name.rpartition('.')[0]}.*'` lists its neighbours",
        )


def warnings(answers: HookAnswers) -> list[str]:
    """Return what the user should know about the target, as sentences."""
    told = []
    for note in peculiarities.of(answers.release, answers.target, replaces=answers.type == "replace"):
        better = f"; hook {note.instead} instead" if note.instead else ""
        told.append(f"SGLang {answers.release.version} {note.text}{better}")
    home = "diffusion" if answers.target.startswith("sglang.multimodal_gen.") else "srt"
    if home != answers.runtime:
        told.append(f"the target is {home} code, and each runtime applies its own hooks only: --runtime {home} is likely what is meant")
    if answers.symbol.varies:
        told.append("a condition chooses among several definitions of the target; the signature is one of theirs")
    if answers.symbol.kind in {Kind.UNKNOWN, Kind.EXTERNAL}:
        told.append("the catalogue cannot tell the target's signature; the hook takes whatever comes")
    return told


def values(answers: HookAnswers, *, package: str, module: str, entry_point: str) -> dict[str, Any]:
    """Return what the template is given."""
    symbol = answers.symbol
    replaces_class = symbol.kind is Kind.CLASS
    made = None if replaces_class else shape(symbol, answers.type, answers.function)
    parent, _, name = answers.target.rpartition(".")
    return {
        "distribution": package,
        "package": package,
        "module": module,
        "entry_point": entry_point,
        "prefix": "".join(part.capitalize() for part in package.split("_")),
        "group": GROUPS[answers.runtime],
        "registry": REGISTRIES[answers.runtime],
        "runtime": answers.runtime,
        "release": answers.release.version,
        "target": answers.target,
        "type": answers.type,
        "replaces_class": replaces_class,
        "class_module": parent,
        "class_name": name,
        "function": f"My{name}" if replaces_class else answers.function,
        "header": list(made.header) if made else [],
        "summary": made.summary if made else "",
        "body": list(made.body) if made else [],
        "imports": sorted(made.imports) if made else [],
        "notes": _comment(f"SGLang {answers.release.version}, {symbol.label}: {name}{symbol.signature or '(…)'}"),
    }


def _comment(text: str) -> list[str]:
    """Break a text into comment lines."""
    lines = textwrap.wrap(text, WIDTH - 6, break_long_words=False, break_on_hyphens=False)
    return [f"# {line}" if number == 0 else f"#   {line}" for number, line in enumerate(lines)]


def package(answers: HookAnswers, name: Name) -> dict[str, str]:
    """Return the files of a new package that holds the hook."""
    filled = values(answers, package=name.package, module="hooks", entry_point=name.package)
    return render("hook", {**filled, "distribution": name.distribution, "prefix": name.prefix})


@dataclass(frozen=True)
class Addition:
    """What adding a hook to a project changes.

    Attributes:
        project: the project.
        text: the project file's new text.
        files: new files below the project's folder.
        entry_point: the entry point's name.
    """

    project: pyproject.Project
    text: str
    files: dict[str, str]
    entry_point: str


def addition(answers: HookAnswers, folder: Path, module: str | None) -> Addition:
    """Return what adds the hook to the project in `folder`.

    Raises:
        ScaffoldError: there is no project, no package in it, or the module or entry point is there already.
    """
    project = pyproject.read(folder)
    root = project.path.parent
    place = _package_folder(project)
    package_name = place.name
    stem = judge_module(module or answers.function[:MAX_NAME].rstrip("_"))
    entry_point = stem if stem.startswith(package_name) else f"{package_name}_{stem}"
    filled = values(answers, package=package_name, module=stem, entry_point=entry_point)
    rendered = render("hook", filled)
    inside = f"{package_name}/"
    files = {
        f"{place.relative_to(root).as_posix()}/{path.removeprefix(inside)}": text
        for path, text in rendered.items()
        if path.startswith(inside) and path.rpartition("/")[2] not in {"__init__.py", "py.typed"}
    }
    text = pyproject.with_entry_point(project, GROUPS[answers.runtime], entry_point, f"{package_name}.{stem}:register")
    return Addition(project, text, files, entry_point)


def _package_folder(project: pyproject.Project) -> Path:
    """Find the package: that of the entry points there are, else the one of the project's name, at the root or under src."""
    root = project.path.parent
    groups = (SRT.platform_group, SRT.hook_group, DIFFUSION.platform_group, DIFFUSION.hook_group)
    named = [value.partition(":")[0].partition(".")[0] for group in groups if group for value in project.entry_points(group).values()]
    named.append(project.name.replace("-", "_").replace(".", "_").lower())
    found = [base / name for name in named for base in (root, root / "src") if name and (base / name / "__init__.py").is_file()]
    if not found:
        found = sorted(
            place.parent for base in (root, root / "src") for place in base.glob("*/__init__.py") if place.parent.name != "tests"
        )
        if len(found) != 1:
            raise ScaffoldError(
                "cannot tell which package the hook belongs in",
                subject=str(root),
                cause=f"found {', '.join(place.name for place in found)}"
                if found
                else "no folder with an __init__.py is here, nor under src",
                hint="name the project like its package, or give it an entry point first",
            )
    return found[0]
