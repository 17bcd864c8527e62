"""What runs inside strangers' interpreters keeps to Python 3.10 and to what every interpreter has, and really runs there."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import sglang_plug.probe
from sglang_plug.probe.decision import decide
from tests.plugins import install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sglang_plug.probe.environment import Environment
    from tests.plugins.install import Site

FOLDER = Path(sglang_plug.probe.__file__).parent
FILES = [FOLDER / "child.py", *sorted((FOLDER / "inside").glob("*.py"))]
PACKAGE = "_sglang_plug_probe"
# Only what the stranger has, imported inside functions: SGLang, torch and the vendors' device libraries.
THEIRS = {"sglang", "torch", "amdsmi", "pymtml"}


def interpreter(*versions: str) -> str:
    """Return a Python of one of these versions that runs, or skip (pyenv's shims are on PATH for versions that are not chosen)."""
    for version in versions:
        found = shutil.which(f"python{version}")
        if found and subprocess.run([found, "-c", "pass"], capture_output=True, check=False).returncode == 0:
            return found
    pytest.skip(f"no python{versions[0]} on PATH")


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_python_3_10_syntax_and_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))
    top = {name for node in tree.body for name in imports(node) if isinstance(node, ast.Import | ast.ImportFrom)}
    assert top <= sys.stdlib_module_names | {PACKAGE}
    assert set(imports(tree)) <= sys.stdlib_module_names | {PACKAGE} | THEIRS


@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13"])
def test_another_interpreter_answers_as_ours(version: str, here: Callable[..., Environment], site: Site) -> None:
    python = interpreter(version)
    install.platform(site)
    install.platform(site, "pb", "def activate():\n    raise OSError('hw')\n")
    mine, theirs = (decide(environment, ("srt",))["srt"] for environment in (here(), replace(here(), python=python)))
    assert (theirs.outcome, theirs.qualname) == (mine.outcome, mine.qualname) == ("plugin", "pa.plat.Plat")
    assert [(step.rule, step.verdict) for step in theirs.steps] == [(step.rule, step.verdict) for step in mine.steps]


def test_an_old_interpreter_is_named_as_that(here: Callable[..., Environment]) -> None:
    python = interpreter("3.9", "3.8")
    with pytest.raises(Exception, match="interpreter ended") as caught:
        decide(replace(here(), python=python), ("srt",))
    assert "too old" in caught.value.cause
