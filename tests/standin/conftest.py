"""Makes the stand-in importable as `sglang` in this process, on its CPU platform so that no hardware is probed."""

from __future__ import annotations

import os

import pytest

from sglang_plug.standin import finder

if finder.elsewhere() is None:
    finder.install()
    before = os.environ.get("SGLANG_USE_CPU_ENGINE")
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
    import sglang  # noqa: F401 - resolves the platform

    os.environ.pop("SGLANG_USE_CPU_ENGINE") if before is None else os.environ.update(SGLANG_USE_CPU_ENGINE=before)
else:
    pytest.skip("real SGLang is installed here", allow_module_level=True)
