"""SP207 to SP215: distributions as they are installed: which metadata is read, which files are there, what else they bring."""

from __future__ import annotations

import os
import re
import tomllib
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.world import KINDS, Entry, World, find, names
from sglang_plug.probe.decision import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding


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
        told += [f"entry points seen, and not in the hidden one: {', '.join(gained)}"] if gained else []
        stale = hidden["where"] if numbers(str(hidden["version"])) < numbers(str(version)) else hidden["by"]
        beside = os.path.dirname(hidden["where"]) == os.path.dirname(hidden["by"])
        first = "is met first (in the directory's order, which is no rule)" if beside else "comes first on sys.path"
        yield find(
            "SP207",
            {"kind": "dist", "name": str(winner), "version": str(version)},
            f"{winner} has two metadata folders: {version} in {hidden['by']} {first} and hides {hidden['version']} in "
            f"{hidden['where']}" + (f"; {'; '.join(told)}" if told else ""),
            cause=f"{winner} and {hidden['name']} are one name for Python" if winner != hidden["name"] else None,
            hint=f"delete {stale}, or reinstall {winner}" if hidden["version"] != version else f"reinstall {winner} from its source",
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
        if not loaded or not own or _same(loaded, own):
            continue
        if _same(os.path.dirname(loaded), os.path.dirname(own)) and not own.endswith("__init__.py"):
            continue
        others = [e.dist for e in world.entries if e.dist != entry.dist and (theirs := _own_module(world, e)) and _same(theirs, loaded)]
        clash = f"{others[0]} and {entry.dist} both bring a module {entry.module.partition('.')[0]}: rename one" if others else None
        yield find(
            "SP209",
            entry.subject(),
            f"{entry.label} was imported from {loaded}, not from its distribution's {own}",
            cause=f"{os.path.dirname(os.path.dirname(loaded))} comes earlier on sys.path",
            hint=clash or f"start from another folder, or rename {loaded.removesuffix(os.sep + '__init__.py')}",
            location=Location(loaded),
            level=None if entry.failed else Level.WARNING,
        )


def _same(left: str, right: str) -> bool:
    """True for two paths of one place; a path that no file can have is nowhere."""
    try:
        return os.path.realpath(left) == os.path.realpath(right)
    except (OSError, ValueError):
        return False


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
                hint=f"reinstall {dist['name']} from its source",
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
        if (dist["name"] is not None and str(dist["version"]) in {"0.0.0", "0", "None", "0.0"}) or str(dist["version"]).startswith("0.0.0"):
            said = f"has the version {dist['version']}, which says" if dist["version"] else "has no version in its METADATA, and says"
            yield find(
                "SP215",
                {"kind": "dist", "name": str(dist["name"]), "version": str(dist["version"])},
                f"{dist['name']} {said} nothing about what is installed",
                hint="give the package a version that rises with each release",
            )


RULES = (hidden_metadata, shadowed_module, editable, files_missing, startup_code, requires_other_sglang, no_version)
