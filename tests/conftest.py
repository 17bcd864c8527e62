"""Fixtures shared by every part. Its place in the `tests` package puts the repository's root on `sys.path`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugins.install import Site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty fake installation."""
    return Site(tmp_path / "site")
