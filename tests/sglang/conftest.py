"""Real SGLang for the tests of this folder: where its python is, and one engine at a time.

`make test-sglang` installs the engines and says where they are; by hand:
    SGLANG_PLUG_REAL_PYTHON=$(python tests/sglang/install_engine.py) pytest tests/sglang -m sglang
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def _engine(variable: str, release: str) -> Path:
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"{variable} is not set: run `make test-sglang` (SGLang {release} is installed for it)")
    path = Path(python)
    assert path.exists(), f"{variable}={python}: no such file"
    return path


@pytest.fixture(scope="session")
def real_sglang() -> Path:
    """Return the python of an environment with real SGLang 0.5.23 on the CPU, without any plugin."""
    return _engine("SGLANG_PLUG_REAL_PYTHON", "0.5.23")


@pytest.fixture(scope="session")
def real_sglang_0522() -> Path:
    """Return the python of an environment with real SGLang 0.5.22, where platforms got capabilities and hooks reached the detokenizer."""
    return _engine("SGLANG_PLUG_REAL_PYTHON_0522", "0.5.22")


@pytest.fixture(scope="session")
def real_sglang_0521() -> Path:
    """Return the python of an environment with real SGLang 0.5.21, the first release with diffusion plugins."""
    return _engine("SGLANG_PLUG_REAL_PYTHON_0521", "0.5.21")


@pytest.fixture(scope="session")
def real_sglang_0517() -> Path:
    """Return the python of an environment with real SGLang 0.5.17, before diffusion plugins and without the diffusion extras."""
    return _engine("SGLANG_PLUG_REAL_PYTHON_0517", "0.5.17")
