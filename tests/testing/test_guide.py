"""The guide for plugin authors tells every test and fixture there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sglang_plug.testing import HookContract, PlatformContract, plugin

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("contract", [PlatformContract, HookContract])
def test_every_conformance_test_is_in_the_guide_with_its_docstring(contract: type) -> None:
    for name in dir(contract):
        if name.startswith("test_"):
            first = getattr(contract, name).__doc__.splitlines()[0].replace(" (S6.1)", "")
            assert re.search(rf"\| `{name}` \|.* {re.escape(first)} \|", GUIDE), name


def test_nothing_else_is_in_the_guide() -> None:
    known = {name for contract in (PlatformContract, HookContract) for name in dir(contract)}
    assert set(re.findall(r"^\| `(test_\w+)`", GUIDE, re.MULTILINE)) <= known


def test_every_fixture_is_in_the_guide() -> None:
    fixtures = [name for name in vars(plugin) if type(getattr(plugin, name)).__name__ == "FixtureFunctionDefinition"]
    assert sorted(fixtures) == ["fake_install", "hooked", "plugin_world", "spawned_worker"]
    assert all(f"\n### `{name}`\n" in GUIDE for name in fixtures)
