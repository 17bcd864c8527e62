"""A plugin's source as it lies on disk: its root, its Python files and their module names. Reads files; judges nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.checks.source.declared import Declared, read_declared
from sglang_plug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SKIPPED = frozenset(
    {"build", "dist", "node_modules", "site-packages", "venv", "env", "__pycache__", "__pypackages__", "third_party", "_vendor", "vendored"}
)
_MARKERS = ("pyproject.toml", "setup.cfg", "setup.py")
_LARGEST = 4_000_000  # bytes: a generated table, not a plugin's code


@dataclass(frozen=True)
class PythonFile:
    """One source file.

    Attributes:
        path: where it lies.
        shown: the path as findings spell it, relative to the project.
        module: its dotted name as installed, or None for a script outside every package.
        is_package: it is an `__init__.py`.
        text: its content.
        is_test: it lies in a folder of tests or bears a test's name.
        problem: why it was not read.
        is_large: that is because of its size.
    """

    path: Path
    shown: str
    module: str | None
    is_package: bool
    text: bytes = field(repr=False)
    is_test: bool = False
    problem: str | None = None
    is_large: bool = False


@dataclass(frozen=True)
class Project:
    """A plugin's source.

    Attributes:
        root: the folder with its metadata, or the one that was given.
        files: its Python files, sorted.
        declared: what its metadata says.
        roots: the folders that modules are found in.
    """

    root: Path
    files: tuple[PythonFile, ...]
    declared: Declared
    roots: tuple[Path, ...]

    @cached_property
    def modules(self) -> dict[str, PythonFile]:
        """Its modules by dotted name."""
        return {file.module: file for file in self.files if file.module}


def read_project(path: Path) -> Project:
    """Return the project at a path: its root folder, an unpacked wheel, or one file of it.

    Raises:
        UsageError: there is nothing there, or no Python in it.
    """
    try:
        there, place = path.exists(), _resolved(path)
        if path.is_dir():
            os.listdir(path)
    except OSError as exc:
        raise UsageError(
            "this cannot be read", subject=str(path), cause=exc.strerror, hint="give a plugin's folder or one of its files"
        ) from exc
    if place == Path(place.anchor):
        raise UsageError("this is the whole disk", subject=str(path), hint="give a plugin's folder or one of its files")
    if not there:
        raise UsageError("nothing to check there", subject=str(path), hint="give a plugin's folder or one of its files")
    single = path if path.is_file() else None
    root = _find_root(path.parent if single else path)
    declared = read_declared(root)
    roots = _source_roots(root, declared)
    paths: list[Path | OSError] = [single] if single else list(_python_files(path))
    files = tuple(file for item in paths if (file := _read(item, root, roots)) is not None)
    if not files and not declared.source:
        raise UsageError("no Python file and no metadata there", subject=str(path), hint="give a plugin's folder or one of its files")
    return Project(root, files, declared, roots)


def _find_root(folder: Path) -> Path:
    for place in (folder, *folder.resolve().parents[:4]):
        if any((place / name).is_file() for name in _MARKERS):
            return place
        if (place / ".git").exists():
            break
    return folder


def _source_roots(root: Path, declared: Declared) -> tuple[Path, ...]:
    """Where importable names start: `src/` and what the metadata says before the root itself."""
    named = [root / place for place in declared.source_roots if place not in {"", "."}]
    places = [place for place in (*named, root / "src", root / "python") if place.is_dir() and not (place / "__init__.py").is_file()]
    return (*dict.fromkeys(places), root)


def _python_files(folder: Path) -> Iterator[Path | OSError]:
    """The Python files below a folder, and the errors of folders that cannot be looked into."""
    closed: list[OSError] = []
    for place, folders, names in os.walk(folder, onerror=closed.append):
        yield from closed
        closed.clear()
        inside = Path(place)
        folders[:] = sorted(name for name in folders if not _is_skipped(inside / name, top=inside == folder))
        yield from (inside / name for name in sorted(names) if name.endswith(".py"))
    yield from closed


def _is_skipped(place: Path, *, top: bool) -> bool:
    if place.name.startswith(".") or place.name.endswith((".egg-info", ".dist-info")) or place.is_symlink():
        return True
    if place.name in {"build", "dist", "env"}:
        return top or not os.path.isfile(place / "__init__.py")
    return place.name in _SKIPPED or os.path.isfile(place / "pyvenv.cfg")  # unlike Path's, false where it may not look


def _read(path: Path | OSError, root: Path, roots: tuple[Path, ...]) -> PythonFile | None:
    problem, is_large = None, False
    if isinstance(path, OSError):
        folder = Path(os.fsdecode(path.filename))
        return PythonFile(folder, _relative(folder, root), None, False, b"", problem=f"nobody may look into this folder: {path.strerror}")
    try:
        is_large = path.stat().st_size > _LARGEST
        text = b"" if is_large else path.read_bytes()
        problem = f"it is larger than {_LARGEST // 1_000_000} MB, and was left out" if is_large else None
    except FileNotFoundError:
        return None  # a link to nowhere
    except OSError as exc:
        text, problem = b"", exc.strerror or str(exc)
    shown = _relative(path, root)
    parts = shown.replace("\\", "/").split("/")
    is_test = (
        any(part in {"tests", "test", "testing"} for part in parts[:-1]) or parts[-1].startswith("test_") or parts[-1] == "conftest.py"
    )
    return PythonFile(path, shown, _module_name(path, roots), path.name == "__init__.py", text, is_test, problem, is_large)


@lru_cache(maxsize=256)
def _resolved(path: Path) -> Path:
    """A path without links; one that goes in circles as it is."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def _relative(path: Path, root: Path) -> str:
    try:
        return _resolved(path).relative_to(_resolved(root)).as_posix()
    except ValueError:
        return path.as_posix()


def _module_name(path: Path, roots: tuple[Path, ...]) -> str | None:
    for root in roots:
        try:
            parts = list(_resolved(path).relative_to(_resolved(root)).with_suffix("").parts)
        except ValueError:
            continue
        if parts[-1] == "__init__":
            parts.pop()
        if parts and all(part.isidentifier() for part in parts):
            return ".".join(parts)
        return None
    return None
