"""A fake installation and a child that looks at it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from sglang_plug.probe.environment import Environment
from sglang_plug.probe.parent import Probe
from tests.plugins.install import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


@pytest.fixture
def here(site: Site, tmp_path: Path) -> Callable[..., Environment]:
    """The environment of a launch that sees the site."""

    def build(**variables: str) -> Environment:
        site.root.mkdir(parents=True, exist_ok=True)
        return Environment(sys.executable, site.env(**variables), str(tmp_path), "script")

    return build


@pytest.fixture
def probe(here: Callable[..., Environment]) -> Iterator[Probe]:
    with Probe(here()) as found:
        yield found
