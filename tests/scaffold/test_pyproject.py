"""An entry point goes into any pyproject.toml as added lines; everything that was there stays, letter by letter."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold import pyproject

if TYPE_CHECKING:
    from pathlib import Path

GROUP = "sglang.srt.plugins"

STYLES = {
    "no entry points": '[project]\nname = "x"   # the name\nversion = "1"\n\n# tools\n[tool.ruff]\nline-length = 100\n',
    "another group": '[project]\nname = "x"\n[project.entry-points."sglang.srt.platforms"]\nx = "x:activate"\n\n[tool.a]\nb = 1\n',
    "the group": f'[project]\nname = "x"\n[project.entry-points."{GROUP}"]\n# ours\nold = "x:old"  # keep\n\n# tools\n[tool.a]\n',
    "single quotes": f"[project]\nname = 'x'\n[project.entry-points.'{GROUP}']\nold = 'x:old'\n",
    "spaced header": f'[project]\nname = "x"\n[ project . entry-points . "{GROUP}" ]\n  old = "x:old"\n[tool.z]\n',
    "no last newline": '[project]\nname = "x"',
    "windows line ends": f'[project]\r\nname = "x"\r\n[project.entry-points."{GROUP}"]\r\nold = "x:old"\r\n[tool.a]\r\nb = 1\r\n',
    "project last": '[tool.a]\nb = 1\n\n[project]\nname = "x"\nauthors = [\n  { name = "me" },\n]\n',
    "a value that looks like a header": '[project]\nname = "x"\ndescription = """\n[project.entry-points]\n"""\n[tool.a]\nb = 1\n',
    "the group's header in a text": (f'[project]\nname = "x"\n[tool.a]\nb = """\n[project.entry-points."{GROUP}"]\nold = "x:old"\n"""\n'),
    "empty group": f'[project]\nname = "x"\n[project.entry-points."{GROUP}"]\n\n[tool.a]\nb = 1\n',
    "array of tables after": '[project]\nname = "x"\n\n[[tool.mypy.overrides]]\nmodule = "y"\n',
    "out of order": '[project]\nname = "x"\n[tool.a]\nb = 1\n[project.urls]\nhome = "h"\n[tool.c]\nd = 2\n',
    "no last newline, elsewhere": '[project]\nname = "x"\n# end',
    "nested dotted keys": f'[project]\nname = "x"\n[project.entry-points]\n"{GROUP}".old = "x:old"\n[tool.a]\nb = 1\n',
    "line separators in a text": '[project]\nname = "x"\ndescription = "a\u2028b\u0085c"\n[tool.a]\nb = 1\n',
    "poetry beside a project": f'[project]\nname = "x"\n[tool.poetry.plugins."{GROUP}"]\nold = "x:old"\n',
    "flit before [project]": f'[tool.flit.metadata]\nmodule = "x"\n[tool.flit.entrypoints."{GROUP}"]\nold = "x:old"\n',
    "poetry": '[tool.poetry]\nname = "x"\n\n[tool.poetry.dependencies]\npython = "^3.11"\n',
    "poetry with plugins": f'[tool.poetry]\nname = "x"\n[tool.poetry.plugins."{GROUP}"]\nold = "x:old"\n',
}
INLINE = {
    "inline group": f'[project]\nname = "x"  # n\n\n[project.entry-points]\n"{GROUP}" = {{ old = "x:old" }}\nother = {{ a = "b:c" }}\n',
    "a project in one line": 'project = { name = "x" }\n',
    "a dotted project": 'project.name = "x"\nproject.version = "1"\n',
    "dotted keys": f'[project]\nname = "x"\nentry-points."{GROUP}".old = "x:old"\nversion = "1"\n',
    "inline everything": f'[project]\nname = "x"\nentry-points = {{ "{GROUP}" = {{ old = "x:old" }} }}\nversion = "1"\n',
}


def project(tmp_path: Path, text: str) -> pyproject.Project:
    (tmp_path / "pyproject.toml").write_bytes(text.encode())
    return pyproject.read(tmp_path)


def holder(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the table that holds the table of entry points, and its key there."""
    tool = data.get("tool", {})
    if "plugins" in tool.get("poetry", {}) or ("poetry" in tool and "project" not in data):
        return tool["poetry"], "plugins"
    return (tool["flit"], "entrypoints") if "flit" in tool else (data["project"], "entry-points")


def entry_points(text: str) -> dict[str, str]:
    place, key = holder(tomllib.loads(text))
    return place[key][GROUP]


@pytest.mark.parametrize("style", STYLES)
def test_lines_are_only_added(tmp_path: Path, style: str) -> None:
    before = STYLES[style]
    after = pyproject.with_entry_point(project(tmp_path, before), GROUP, "new", "x.new:register")
    assert entry_points(after)["new"] == "x.new:register"
    left = iter(after.splitlines())
    assert all(line in left for line in before.splitlines()), "a line is gone, changed or moved"
    added = len(after.splitlines()) - len(before.splitlines())
    assert added == 1 if project(tmp_path, before).entry_points(GROUP) else added <= 3
    assert ("\r\n" in before) == ("\r\n" in after)
    assert "\n" not in after.replace("\r\n", "") or "\r\n" not in before


@pytest.mark.parametrize("style", INLINE)
def test_inline_tables_change_in_their_own_line_only(tmp_path: Path, style: str) -> None:
    before = INLINE[style]
    after = pyproject.with_entry_point(project(tmp_path, before), GROUP, "new", "x.new:register")
    assert entry_points(after)["new"] == "x.new:register"
    changed = [line for line in before.splitlines() if line not in after.splitlines()]
    assert all(GROUP in line or line.startswith("project = {") for line in changed)


@pytest.mark.parametrize("style", STYLES | INLINE)
def test_nothing_else_is_said_than_before(tmp_path: Path, style: str) -> None:
    before = (STYLES | INLINE)[style]
    after = tomllib.loads(pyproject.with_entry_point(project(tmp_path, before), GROUP, "new", "x:y"))
    place, key = holder(after)
    del place[key][GROUP]["new"]
    wanted = tomllib.loads(before)
    holder(wanted)[0].setdefault(key, {}).setdefault(GROUP, {})
    assert after == wanted


@pytest.mark.parametrize("style", STYLES | INLINE)
def test_adding_again_changes_nothing(tmp_path: Path, style: str) -> None:
    once = pyproject.with_entry_point(project(tmp_path, (STYLES | INLINE)[style]), GROUP, "new", "x:y")
    assert pyproject.with_entry_point(project(tmp_path, once), GROUP, "new", "x:y") == once


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="taken") as refusal:
        pyproject.with_entry_point(project(tmp_path, STYLES["the group"]), GROUP, "old", "y:z")
    assert refusal.value.cause == "it is x:old already"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[project]\nname = "x"\ndynamic = ["version", "entry-points"]\n', "not in the project file"),
        ("[build-system]\nrequires = []\n", "describes no project"),
        ("[project\n", "not TOML"),
        ("ÿ", "not TOML"),
        ('\ufeff[project]\nname = "x"\n', "not TOML"),
        ("", "describes no project"),
        ('project = "x"\n', "describes no project"),
        ('tool = "x"\n', "describes no project"),
        ('[project]\nname = "x"\nentry-points = "y"\n', "malformed"),
        (f'[project]\nname = "x"\n[project.entry-points]\n"{GROUP}" = ["a = b"]\n', "malformed"),
    ],
)
def test_a_project_that_cannot_take_it_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScaffoldError) as refusal:
        project(tmp_path, text)
    assert message in refusal.value.message


def test_a_project_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes("[project]\nname = 'Ä'\n".encode("latin-1"))
    with pytest.raises(ScaffoldError, match="cannot be read"):
        pyproject.read(tmp_path)


def test_a_project_of_an_older_sort_is_told(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    with pytest.raises(ScaffoldError, match=r"no pyproject\.toml") as refusal:
        pyproject.read(tmp_path)
    assert refusal.value.cause.startswith("setup.py may hold")


def test_a_folder_without_a_project_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="no project to add to"):
        pyproject.read(tmp_path)
