"""Every flaw of a hook plugin fires its rule and no other; sound plugins are clean. One run of doctor for all."""

from __future__ import annotations

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.checks.rehearsal import Limits
from tests.checks.conftest import by_name, run
from tests.checks.galleries import HOOKS, lay_hooks
from tests.plugins.install import Site


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("hooks")
    site = Site(root / "site")
    lay_hooks(site)
    return run(site, root / "cwd", limits=Limits(timeout=8, memory=1 << 30), runtimes=("srt",))


@pytest.mark.parametrize("name", HOOKS)
def test_one_flaw_one_rule(report, name):
    found = {f.code: f for f in by_name(report)[name] if f.level is not Level.INFO}
    told = "\n".join(f"{f.code} {f.message} | {f.cause}" for f in found.values())
    assert set(found) == HOOKS[name][1], told
    assert all(f.hint for f in found.values()), told


def test_a_hook_is_judged_by_the_release_and_the_standins_difference_is_said(report):
    (info,) = [f for f in by_name(report)["ok_as_the_release_alone"] if f.code == "SP513"]
    assert info.level is Level.INFO
    assert "fits SGLang 0.5.23; the stand-in's target has (self, server_args, port_args, gpu_id, tp_rank)" in info.message


def test_a_dropped_result_is_an_error_where_the_release_promises_one(report):
    levels = {name: f.level for name in ("drops_batch", "drops_result") for f in by_name(report)[name] if f.code == "SP514"}
    assert levels == {"drops_batch": Level.ERROR, "drops_result": Level.WARNING}
