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
        place = self.data.get("project") or self.data.get("tool", {}).get("poetry", {})
        return str(place.get("name", ""))

    def entry_points(self, group: str) -> dict[str, str]:
        """Return the entry points of `group`."""
        found: Any = self.data
        for key in (*self.table, group):
            found = found.get(key, {})
        return dict(found)


def read(folder: Path) -> Project:
    """Read the project in `folder`.

    Raises:
        ScaffoldError: there is none, it cannot be parsed, or its entry points are not kept in the file.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    path = folder if folder.name == "pyproject.toml" else folder / "pyproject.toml"
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        hint = "`sglang-plug new-hook NAME --target …` without --into makes a package of its own"
        raise ScaffoldError("there is no project to add to", subject=str(path), hint=hint) from None
    except (OSError, UnicodeDecodeError) as exc:
        raise ScaffoldError("the project file cannot be read", subject=str(path), cause=str(exc)) from exc
    try:
        data = tomlkit.parse(text).unwrap()
    except TOMLKitError as exc:
        raise ScaffoldError("the project file is not TOML", subject=str(path), cause=str(exc)) from exc
    return Project(path, text, data, _table(path, data))


def _table(path: Path, data: dict[str, Any]) -> tuple[str, ...]:
    if "project" in data:
        if "entry-points" in data["project"].get("dynamic", ()):
            raise ScaffoldError(
                "the entry points are not in the project file",
                subject=str(path),
                cause='project.dynamic lists "entry-points": setup.py or setup.cfg holds them',
                hint="add the entry point there, or move them into pyproject.toml",
            )
        return ("project", "entry-points")
    if "poetry" in data.get("tool", {}):
        return ("tool", "poetry", "plugins")
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
    lines = project.text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += end
    sections = list(_sections(lines))
    own = (*project.table, group)
    for path, _, last in sections:
        if path == own:
            yield "".join([*lines[:last], _indent(lines, last) + line, *lines[last:]])
    block = f"[{_dotted(*own)}]{end}{line}"
    for depth in range(len(project.table), 0, -1):
        for path, _, last in reversed(sections):
            if path[:depth] == project.table[:depth]:
                yield "".join([*lines[:last], end + block, *lines[last:]])
    yield _inline(project, group, name, value)


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
    for (first, path), (stop, _) in zip(starts, [*starts[1:], (len(lines), None)], strict=True):
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


def _inline(project: Project, group: str, name: str, value: str) -> str:
    """The text with an inline table changed, which only tomlkit can do."""
    import tomlkit

    document = tomlkit.parse(project.text)
    table: Any = document
    for key in (*project.table, group):
        if key not in table:
            table[key] = tomlkit.inline_table()
        table = table[key]
    table[name] = value
    return tomlkit.dumps(document)


def _indent(lines: list[str], last: int) -> str:
    text = lines[last - 1]
    return text[: len(text) - len(text.lstrip())]


def _dotted(*keys: str) -> str:
    return ".".join(map(_key, keys))


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else f'"{text}"'
