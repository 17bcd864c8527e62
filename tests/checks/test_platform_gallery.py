"""Every flaw of an SRT platform fires its rule and no other; sound platforms are clean. One run of doctor for all."""

from __future__ import annotations

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.checks.rehearsal import Limits
from tests.checks.conftest import by_name, run
from tests.checks.galleries import PLATFORMS, lay_platforms
from tests.plugins.install import Site


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("platforms")
    site = Site(root / "site")
    lay_platforms(site)
    return run(site, root / "cwd", limits=Limits(timeout=8, memory=256 << 20), runtimes=("srt",))


@pytest.mark.parametrize("name", PLATFORMS)
def test_one_flaw_one_rule(report, name):
    found = {f.code: f for f in by_name(report)[name] if f.level is not Level.INFO}
    told = "\n".join(f"{f.code} {f.message} | {f.cause}" for f in found.values())
    assert set(found) == PLATFORMS[name][2], told
    assert all(f.hint for f in found.values()), told


def test_what_ends_the_start_is_an_error(report):
    names = ("memory_in_gib", "memory_is_nothing", "collective_misspelt", "type_upper_case", "attention_none", "attention_misspelt")
    found = {name: [f for f in by_name(report)[name] if f.code in {"SP412", "SP415"}] for name in names}
    assert {name: [f.level for f in rows] for name, rows in found.items()} == {name: [Level.ERROR] for name in names}
    hints = {name: rows[0].hint for name, rows in found.items()}
    assert hints["type_upper_case"] == "did you mean 'cpu'?"
    assert hints["collective_misspelt"] == "did you mean 'gloo'?"
    assert hints["attention_misspelt"] == "did you mean 'torch_native'?"
