"""What a plugin declares: entry points, requirements, packages; from pyproject.toml, setup.cfg, setup.py or a wheel. Runs none of them."""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sglang_plug.contract.folding import Unfoldable, dotted_name, fold

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class DeclaredEntry:
    """One declared entry point, and where it is written."""

    group: str
    name: str
    value: str
    path: str
    line: int | None = None


@dataclass
class Declared:
    """What the metadata says.

    Attributes:
        source: the file that it was read from; empty where there is none.
        name: the distribution.
        version: as written.
        entries: the entry points, in file order.
        requirements: `(requirement, line)`, run-time ones.
        extras: `(requirement, line)` of optional ones.
        backend: the build backend.
        packages: how packages are chosen: `("list", names)`, `("find", {where, include, exclude, namespaces})` or None.
        source_roots: folders that packages live in.
        tool: the `[tool.sglang-plug]` table.
        problems: `(message, path, line)` of what cannot be read.
    """

    source: str = ""
    name: str = ""
    version: str = ""
    entries: list[DeclaredEntry] = field(default_factory=list)
    requirements: list[tuple[str, int | None]] = field(default_factory=list)
    extras: list[tuple[str, int | None]] = field(default_factory=list)
    backend: str = ""
    packages: tuple[str, Any] | None = None
    source_roots: list[str] = field(default_factory=list)
    tool: dict[str, Any] = field(default_factory=dict)
    problems: list[tuple[str, str, int | None]] = field(default_factory=list)


def read_declared(root: Path) -> Declared:
    """Return what the metadata files in a folder declare; an empty answer where there are none."""
    declared = Declared()
    for name, read in (("pyproject.toml", _pyproject), ("setup.cfg", _setup_cfg), ("setup.py", _setup_py)):
        file = root / name
        if file.is_file():
            try:
                text = file.read_text(encoding="utf-8-sig", errors="replace")
            except OSError as exc:
                declared.problems.append((f"{name} cannot be read: {exc}", name, None))
                continue
            declared.source = declared.source or name
            read(declared, text)
    if not declared.source:
        _dist_info(declared, root)
    return declared


def _pyproject(declared: Declared, text: str) -> None:
    path = "pyproject.toml"
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        line = re.search(r"line (\d+)", str(exc))
        declared.problems.append((f"{path} is not TOML: {exc}", path, int(line[1]) if line else None))
        return
    lines = text.splitlines()
    project, tool = _table(document, "project"), _table(document, "tool")
    poetry = _table(tool, "poetry")
    declared.name = str(project.get("name") or poetry.get("name") or "")
    declared.version = str(project.get("version") or poetry.get("version") or "")
    declared.backend = str(_table(document, "build-system").get("build-backend") or "setuptools.build_meta")
    declared.tool = _table(tool, "sglang-plug")
    for groups in (_table(project, "entry-points"), _table(poetry, "plugins")):
        for group, entries in groups.items():
            for name, value in entries.items() if isinstance(entries, dict) else ():
                declared.entries.append(DeclaredEntry(group, name, str(value), path, _line_of(lines, name, value)))
    declared.requirements = [(str(item), _line_of(lines, item)) for item in project.get("dependencies") or () if isinstance(item, str)]
    for items in _table(project, "optional-dependencies").values():
        declared.extras += [(str(item), _line_of(lines, item)) for item in items if isinstance(item, str)]
    for name, spec in _table(poetry, "dependencies").items():
        version = spec if isinstance(spec, str) else spec.get("version", "") if isinstance(spec, dict) else ""
        if name != "python" and isinstance(version, str):
            declared.requirements.append((f"{name}{_poetry_specifier(version)}", _line_of(lines, name)))
    setuptools = _table(tool, "setuptools")
    packages = setuptools.get("packages")
    if isinstance(packages, list):
        declared.packages = ("list", [str(item) for item in packages])
    elif isinstance(packages, dict):
        found = _table(packages, "find")
        namespaces = found.get("namespaces", True)
        options = {"include": found.get("include"), "exclude": found.get("exclude"), "namespaces": namespaces}
        declared.packages = ("find", {"where": found.get("where") or ["."], **options})
        declared.source_roots += [str(item) for item in found.get("where") or ()]
    declared.source_roots += [str(item) for item in _table(setuptools, "package-dir").values()]


def _poetry_specifier(text: str) -> str:
    if not text or text == "*":
        return ""
    if text[0].isdigit():
        return f"=={text}"
    match = re.fullmatch(r"([~^])\s*(\d+)(?:\.(\d+))?([\w.]*)", text)
    if match is None:
        return "" if text[0] in "^~" and not text.startswith("~=") else text
    major, minor = int(match[2]), int(match[3] or 0)
    below = f"{major + 1}" if (match[1] == "^" and major) or match[3] is None else f"{major}.{minor + 1}"
    return f">={match[2]}{'.' + match[3] if match[3] else ''}{match[4]},<{below}"


def _table(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


def _line_of(lines: list[str], *wanted: object) -> int | None:
    for number, line in enumerate(lines, 1):
        if all(str(part) in line for part in wanted):
            return number
    return None


def _setup_cfg(declared: Declared, text: str) -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    path = "setup.cfg"
    try:
        parser.read_string(text)
    except configparser.Error as exc:
        declared.problems.append((f"{path} cannot be read: {str(exc).splitlines()[0]}", path, getattr(exc, "lineno", None)))
        return
    lines = text.splitlines()
    declared.name = declared.name or parser.get("metadata", "name", fallback="")
    declared.version = declared.version or parser.get("metadata", "version", fallback="")
    if parser.has_section("options.entry_points"):
        for group, block in parser.items("options.entry_points"):
            for line in filter(None, map(str.strip, block.splitlines())):
                name, _, value = line.partition("=")
                declared.entries.append(DeclaredEntry(group, name.strip(), value.strip(), path, _line_of(lines, line)))
    for line in filter(None, map(str.strip, parser.get("options", "install_requires", fallback="").splitlines())):
        declared.requirements.append((line, _line_of(lines, line)))
    packages = parser.get("options", "packages", fallback="").strip()
    if packages.startswith(("find:", "find_namespace:")) and declared.packages is None:
        section = "options.packages.find"
        where = parser.get(section, "where", fallback=".")
        include = [part.strip() for part in parser.get(section, "include", fallback="").split() if part.strip()] or None
        declared.packages = ("find", {"where": [where], "include": include, "exclude": None, "namespaces": "namespace" in packages})
        declared.source_roots += [where]
    elif packages and declared.packages is None:
        declared.packages = ("list", packages.split())


def _setup_py(declared: Declared, text: str) -> None:
    path = "setup.py"
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as exc:
        declared.problems.append((f"{path} is not Python: {exc}", path, getattr(exc, "lineno", None)))
        return
    constants: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                constants[node.targets[0].id] = fold(node.value, constants.__getitem__)
            except Unfoldable:
                constants.pop(node.targets[0].id, None)
    call = next(
        (node for node in ast.walk(tree) if isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] == "setup"),
        None,
    )
    words = {word.arg: word.value for word in call.keywords if word.arg} if call else {}
    for key, expression in words.items():
        if key == "packages":
            declared.packages = declared.packages or _setup_packages(expression, constants)
            continue
        try:
            value = fold(expression, constants.__getitem__)
        except Unfoldable:
            continue
        _setup_word(declared, key, value, path, expression.lineno)


def _setup_word(declared: Declared, key: str, value: Any, path: str, line: int) -> None:
    if key == "name" and isinstance(value, str):
        declared.name = declared.name or value
    elif key == "version" and isinstance(value, str):
        declared.version = declared.version or value
    elif key == "install_requires" and isinstance(value, (list, tuple)):
        declared.requirements += [(str(item), line) for item in value if isinstance(item, str)]
    elif key == "package_dir" and isinstance(value, dict):
        declared.source_roots += [str(item) for item in value.values()]
    elif key == "entry_points" and isinstance(value, dict):
        for group, rows in value.items():
            for row in [rows] if isinstance(rows, str) else rows:
                if isinstance(row, str):
                    name, _, target = row.partition("=")
                    declared.entries.append(DeclaredEntry(str(group), name.strip(), target.strip(), path, line))


def _setup_packages(node: ast.expr, constants: dict[str, Any]) -> tuple[str, Any] | None:
    if isinstance(node, ast.Call):
        name = (dotted_name(node.func) or "").rpartition(".")[2]
        if name in {"find_packages", "find_namespace_packages"}:
            words = {word.arg: word.value for word in node.keywords}
            try:
                where = (
                    fold(words["where"], constants.__getitem__)
                    if "where" in words
                    else fold(node.args[0], constants.__getitem__)
                    if node.args
                    else "."
                )
                include = fold(words["include"], constants.__getitem__) if "include" in words else None
                exclude = fold(words["exclude"], constants.__getitem__) if "exclude" in words else None
            except Unfoldable:
                return None
            return ("find", {"where": [str(where)], "include": include, "exclude": exclude, "namespaces": "namespace" in name})
        return None
    try:
        value = fold(node, constants.__getitem__)
    except Unfoldable:
        return None
    return ("list", [str(item) for item in value]) if isinstance(value, (list, tuple)) else None


def _dist_info(declared: Declared, root: Path) -> None:
    """An unpacked wheel, or a folder of installed packages with exactly one distribution."""
    folders = sorted(root.glob("*.dist-info"))
    if len(folders) != 1:
        return
    folder = folders[0]
    declared.source = folder.name
    metadata = folder / "METADATA"
    if metadata.is_file():
        for number, line in enumerate(metadata.read_text(errors="replace").splitlines(), 1):
            if not line:
                break
            key, _, value = line.partition(": ")
            if key == "Name":
                declared.name = value
            elif key == "Version":
                declared.version = value
            elif key == "Requires-Dist":
                (declared.extras if "extra ==" in value else declared.requirements).append((value, number))
    points = folder / "entry_points.txt"
    group = ""
    for number, raw in enumerate(points.read_text(encoding="utf-8-sig", errors="replace").splitlines() if points.is_file() else (), 1):
        line = raw.strip()
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            declared.entries.append(DeclaredEntry(group, name.strip(), value.strip(), f"{folder.name}/entry_points.txt", number))
