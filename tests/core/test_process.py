"""The process's two runtimes: what importing them costs, and that they are apart."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from sglang_plug.core import process
from sglang_plug.core.policy import DIFFUSION, SRT

CORE = Path(process.__file__).parent
# Each of these costs milliseconds that the 30 of the import budget do not have; the chain itself comes when it is walked.
TOO_DEAR = {"dataclasses", "inspect", "importlib.metadata", "email", "multiprocessing", "ctypes", "difflib"}
LATER = {"sglang_plug.core.selection", "sglang_plug.core.detect", "sglang_plug.core.spawn"}


def test_importing_it_is_cheap():
    code = "import sys; before = set(sys.modules); import sglang_plug.core.process; print(*set(sys.modules) - before)"
    loaded = set(
        subprocess.run([sys.executable, "-S", "-c", code], cwd=CORE.parents[1], capture_output=True, text=True, check=True).stdout.split()
    )
    assert "sglang_plug.core.runtime" in loaded
    assert not loaded & (TOO_DEAR | LATER)


def test_the_runtimes_are_apart():
    assert process.srt.policy is SRT
    assert process.diffusion.policy is DIFFUSION
    assert process.srt.hooks is not process.diffusion.hooks
    assert process.srt.loading is not process.diffusion.loading


@pytest.mark.parametrize("file", sorted(CORE.glob("*.py")), ids=lambda file: file.name)
def test_it_keeps_to_python_3_10_and_the_standard_library(file: Path):
    tree = ast.parse(file.read_text(), feature_version=(3, 10))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    vendors = {"torch", "torchada", "amdsmi", "pymtml"} if file.name == "detect.py" else set()
    assert names <= set(sys.stdlib_module_names) | {"sglang_plug"} | vendors


def test_vendor_libraries_are_imported_inside_functions():
    tree = ast.parse((CORE / "detect.py").read_text())
    top = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert not top & {"torch", "torchada", "amdsmi", "pymtml", "ctypes"}
