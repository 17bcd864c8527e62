"""The tool alone is installed, without what its engine needs: that is said in a line, with the command that helps."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sglang_plug import standin
from sglang_plug.errors import TargetError
from sglang_plug.standin.missing import Missing

if TYPE_CHECKING:
    from pathlib import Path

#: As where only the tool is installed: nothing of the engine's own packages is found.
BARE = """
import importlib.abc, sys
ENGINE = {{"torch", "fastapi", "uvicorn", "zmq", "tokenizers", "safetensors", "numpy", "PIL"}} - {kept}
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ENGINE:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ENGINE else find(name, package)
import sglang.cli.main
raise SystemExit(sglang.cli.main.main([{command!r}]))
"""


@pytest.mark.parametrize("command", ["serve", "generate"])
@pytest.mark.parametrize(
    "kept", [set(), {"uvicorn", "fastapi", "zmq", "tokenizers", "safetensors", "numpy", "PIL"}], ids=["bare", "no-torch"]
)
def test_what_the_engine_lacks_is_said_in_a_line(command: str, kept: set[str], tmp_path: Path):
    code = BARE.format(kept=kept or "set()", command=command)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=standin.environment(), cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    said, hint = done.stderr.splitlines()
    assert said.startswith(f"sglang {command}: the stand-in engine needs what is not installed: ")
    assert "torch" in said
    assert ("uvicorn" in said) is not bool(kept)
    assert hint.startswith("hint: pip install 'sglang-plug[engine]'")


def test_a_target_that_is_gone_ends_nothing_where_the_catalogue_cannot_be_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "sglang_plug.contract", None)
    error = (TargetError, TargetError("gone"), None)
    assert Missing().filter(logging.LogRecord("x", logging.ERROR, "f", 1, "%s", ("sglang.gone",), error))
