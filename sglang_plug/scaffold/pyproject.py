"""An entry point added to somebody's `pyproject.toml`. Owns the rule that nothing else in it changes: the result is parsed and compared."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.errors import ScaffoldError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER = re.compile(r"\s*\[(?!\[).*\]\s*(#.*)?")
_ANY_HEADER = re.compile(r"\s*\[")


@dataclass(frozen=True)
class Project:
    """A `pyproject.toml` that was read.

    Attributes:
        path: the file.
        text: its content, line ends as they are.
        data: what it says.
        table: the keys of the table that holds entry points, by the file's own build tool.
    """

    path: Path
    text: str
    data: dict[str, Any]
    table: tuple[str, ...]

    @property
    def name(self) -> str:
        """The distribution's name."""
        place = _at(self.data, "project") or _at(self.data, "tool", "poetry") or _at(self.data, "tool", "flit", "metadata") or {}
        return str(place.get("name") or place.get("module") or "")

    def entry_points(self, group: str) -> dict[str, str]:
        """Return the entry points of `group`."""
        return dict(_at(self.data, *self.table, group) or {})


def read(folder: Path) -> Project:
    """Read the project in `folder`.

    Raises:
        ScaffoldError: there is none, it cannot be parsed, or its entry points are not kept in the file.
    """
    import tomllib

    path = folder if folder.name == "pyproject.toml" else folder / "pyproject.toml"
    try:
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise _no_project(path) from None
    except (OSError, UnicodeDecodeError) as exc:
        raise ScaffoldError("the project file cannot be read", subject=str(path), cause=str(exc)) from exc
    if text.startswith("\ufeff"):
        cause = "it starts with a byte-order mark, and build tools do not read TOML with one"
        raise ScaffoldError(
            "the project file is not TOML", subject=str(path), cause=cause, hint="save it as UTF-8 without a byte-order mark"
        )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ScaffoldError("the project file is not TOML", subject=str(path), cause=str(exc)) from exc
    table = _table(path, data)
    _refuse_odd(path, data, table)
    return Project(path, text, data, table)


def _at(data: dict[str, Any], *keys: str) -> dict[str, Any] | None:
    """The table at `keys`; None where there is none."""
    place: Any = data
    for key in keys:
        place = place.get(key) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else None


def _refuse_odd(path: Path, data: dict[str, Any], table: tuple[str, ...]) -> None:
    place = _at(data, *table)
    odd = [group for group, names in (place or {}).items() if not isinstance(names, dict)]
    if place is None and table[-1] in (_at(data, *table[:-1]) or {}):
        odd, table = [table[-1]], table[:-1]
    if odd:
        cause = f"{_dotted(*table, odd[0])} is not a table of names, and build tools refuse it"
        raise ScaffoldError("the entry points in the project file are malformed", subject=str(path), cause=cause, hint="correct it first")


def _no_project(path: Path) -> ScaffoldError:
    older = [name for name in ("setup.cfg", "setup.py") if (path.parent / name).is_file()]
    if older:
        return ScaffoldError(
            "the project has no pyproject.toml to add the entry point to",
            subject=str(path.parent),
            cause=f"{' and '.join(older)} may hold its entry points, which are edited by hand",
            hint="add a pyproject.toml with [build-system] and [project] (name, version); or make a package of its own, without --into",
        )
    hint = "`sglang-plug new-hook NAME --target …` without --into makes a package of its own"
    return ScaffoldError("there is no project to add to", subject=str(path), hint=hint)


#: Where build tools keep entry points, in the order in which they are looked for: the table that tells, and the one that holds them.
_TABLES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("project", "entry-points"), ("project", "entry-points")),
    (("tool", "poetry", "plugins"), ("tool", "poetry", "plugins")),
    (("project",), ("project", "entry-points")),
    (("tool", "poetry"), ("tool", "poetry", "plugins")),
    (("tool", "flit", "metadata"), ("tool", "flit", "entrypoints")),
)


def _table(path: Path, data: dict[str, Any]) -> tuple[str, ...]:
    project = _at(data, "project")
    if project is not None and "entry-points" in (project.get("dynamic") or ()):
        raise ScaffoldError(
            "the entry points are not in the project file",
            subject=str(path),
            cause='project.dynamic lists "entry-points": setup.py or setup.cfg holds them',
            hint="add the entry point there, or move them into pyproject.toml",
        )
    for sign, table in _TABLES:
        if _at(data, *sign) is None:
            continue
        return table
    raise ScaffoldError(
        "the project file describes no project",
        subject=str(path),
        cause="it has neither [project] nor [tool.poetry]; setup.py or setup.cfg does, perhaps",
        hint="add a [project] table with name and version first",
    )


def with_entry_point(project: Project, group: str, name: str, value: str) -> str:
    """Return the file's text with the entry point in it; the same text where it is there already.

    Raises:
        ScaffoldError: the name is taken by another value, or there is no way to add it that leaves the rest alone.
    """
    present = project.entry_points(group).get(name)
    if present == value:
        return project.text
    if present is not None:
        raise ScaffoldError(
            "the entry point's name is taken", subject=f"{group}: {name}", cause=f"it is {present} already", hint="choose another name"
        )
    wanted = copy.deepcopy(project.data)
    table = wanted
    for key in (*project.table, group):
        table = table.setdefault(key, {})
    table[name] = value
    for candidate in _candidates(project, group, name, value):
        if _says(candidate) == wanted:
            return candidate
    raise ScaffoldError(
        "the entry point cannot be added without changing other lines",
        subject=str(project.path),
        hint=f'add it by hand: [{_dotted(*project.table, group)}], then {_key(name)} = "{value}"',
    )


def _says(text: str) -> dict[str, Any] | None:
    """What the text says; None where it is not TOML."""
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _candidates(project: Project, group: str, name: str, value: str) -> Iterator[str]:
    """Yield texts, the tidiest first: in the group's table, as a new table after its neighbours, inside an inline table."""
    end = "\r\n" if "\r\n" in project.text else "\n"
    line = f'{_key(name)} = "{value}"{end}'
    lines = re.findall(r"[^\n]*\n|[^\n]+", project.text)

    def with_text(added: str, at: int) -> str:
        before = "".join(lines[:at])
        return before + ("" if not before or before.endswith("\n") else end) + added + "".join(lines[at:])

    sections = list(_sections(lines))
    own = (*project.table, group)
    for path, _, last in sections:
        if path == own:
            yield with_text(_indent(lines, last) + line, last)
    block = f"{end}[{_dotted(*own)}]{end}{line}"
    for depth in range(len(project.table), 0, -1):
        for path, _, last in reversed(sections):
            if path[:depth] == project.table[:depth]:
                yield with_text(block, last)
    yield from _inline(project, group, name, value)
    yield with_text(block, len(lines))


def _sections(lines: list[str]) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield (keys, first line, line after the last one that says something) of each table that has a header."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    starts: list[tuple[int, tuple[str, ...] | None]] = []
    for number, line in enumerate(lines):
        if not _ANY_HEADER.match(line):
            continue
        keys: tuple[str, ...] | None = None
        if _HEADER.fullmatch(line.strip()):
            try:
                keys = _path(tomlkit.parse(line).unwrap())
            except TOMLKitError:
                continue  # a line of a value that spans lines
        starts.append((number, keys))
    for (first, path), (stop, _) in zip(starts, [*starts[1:], (len(lines), None)], strict=False):
        last = stop
        while last > first + 1 and (not lines[last - 1].strip() or lines[last - 1].lstrip().startswith("#")):
            last -= 1
        if path is not None:
            yield path, first, last


def _path(nested: dict[str, Any]) -> tuple[str, ...]:
    keys: list[str] = []
    while nested:
        key, nested = next(iter(nested.items()))
        keys.append(key)
    return tuple(keys)


def _inline(project: Project, group: str, name: str, value: str) -> Iterator[str]:
    """Yield the text with an inline table changed, which only tomlkit can do; nothing where it cannot."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(project.text)
        table: Any = document
        for key in (*project.table, group):
            if key not in table:
                table[key] = tomlkit.inline_table()
            table = table[key]
        table[name] = value
        yield tomlkit.dumps(document)
    except TOMLKitError:
        return


def _indent(lines: list[str], last: int) -> str:
    text = lines[last - 1]
    return text[: len(text) - len(text.lstrip())]


def _dotted(*keys: str) -> str:
    return ".".join(map(_key, keys))


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else f'"{text}"'
