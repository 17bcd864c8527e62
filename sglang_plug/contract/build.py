"""Builds a catalogue file from sources. The same sources make the same bytes; nothing is imported."""

from __future__ import annotations

import re
from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from sglang_plug.contract import platforms, processes, source, store
from sglang_plug.contract.reading import read_module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from sglang_plug.contract.bindings import Binding, ModuleNames
    from sglang_plug.contract.source import SourceFile

    RowKey = tuple[str, str, str, str]  # name, code, text, decorators

_ENVIRONMENT = re.compile(rb"""["']((?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9])["']|^\s+((?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9])\s*[:=]""", re.MULTILINE)


def build(
    sources: Iterable[str], path: Path, *, release: str | None = None, progress: Callable[[str], None] = lambda _: None
) -> tuple[str, ...]:
    """Read releases and write one catalogue file with all of them; return the releases, oldest first.

    Args:
        sources: versions, wheels or folders.
        path: the file to write.
        release: the version to call a source that does not say.
        progress: told a line before each source.

    Raises:
        CatalogueError: a source cannot be read.
    """
    collected: dict[str, _Reading] = {}
    known: dict[tuple[str, bytes], tuple[RowKey, ...]] = {}
    for what in sources:
        progress(f"reading {what}")
        with source.opened(what, release=release) as tree:
            collected[tree.release] = _read(tree, known)
    ordered = sorted(collected, key=Version)
    modules: dict[str, tuple[int, str, dict[RowKey, int]]] = {}
    environment: dict[str, int] = defaultdict(int)
    for bit, name in enumerate(ordered):
        reading = collected[name]
        for module, (flags, rows) in reading.modules.items():
            mask, _, merged = modules.get(module, (0, "", {}))
            for row in rows:
                merged[row] = merged.get(row, 0) | 1 << bit
            modules[module] = (mask | 1 << bit, flags, merged)
        for variable in reading.environment:
            environment[variable] |= 1 << bit
    progress("writing")
    extras = {
        "environment": {name: f"{mask:x}" for name, mask in environment.items()},
        "platforms": {name: collected[name].platforms for name in ordered},
        "processes": {name: collected[name].processes for name in ordered},
    }
    store.write(path, ordered, modules, extras)
    return tuple(ordered)


def build_into(folder: Path, what: str, *, release: str | None = None, progress: Callable[[str], None] = lambda _: None) -> Path:
    """Read one release and keep it in a folder under its version; return the file.

    Raises:
        CatalogueError: the source cannot be read.
    """
    beside = folder / ".new.zip"
    (version,) = build([what], beside, release=release, progress=progress)
    path = folder / f"{version}.zip"
    beside.replace(path)
    return path


class _Reading:
    """What was read of one release."""

    def __init__(self) -> None:
        self.modules: dict[str, tuple[str, tuple[RowKey, ...]]] = {}
        self.environment: set[str] = set()
        self.platforms: dict[str, Any] = {}
        self.processes: dict[str, Any] = {}


def _read(tree: source.SourceTree, known: dict[tuple[str, bytes], tuple[RowKey, ...]]) -> _Reading:
    reading = _Reading()
    for file in tree.files:
        if file.content is None:
            reading.modules.setdefault(file.module, ("o", ()))
            continue
        key = (file.module, sha256(file.content).digest())
        if key not in known:
            known[key] = _rows(file)
        reading.modules[file.module] = ("p" if file.is_package else "", known[key])
        for match in _ENVIRONMENT.finditer(file.content):
            reading.environment.add((match[1] or match[2]).decode())
    reading.platforms = platforms.extract(tree)
    reading.processes = processes.extract(tree)
    return reading


def _rows(file: SourceFile) -> tuple[RowKey, ...]:
    assert file.content is not None
    try:
        names = read_module(file.content, file.module, is_package=file.is_package)
    except (SyntaxError, ValueError, RecursionError):
        return (("@dyn", "m", "", ""),)  # a template or a newer Python: nothing can be said about its names
    rows: list[RowKey] = []
    _spell("", names.names, rows)
    return (*rows, *_marks(names))


def _spell(prefix: str, names: dict[str, Binding], rows: list[RowKey]) -> None:
    for name, binding in names.items():
        code = binding.code + binding.flags + "?" * binding.maybe + "~" * binding.varies
        rows.append((prefix + name, code, binding.text, binding.decorators))
        _spell(f"{prefix}{name}.", binding.members, rows)


def _marks(names: ModuleNames) -> Iterable[RowKey]:
    for index, star in enumerate(names.stars):
        yield (f"*{index}", "m", star, "")
    if names.exports is not None:
        yield ("@all", "m", " ".join(names.exports), "")
    if names.served is not None:
        yield ("@get", "m", " ".join(names.served), "")
    if names.dynamic:
        yield ("@dyn", "m", "", "")
