"""Files are put in their place all at once or not at all, and nothing is written over unasked."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold import tree

FILES = {"README.md": "hello\n", "pkg/__init__.py": "", "pkg/deep/x.py": "x = 1\n"}


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_new_folder_holds_the_files_and_nothing_else(tmp_path: Path) -> None:
    done = tree.write(FILES, tmp_path / "new" / "deep" / "pkg")
    assert content(tmp_path) == {f"new/deep/pkg/{name}": text for name, text in FILES.items()}
    assert done.create == tuple(FILES)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    target = tmp_path / "there"
    target.mkdir()
    tree.write(FILES, target)
    assert content(target) == FILES
    assert os.listdir(tmp_path) == ["there"]


def test_a_folder_with_a_users_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    with pytest.raises(ScaffoldError, match="not empty") as refusal:
        tree.write(FILES, tmp_path)
    assert refusal.value.cause == "would change: README.md\n1 other file is there"
    assert content(tmp_path) == {"README.md": "mine", "notes.txt": "mine too"}


def test_force_overwrites_what_differs_and_keeps_the_rest(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine too")
    done = tree.write(FILES, tmp_path, force=True)
    assert content(tmp_path) == {**FILES, "notes.txt": "mine too"}
    assert done.change == ("README.md",)


def test_writing_twice_changes_nothing(tmp_path: Path) -> None:
    tree.write(FILES, tmp_path / "x")
    assert tree.plan(FILES, tmp_path / "x") == tree.Plan(tmp_path / "x", (), (), tuple(FILES), 0)


def attempt(target: Path) -> ScaffoldError | None:
    try:
        tree.write(FILES, target, force=True)
    except ScaffoldError as refusal:
        return refusal
    return None


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("moment", range(1, 8))
def test_a_full_disk_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, existing: bool) -> None:
    target = tmp_path / "parent" / "x"
    before = {}
    if existing:
        target.mkdir(parents=True)
        (target / "README.md").write_text("mine")
        before = {"parent/x/README.md": "mine"}
    calls = 0

    def failing(real):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == moment:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", failing(Path.write_bytes))
        patch.setattr(os, "rename", failing(os.rename))
        refusal = attempt(target)
    if refusal is None:
        assert calls < moment  # the moment never came: nothing was left to fail
        return
    assert refusal.cause == "No space left on device"
    assert "make room" in refusal.hint
    assert content(tmp_path) == before
    assert existing or os.listdir(tmp_path) == []


def test_a_target_that_is_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ScaffoldError, match="symbolic link") as refusal:
        tree.write(FILES, tmp_path / "link", force=True)
    assert refusal.value.cause == "it points to real"
    assert content(tmp_path / "real") == {}


@pytest.mark.parametrize("name", ["pkg", "README.md"])
def test_a_symbolic_link_inside_the_target_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ScaffoldError, match="symbolic link"):
        tree.write(FILES, tmp_path / "x", force=True)
    assert content(tmp_path / "elsewhere") == {}


def test_a_file_where_the_folder_would_go_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a file")
    with pytest.raises(ScaffoldError, match="is a file"):
        tree.write(FILES, tmp_path / "x", force=True)


@pytest.mark.parametrize(("kind", "message"), [("file", "a file is where a folder would go"), ("link", "symbolic link is in the way")])
def test_a_parent_that_is_no_folder_is_told(tmp_path: Path, kind: str, message: str) -> None:
    place = tmp_path / "x"
    place.touch() if kind == "file" else place.symlink_to("nowhere")
    with pytest.raises(ScaffoldError, match=message) as refusal:
        tree.write(FILES, place / "deep" / "y")
    assert refusal.value.subject == str(place)
    assert os.listdir(tmp_path) == ["x"]


def test_a_place_where_nobody_can_write_is_told() -> None:
    with pytest.raises(ScaffoldError, match="nothing was written") as refusal:
        tree.write(FILES, Path("/proc/x"))
    assert "--output" in refusal.value.hint


def test_a_project_is_added_to_all_at_once(tmp_path: Path) -> None:
    """Its own files stay, one gains lines and keeps its permissions, and what is in the way stops everything."""
    path = tmp_path / "pyproject.toml"
    path.write_text("old")
    path.chmod(0o640)
    (tmp_path / "mine.py").touch()
    tree.write({"pyproject.toml": "new", "a.py": "a"}, tmp_path, edits=["pyproject.toml"])
    assert path.stat().st_mode & 0o777 == 0o640
    assert content(tmp_path) == {"a.py": "a", "mine.py": "", "pyproject.toml": "new"}
    with pytest.raises(ScaffoldError, match="in the way") as refusal:
        tree.write({"pyproject.toml": "newer", "a.py": "b"}, tmp_path, edits=["pyproject.toml"])
    assert refusal.value.cause == "would change: a.py"
    assert content(tmp_path) == {"a.py": "a", "mine.py": "", "pyproject.toml": "new"}
