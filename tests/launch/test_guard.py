"""The guard reads records of the engine's processes and ends a launch that would serve on the wrong thing."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from sglang_plug.checks.model import Finding, Level
from sglang_plug.core.entrypoints import Candidate
from sglang_plug.core.resolution import Resolution
from sglang_plug.core.selection import Choice
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.guard import Guard
from sglang_plug.launch.plan import Plan
from sglang_plug.launch.preflight import Preflight
from sglang_plug.launch.recorder import host
from sglang_plug.probe.environment import Environment

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = Resolution("srt", "plugin", "acme", "acme.Plat", "acme-dist")
CUDA = Resolution("srt", "builtin", "cuda", "sglang.srt.platforms.cuda.CudaSRTPlatform")
CHOICES = (
    Choice(Candidate("own", "o:r", "sglang.srt.plugins", "acme-dist", "1"), "load", "installed", required=False),
    Choice(Candidate("other", "x:r", "sglang.srt.plugins", "other-dist", "1"), "load", "installed"),
)


class Told:
    def __init__(self) -> None:
        self.processes: list[str] = []
        self.codes: list[str] = []

    def process(self, record) -> None:
        self.processes.append(record.title)

    def finding(self, finding) -> None:
        self.codes.append(finding.code)


def hook(target: str = "sglang.x.y", dist: str = "acme-dist", *, applied: bool = False) -> dict:
    facts = {"target": target, "type": "before", "hook": "m.f", "plugin": "own", "dist": dist, "applied": applied, "is_class": False}
    return facts | {"counter": None, "failure": None if applied else {"error": "E: outer", "cause": "E: root"}}


def write(
    folder: Path, role: str = "main", pid: int = 1, *, platform: str | None = "acme.impl.Plat", device: str = "cpu", hooks=(), failed=()
):
    facts = {"role": role, "pid": pid, "runtime": "srt", "rank": {}, "parent": 0, "sglang": "0.5.23", "plugins_failed": list(failed)}
    facts["platform"] = platform and {"qualname": platform, "device_name": "x", "device_type": device}
    (folder / f"{role}-{pid}-srt.json").write_text(json.dumps(facts | {"hooks": list(hooks)}))


def guard(folder: Path, resolution: Resolution | None = PLUGIN, allowed=()) -> tuple[Guard, Told]:
    plan = Plan("sglang", "0.5.23", "srt", Environment("p", {}, "/"), (), {}, EngineArguments())
    told = Told()
    return Guard(folder, Preflight(plan, resolution, CHOICES), set(allowed), told), told


def test_nothing_yet(tmp_path):
    watch, told = guard(tmp_path)
    assert watch.look() is None
    assert told.processes == []


def test_each_process_is_told_once(tmp_path):
    watch, told = guard(tmp_path)
    write(tmp_path)
    assert watch.look() is None
    write(tmp_path, "scheduler", 2)
    watch.look()
    watch.look()
    assert told.processes == ["main", "scheduler"]


@pytest.mark.parametrize(
    ("promised", "actual", "wrong"),
    [
        (PLUGIN, "acme.impl.Plat", False),  # a class may be re-exported
        (PLUGIN, "sglang.srt.platforms.cuda.CudaSRTPlatform", True),
        (PLUGIN, "sglang.srt.platforms.interface.SRTPlatform", True),
        (CUDA, "sglang.srt.platforms.cuda.CudaSRTPlatform", False),
        (CUDA, "sglang.srt.platforms.interface.SRTPlatform", True),
        (CUDA, "acme.impl.Plat", True),
        (PLUGIN, None, False),  # not decided yet
        (None, "acme.impl.Plat", False),
    ],
)
def test_another_platform_than_promised(tmp_path, promised, actual, wrong):
    watch, _ = guard(tmp_path, promised)
    write(tmp_path, platform=actual)
    reason = watch.look()
    assert (reason is not None) is wrong
    assert [finding.code for finding in watch.fatal] == (["SP052"] if wrong else [])


def test_another_plugins_class_is_another_platform(tmp_path):
    watch, _ = guard(tmp_path)
    write(tmp_path, platform="other.Plat")
    record = tmp_path / "main-1-srt.json"
    facts = json.loads(record.read_text())
    facts["platform"]["promised"] = False
    record.write_text(json.dumps(facts))
    assert "serves on other.Plat, not on acme.Plat" in (watch.look() or "")
    assert [finding.code for finding in watch.fatal] == ["SP052"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("", True),
        ("acme_impl.Plat", True),
        ("acme_front:Plat", True),
        ("acme_front.Plat", True),
        ("acme_front.Other", False),
        ("gone.Plat", False),
    ],
)
def test_the_recorder_knows_the_promised_class_where_it_is_imported(monkeypatch, name, kept):
    front, platforms = ModuleType("acme_front"), ModuleType(host.PLATFORMS["srt"])
    front.Plat = type("Plat", (), {"__module__": "acme_impl"})
    front.Other = type("Other", (), {"__module__": "acme_impl"})
    platforms._current_platform = front.Plat()
    monkeypatch.setitem(sys.modules, "acme_front", front)
    monkeypatch.setitem(sys.modules, platforms.__name__, platforms)
    monkeypatch.setenv(host.PROMISED, name)
    assert host.platform("srt")["promised"] is kept


def test_a_required_hook_ends_the_launch_and_another_does_not(tmp_path):
    watch, told = guard(tmp_path)
    write(tmp_path, hooks=[hook(dist="other-dist"), hook("sglang.a.b", applied=True)])
    assert watch.look() is None
    assert told.codes == ["SP529"]
    write(tmp_path, "scheduler", 2, hooks=[hook("sglang.gone")])
    assert "sglang.gone" in (watch.look() or "")
    assert watch.fatal[0].cause == "E: root"


def test_what_is_allowed_is_only_told(tmp_path):
    watch, told = guard(tmp_path, allowed={"SP529"})
    write(tmp_path, hooks=[hook()])
    assert watch.look() is None
    assert told.codes == ["SP529"]


@pytest.mark.parametrize(("name", "fatal"), [("own", True), ("other", False)])
@pytest.mark.parametrize(("phase", "code"), [("load", "SP301"), ("call", "SP302")])
def test_a_plugin_that_failed(tmp_path, name, fatal, phase, code):
    watch, told = guard(tmp_path)
    write(tmp_path, failed=[{"plugin": name, "phase": phase, "error": "E", "cause": "E"}])
    assert (watch.look() is not None) is fatal
    assert told.codes + [finding.code for finding in watch.fatal] == [code]


def test_what_the_stand_in_leaves_out_is_no_fault(tmp_path):
    plan = Plan("standin", None, "srt", Environment("p", {}, "/"), (), {}, EngineArguments())
    told: list = []
    audience = Told()
    audience.finding = told.append  # type: ignore[method-assign]
    watch = Guard(tmp_path, Preflight(plan, PLUGIN, CHOICES), set(), audience)
    here, nowhere = "sglang.srt.managers.data_parallel_controller.DataParallelController:event_loop", "sglang.srt.gone"
    write(tmp_path, hooks=[hook(here), hook(nowhere, "other-dist")])
    assert watch.look() is None
    assert [finding.code for finding in told] == ["SP529", "SP529"]
    assert "the stand-in has not" in told[0].message
    assert "cannot be applied" in told[1].message


def test_what_the_preflight_told_is_not_told_again(tmp_path):
    watch, told = guard(tmp_path)
    target = "sglang.srt.managers.scheduler.Scheduler.get_next_batch_to_run"
    before = Finding("SP062", Level.WARNING, {"kind": "hook", "name": target}, "it fires often")
    again = Guard(tmp_path, replace(watch.flight, findings=[before]), set(), told)
    write(tmp_path, hooks=[hook(target, applied=True)])
    again.look()
    assert told.codes == []
    watch.look()
    assert told.codes == ["SP062"]


def test_a_plugin_that_registers_nothing_is_told_when_all_are_there(tmp_path):
    watch, told = guard(tmp_path)
    watch.conclude()
    assert told.codes == []  # blind
    write(tmp_path, failed=[{"plugin": "other", "phase": "call", "error": "E", "cause": "E"}])
    watch.look()
    assert told.codes == ["SP302"]
    watch.conclude()
    assert told.codes == ["SP302", "SP516"]  # of `own`; `other` has failed
    write(tmp_path, "scheduler", 2, hooks=[hook("sglang.a.b", applied=True)])
    again, told = guard(tmp_path)
    again.look()
    again.conclude()
    assert told.codes == ["SP302"]


def test_the_other_runtime_is_shown_only_where_it_has_hooks(tmp_path):
    watch, told = guard(tmp_path)
    diffusion = replace(watch.flight, plan=replace(watch.flight.plan, runtime="diffusion"))
    watch = Guard(tmp_path, diffusion, set(), told)
    write(tmp_path)
    write(tmp_path, "scheduler", 2, hooks=[hook("sglang.a.b", applied=True)])
    watch.look()
    assert told.processes == ["scheduler"]


def test_without_a_record_the_guard_is_blind(tmp_path):
    watch, _ = guard(tmp_path)
    watch.look()
    assert watch.blind
    write(tmp_path)
    watch.look()
    assert not watch.blind


def test_traps_are_told_once(tmp_path):
    watch, told = guard(tmp_path)
    idle = hook("sglang.srt.managers.scheduler.Scheduler.get_next_batch_to_run", applied=True)
    write(tmp_path, hooks=[idle], device="mydev")
    write(tmp_path, "scheduler", 2, hooks=[idle], device="mydev")
    watch.look()
    assert told.codes == ["SP062", "SP063"]
