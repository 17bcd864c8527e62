"""The catalogue's file: a zip of text blocks; a line is one name with the set of releases that have it. Owns the format, both ways."""

from __future__ import annotations

import json
import os
import re
import zipfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FORMAT = 1
_BLOCK = 384_000  # bytes of text a block: some milliseconds to unpack
_FEW = 6  # searches through all texts that take as long as an index of them
_DEFINED = re.compile(r"^[^\t\n]*\t([^\t\n]+)\t[cfv]", re.MULTILINE)
_EPOCH = (1980, 1, 1, 0, 0, 0)


class Row(NamedTuple):
    """One binding in some releases. `mask` has bit i set where the i-th release of the store has it."""

    mask: int
    name: str
    code: str
    text: str
    decorators: str


class ModuleEntry(NamedTuple):
    """One module in the index. `flags`: `p` package, `o` compiled (its names are not readable)."""

    mask: int
    flags: str
    block: int


@dataclass(frozen=True)
class Store:
    """One catalogue file, read lazily, block by block."""

    path: Path

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except (OSError, zipfile.BadZipFile) as exc:
            raise CatalogueError(
                "a catalogue file cannot be read",
                subject=str(self.path),
                cause=str(exc),
                hint="build it again with `sglang-plug contract build VERSION`, or delete it",
            ) from exc

    def _read(self, member: str) -> str:
        try:
            return self._zip.read(member).decode()
        except (KeyError, OSError, zipfile.BadZipFile, EOFError, ValueError) as exc:
            raise CatalogueError(
                "a catalogue file is damaged",
                subject=str(self.path),
                cause=f"{member}: {exc}",
                hint="build it again with `sglang-plug contract build VERSION`, or delete it",
            ) from exc

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The releases and how the file was made.

        Raises:
            CatalogueError: the file is damaged, or newer than this tool.
        """
        try:
            meta: dict[str, Any] = json.loads(self._read("meta.json"))
        except json.JSONDecodeError as exc:
            raise CatalogueError("a catalogue file is damaged", subject=str(self.path), cause=str(exc)) from exc
        if meta.get("format") != FORMAT:
            raise CatalogueError(
                "a catalogue file has another format than this tool reads",
                subject=str(self.path),
                cause=f"format {meta.get('format')}, wanted {FORMAT}",
                hint="build it again with `sglang-plug contract build VERSION`",
            )
        return meta

    @property
    def releases(self) -> tuple[str, ...]:
        """The releases in this file, oldest first."""
        return tuple(self.meta["releases"])

    @cached_property
    def index(self) -> dict[str, ModuleEntry]:
        """Every module of any release."""
        found = {}
        for line in self._read("index").splitlines():
            name, mask, flags, block = line.split("\t")
            found[name] = ModuleEntry(int(mask, 16), flags, int(block))
        return found

    @cached_property
    def _blocks(self) -> dict[int, dict[str, str]]:
        return {}

    def block(self, number: int) -> dict[str, str]:
        """Return a block's modules as text, by module name."""
        if number not in self._blocks:
            text = self._read(f"block/{number:03}")
            self._blocks[number] = dict(part.partition("\n")[::2] for part in text[1:].split("\n#"))
        return self._blocks[number]

    @lru_cache(maxsize=4096)  # noqa: B019 - stores live as long as the process
    def rows(self, module: str) -> tuple[Row, ...]:
        """Return a module's bindings in all releases, or an empty tuple."""
        entry = self.index.get(module)
        if entry is None:
            return ()
        return tuple(_rows(self.block(entry.block).get(module, ""), entry.mask))

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield every module's name and text."""
        for number in sorted({entry.block for entry in self.index.values()}):
            yield from self.block(number).items()

    @cached_property
    def _asked(self) -> list[str]:
        return []

    @cached_property
    def definitions(self) -> dict[str, tuple[str, ...]]:
        """The modules that define each name (`Class.method` too): their own functions, classes and values, not re-exports."""
        found: dict[str, list[str]] = {}
        for module, text in self.texts():
            for name in dict.fromkeys(_DEFINED.findall(text)):
                found.setdefault(name, []).append(module)
        return {name: tuple(modules) for name, modules in found.items()}

    def defining(self, name: str) -> tuple[str, ...]:
        """Return the modules that define a name: by one look through all texts, or, asked often, by an index of them."""
        self._asked.append(name)
        if len(self._asked) > _FEW:
            return self.definitions.get(name, ())
        mark = f"\t{name}\t"
        return tuple(module for module, text in self.texts() if mark in text and name in _DEFINED.findall(text))

    def table(self, member: str) -> Any:
        """Return one of the tables beside the names: `environment`, `platforms`, `processes`."""
        return json.loads(self._read(f"{member}.json"))


def _rows(text: str, every: int) -> Iterator[Row]:
    for line in text.splitlines():
        fields = line.split("\t")
        fields += [""] * (5 - len(fields))
        yield Row(int(fields[0], 16) if fields[0] else every, *fields[1:5])


def write(
    path: Path,
    releases: Iterable[str],
    modules: dict[str, tuple[int, str, dict[tuple[str, str, str, str], int]]],
    extras: dict[str, Any],
) -> None:
    """Write a catalogue file beside its place and move it there. The same input makes the same bytes.

    Args:
        path: the file.
        releases: oldest first; bit i of a mask is the i-th.
        modules: by name: mask, flags, and the mask of each (name, code, text, decorators).
        extras: tables that are kept as JSON.
    """
    index, blocks, size = [], [[]], 0  # type: ignore[var-annotated]
    for name in sorted(modules):
        mask, flags, rows = modules[name]
        ordered = sorted(rows, key=lambda key: (key[0], rows[key] & -rows[key], key))
        lines = ("\t".join(["" if rows[row] == mask else f"{rows[row]:x}", *row]).rstrip("\t") for row in ordered)
        text = "\n".join([f"#{name}", *lines])
        if size and size + len(text) > _BLOCK:
            blocks.append([])
            size = 0
        blocks[-1].append(text)
        size += len(text)
        index.append(f"{name}\t{mask:x}\t{flags}\t{len(blocks) - 1}")
    members = {"meta.json": _json({"format": FORMAT, "releases": list(releases)}), "index": "\n".join(index)}
    members |= {f"{name}.json": _json(table) for name, table in extras.items()}
    members |= {f"block/{number:03}": "\n".join(texts) for number, texts in enumerate(blocks)}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(beside, "w") as archive:
            for member, content in members.items():
                info = zipfile.ZipInfo(member, _EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED  # every Python has it, and unpacks it fastest
                info.external_attr = 0o644 << 16
                archive.writestr(info, content, compresslevel=9)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
