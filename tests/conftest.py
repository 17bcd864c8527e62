"""Fixtures shared by every part. Its place in the `tests` package puts the repository's root on `sys.path`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.plugins.install import Site

if TYPE_CHECKING:
    from pathlib import Path

# The same examples every time, so that a run's verdict is about the change; `SGLANG_PLUG_FUZZ=1` looks for new ones.
settings.register_profile("steady", derandomize=True, database=None)
settings.register_profile("fuzz", database=None)
settings.load_profile("fuzz" if os.environ.get("SGLANG_PLUG_FUZZ") else "steady")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty fake installation."""
    return Site(tmp_path / "site")
