"""SGLang's own hook_registry.py (standard library only), out of an installation or a wheel, run in this process."""

from __future__ import annotations

import os
import subprocess
import types
import zipfile
from pathlib import Path

import pytest

INSIDE = "sglang/srt/plugins/hook_registry.py"


def source() -> str:
    """Return the text of the file; skip the test where neither a wheel nor an installation is named."""
    wheel = os.environ.get("SGLANG_PLUG_REAL_WHEEL")
    if wheel:
        with zipfile.ZipFile(wheel) as archive:
            return archive.read(INSIDE).decode()
    python = os.environ.get("SGLANG_PLUG_REAL_PYTHON")
    if not python:
        pytest.skip("neither SGLANG_PLUG_REAL_PYTHON nor SGLANG_PLUG_REAL_WHEEL is set")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    return (Path(found) / INSIDE).read_text()


def load() -> types.ModuleType:
    """Return a fresh registry module; nothing of it is in `sys.modules`."""
    module = types.ModuleType("sglang.srt.plugins.hook_registry")
    exec(compile(source(), INSIDE, "exec"), module.__dict__)
    return module
