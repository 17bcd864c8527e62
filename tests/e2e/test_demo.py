"""The demo is what a newcomer runs first: it must answer, and leave nothing but its picture."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

DEMO = Path(__file__).with_name("demo.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder with a short path: sockets live below it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="demo-") as name:
        yield Path(name)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_answers_and_leaves_only_its_picture(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TMPDIR", str(folder))
    done = subprocess.run([sys.executable, DEMO], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for command in ("new-platform mydev", "-m pip install", "doctor", "resolve", "serve --platform mydev"):
        assert f"$ sglang-plug {command}" in done.stdout or command in done.stdout
    assert "answer: '" in done.stdout
    assert "no process is left" in done.stdout
    (picture,) = folder.iterdir()
    assert picture.read_bytes().startswith(b"\x89PNG")
