"""The folder of the sockets: where the user's temporary folder is, unless the system's limit for a socket's path forbids it."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest

from sglang_plug.standin import meeting
from tests.standin.server import Server


def deep(root: Path, length: int) -> Path:
    """Make a folder whose path has exactly `length` bytes."""
    left = length - len(str(root)) - 1
    folder = root / ("d" * left)
    folder.mkdir()
    assert len(os.fsencode(folder)) == length
    return folder


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch):
    """Make a folder of a given length the temporary folder."""
    with tempfile.TemporaryDirectory(dir="/tmp") as root:

        def use(length: int) -> Path:
            folder = deep(Path(root), length)
            monkeypatch.setattr(tempfile, "tempdir", str(folder))
            return folder

        yield use


# "/" + "pre-" + mkdtemp's eight letters + "/" + "detokenizer" are 25 bytes; 103 are allowed on every system.
@pytest.mark.parametrize(("length", "stays"), [(40, True), (78, True), (79, False), (200, False)])
def test_a_socket_can_be_bound_in_it_however_long_the_temporary_folder_is(place, length: int, stays: bool) -> None:
    temporary = place(length)
    folder = Path(meeting.make_folder("pre-", "detokenizer"))
    try:
        assert folder.parent == (temporary if stays else Path("/tmp"))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(str(folder / "detokenizer"))
        assert list(temporary.iterdir()) == ([folder] if stays else [])  # nothing else is left there
    finally:
        shutil.rmtree(folder)


def test_what_a_killed_process_left_is_removed_by_the_next(place) -> None:
    temporary = place(40)
    code = "from sglang_plug.standin.meeting import make_folder; print(make_folder('pre-', 'x'), flush=True); input()"
    kept = Path(meeting.make_folder("pre-", "x"))
    (temporary / "pre-of-somebody-else").mkdir()
    env = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        second = Path(meeting.make_folder("pre-", "x"))
        assert {kept, theirs, second} < set(temporary.iterdir())
        other.kill()
    third = Path(meeting.make_folder("pre-", "x"))
    assert set(temporary.iterdir()) == {kept, second, third, temporary / "pre-of-somebody-else"}


def test_the_server_answers_under_a_long_temporary_folder(tmp_path: Path) -> None:
    env = {**os.environ, "SGLANG_USE_CPU_ENGINE": "1", "TMPDIR": str(deep(tmp_path, 200))}
    with Server(env=env) as server:
        question = {"text": "x", "sampling_params": {"max_new_tokens": 1}}
        assert httpx.post(f"{server.url}/generate", json=question, timeout=30).status_code == 200
