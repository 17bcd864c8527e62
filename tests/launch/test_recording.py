"""What a recorded process writes, on the stand-in's real registry: hooks registered, applied, failed, fired, and at what cost."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from sglang_plug import standin
from sglang_plug.errors import LaunchError
from sglang_plug.launch import distribution, recorder, recording
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.plan import Plan
from sglang_plug.launch.recorder import counters
from sglang_plug.launch.recorder.failures import describe
from sglang_plug.probe.environment import Environment
from sglang_plug.report import hooks as report
from tests.plugins.install import SRT_PLUGINS, Site

if TYPE_CHECKING:
    from pathlib import Path

LOAD = "from sglang.srt.plugins import load_plugins; load_plugins()\n"
TARGET = """
    import time
    def work(x): time.sleep(0.005); return x + 1
    def fail(x): raise ValueError(x)
    def never(): pass
    def checked(x): pass
    class Box:
        @classmethod
        def make(cls): return cls()
        def open(self): return "open"
    def forever():
        print("in", flush=True)
        time.sleep(600)
"""
HOOKS = """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    class Bigger:
        def open(self): return "bigger"
    def around(original, *args): return original(*args)
    def before(*args): return None
    def strict(value): raise TypeError(value)
    def after(result, *args): return result * 2
    def register():
        HookRegistry.register("target.work", around, HookType.AROUND)
        HookRegistry.register("target.work", after)
        HookRegistry.register("target.fail", around, HookType.AROUND)
        HookRegistry.register("target.checked", strict, HookType.BEFORE)
        HookRegistry.register("target.never", before, HookType.BEFORE)
        HookRegistry.register("target.forever", before, HookType.BEFORE)
        HookRegistry.register("target.Box", Bigger, HookType.REPLACE)
        HookRegistry.register("broken.inner.name", before, HookType.BEFORE)
        HookRegistry.register("target:gone", before, HookType.BEFORE)
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "site")
    site.add("hooks-dist", {SRT_PLUGINS: {"my_hooks": "my_hooks:register"}}, {"my_hooks.py": HOOKS, "target.py": TARGET})
    site.write({"broken/__init__.py": "", "broken/inner.py": "import vendor_runtime"})
    return site


def plan_of(site: Site, **variables: str) -> Plan:
    environment = Environment(sys.executable, standin.environment(site.env(**variables)), str(site.root.parent))
    return Plan("standin", None, "srt", environment, (sys.executable,), {}, EngineArguments())


def run(plan: Plan, code: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env=dict(plan.environment.env),
        cwd=plan.environment.cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def record(site: Site, folder: Path, code: str) -> tuple[recording.Recording, subprocess.CompletedProcess[str]]:
    plan, _, records = distribution.prepare(plan_of(site), folder)
    done = run(plan, LOAD + code)
    return recording.read(records), done


def hooks_of(found: recording.Recording) -> dict[tuple[str, str], recording.HookRecord]:
    (process,) = found.processes
    return {(hook.target, hook.type): hook for hook in process.hooks}


def test_every_call_is_counted_and_nothing_changes(site, tmp_path):
    code = """
import target
print([target.work(x) for x in range(3)])
for function in (target.fail, target.checked):
    try: function(1)
    except (ValueError, TypeError) as error: print('raised', error)
"""
    found, done = record(site, tmp_path / "records", code)
    assert done.stdout == "[2, 4, 6]\nraised 1\nraised 1\n", done.stderr  # (x + 1) * 2, as the hook wants it
    hooks = hooks_of(found)
    assert hooks["target.work", "around"].count == hooks["target.work", "after"].count == 3
    assert (hooks["target.fail", "around"].count, hooks["target.fail", "around"].raised) == (1, 1)
    assert (hooks["target.checked", "before"].count, hooks["target.checked", "before"].raised) == (1, 1)
    assert hooks["target.work", "around"].raised == 0
    assert {hook.plugin for hook in hooks.values()} == {"my_hooks"}
    assert {hook.dist for hook in hooks.values()} == {"hooks-dist"}


def test_an_around_hook_does_not_pay_for_the_original(site, tmp_path):
    found, _ = record(site, tmp_path / "records", "import target\ntarget.work(1)")
    hook = hooks_of(found)["target.work", "around"]
    assert hook.spent - hook.own >= 5_000_000  # the original sleeps for five milliseconds
    assert hook.events[0][1] == hook.spent


def test_silent_hooks_are_told_and_classes_are_not_counted(site, tmp_path):
    found, done = record(site, tmp_path / "records", "import target\ntarget.work(1); print(target.Box().open())")
    assert done.stdout == "bigger\n"
    assert sorted(hook.target for hook in recording.silent(found)) == ["target.checked", "target.fail", "target.forever", "target.never"]
    assert hooks_of(found)["target.Box", "replace"].is_class


def test_a_failed_hook_has_its_root_cause(site, tmp_path):
    found, _ = record(site, tmp_path / "records", "")
    causes = {hook.target: hook.cause for _, hook in recording.failed(found)}
    assert causes["broken.inner.name"] == "ModuleNotFoundError: No module named 'vendor_runtime'"
    assert "gone" in causes["target.gone"]


def test_a_failure_is_logged_once_and_what_only_the_stand_in_lacks_without_a_traceback(site, tmp_path):
    lacking = "sglang.srt.managers.data_parallel_controller.DataParallelController.event_loop"
    body = "from sglang.srt.plugins.hook_registry import HookRegistry\ndef f(*a): pass\ndef register(): HookRegistry.register(TARGET, f)\n"
    site.add("lacking-dist", {SRT_PLUGINS: {"lacking": "lacking:register"}}, {"lacking.py": f"TARGET = {lacking!r}\n{body}"})
    found, done = record(site, tmp_path / "records", "")
    causes = {hook.target: hook.cause for _, hook in recording.failed(found)}
    assert causes[lacking] == "TargetError: SGLang 0.5.23 has this target, the stand-in has not"
    assert done.stderr.count("Failed to apply hooks to target.gone\n") == 1
    _, _, after = done.stderr.partition(f"Failed to apply hooks to {lacking}\n")
    assert after.splitlines()[0] == f"sglang_plug.errors.{causes[lacking]}"


def test_a_hook_that_raises_is_named(site, tmp_path):
    found, _ = record(site, tmp_path / "records", "import target\ntry: target.checked('x')\nexcept TypeError: pass")
    said = [text for text, _ in report.remarks(found)]
    assert any("target.checked of my_hooks, in 1 of 1 calls" in text for text in said), said


@pytest.mark.parametrize(("call", "how"), [("fail", "it raised in main"), ("leave", "its call in main had not ended")])
def test_the_hook_that_a_process_ended_in_is_known(site, tmp_path, call, how):
    """An exit leaves no traceback."""
    body = "import os\nfrom sglang.srt.plugins.hook_registry import HookRegistry, HookType\n"
    body += "def register(): HookRegistry.register('target:leave', lambda number: os._exit(0), HookType.BEFORE)\n"
    site.add("leaving-dist", {SRT_PLUGINS: {"leaving": "leaving:register"}}, {"leaving.py": body})
    site.write({"target.py": TARGET + "    def leave(number): pass\n"})
    found, done = record(site, tmp_path / "records", f"import target\ntarget.work(1)\ntarget.{call}(1)")
    said = recording.last_words(found.processes)
    assert said is not None, done.stderr
    assert f" on target.{call}: {how}" in said
    assert recording.last_words([dataclasses.replace(process, hooks=()) for process in found.processes]) is None


def test_sglangs_masked_import_is_unmasked(site, monkeypatch):
    """SGLang's own resolver ends in a missing attribute where the import of the target's module failed."""
    monkeypatch.syspath_prepend(str(site.root))
    facts = describe(AttributeError("module 'broken' has no attribute 'inner'"), "broken.inner.name")
    assert facts["error"] == "AttributeError: module 'broken' has no attribute 'inner'"
    assert facts["cause"] == "ModuleNotFoundError: No module named 'vendor_runtime'"


def test_a_plugin_that_fails_is_told(site, tmp_path):
    site.add("bad-dist", {SRT_PLUGINS: {"bad": "bad:register", "worse": "worse:register"}}, {"bad.py": "def register(): return 1 / 0"})
    found, _ = record(site, tmp_path / "records", "")
    failures = {failure["plugin"]: (failure["phase"], failure["cause"]) for failure in found.processes[0].plugins_failed}
    assert failures["bad"] == ("call", "ZeroDivisionError: division by zero")
    assert failures["worse"] == ("load", "ModuleNotFoundError: No module named 'worse'")


def test_counts_survive_a_kill_and_calls_that_never_return(site, tmp_path):
    plan, _, records = distribution.prepare(plan_of(site), tmp_path / "records")
    code = LOAD + "import target\ntarget.work(1)\ntarget.forever()"
    with subprocess.Popen([sys.executable, "-c", code], env=dict(plan.environment.env), cwd=site.root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        process.kill()
    hooks = hooks_of(recording.read(records))
    assert hooks["target.work", "around"].count == 1
    assert hooks["target.forever", "before"].count == 1


@pytest.mark.parametrize(("name", "value"), [("SGLANG_PLUGINS", "my_hooks"), ("SGL_PLUGINS", "my_hooks"), ("SGLANG_PLUGINS", ",")])
def test_an_allowlist_is_extended(site, tmp_path, name, value):
    plan, _, records = distribution.prepare(plan_of(site, **{name: value}), tmp_path / "records")
    done = run(plan, LOAD)
    (process,) = recording.read(records).processes
    assert bool(process.hooks) is (value != ","), done.stderr  # an empty allowlist stays empty but for the recorder


def test_without_an_allowlist_none_is_made(site, tmp_path):
    plan, _, _ = distribution.prepare(plan_of(site), tmp_path / "records")
    assert "SGLANG_PLUGINS" not in plan.environment.env


def test_only_this_launch_loads_the_recorder(site, tmp_path):
    plan = plan_of(site)
    distribution.prepare(plan, tmp_path / "records")
    code = "import importlib.metadata as m; print([e.name for e in m.entry_points(group='sglang.srt.plugins')])"
    assert run(plan, code).stdout == "['my_hooks']\n"


def test_a_full_disk_ends_the_recording_not_the_process(site, tmp_path):
    plan, _, records = distribution.prepare(plan_of(site), tmp_path / "records")
    limit = counters.BLOCK * 8  # of a file's size: less than the counters need

    def poor() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = run(plan, LOAD + "import target\nprint(target.work(1))", preexec_fn=poor)
    assert done.returncode == 0
    assert done.stdout == "4\n"
    assert "calls are not counted in this process (main, pid" in done.stderr
    assert "The engine goes on" in done.stderr
    (process,) = recording.read(records).processes  # a record is small, and fits
    assert any(hook.applied for hook in process.hooks)
    assert not any(hook.counted for hook in process.hooks)
    assert list(records.glob("*.bin")) == []


def test_a_folder_of_another_launch_is_refused(site, tmp_path):
    distribution.prepare(plan_of(site), tmp_path / "records")
    with pytest.raises(LaunchError, match="another launch"):
        distribution.prepare(plan_of(site), tmp_path / "records")


def test_a_folder_that_cannot_be_made(site, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LaunchError) as caught:
        distribution.prepare(plan_of(site), tmp_path / "file" / "records")
    assert caught.value.subject is not None
    assert "file/records" in caught.value.subject


def test_a_temporary_folder_that_cannot_be_written(site, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nowhere")
    with pytest.raises(LaunchError, match="the temporary folder cannot be written") as caught:
        distribution.prepare(plan_of(site), None)
    assert "TMPDIR" in (caught.value.hint or "")


def test_no_recording(tmp_path):
    with pytest.raises(LaunchError, match="no recording here"):
        recording.read(tmp_path)


def test_damaged_records_are_told(site, tmp_path):
    found, _ = record(site, tmp_path / "records", "")
    assert found.damaged == ()
    (binary,) = (tmp_path / "records").glob("*.bin")
    os.truncate(binary, 100)
    (tmp_path / "records" / "scheduler-1-srt.json").write_text("{")
    names = [name for name, _ in recording.read(tmp_path / "records").damaged]
    assert names == [f"main-{found.processes[0].pid}-srt.json", "scheduler-1-srt.json"]


def test_records_that_somebody_else_wrote_are_told_and_break_nothing(site, tmp_path):
    folder = tmp_path / "records"
    _, _ = record(site, folder, "")
    (good,) = [path for path in folder.glob("*.json") if path.name != "launch.json"]
    facts = json.loads(good.read_text())
    first = facts["hooks"][0]
    strange: list[object] = [None, 5, [], {}, facts | {"hooks": 5}, facts | {"rank": {"tp_rank": "x"}}, facts | {"pid": "x"}]
    strange += [facts | {"platform": {"qualname": 5}}, facts | {"plugins_failed": [{"plugin": 5}]}]
    for counter in ({"file": "../../../../etc/passwd", "word": 0}, {"file": "..", "word": 0}, {"file": good.name, "word": 10**30}, 7):
        strange.append(facts | {"hooks": [first | {"counter": counter}]})
    strange += [
        facts | {"hooks": [first | change]} for change in ({"target": 7}, {"applied": "yes"}, {"failure": {"error": 5}}, {"plugin": []})
    ]
    for number, content in enumerate(strange):
        (folder / f"x{number:02}.json").write_text(json.dumps(content))
    (folder / "y0.json").write_text("[" * 100_000)
    (folder / "y1.json").write_bytes(b"\xff\xfe")
    (folder / "y2.json").mkdir()
    os.mkfifo(folder / "y3.json")
    (folder / "y4.json").symlink_to("y4.json")
    found = recording.read(folder)
    assert len(found.processes) == 1
    assert [name for name, _ in found.damaged] == [f"x{number:02}.json" for number in range(len(strange))] + [
        f"y{n}.json" for n in range(5)
    ]
    for launch in ("[]", '{"processes": 5}', '{"processes": [{"title": 5}]}', "[" * 100_000):
        (folder / "launch.json").write_text(launch)
        assert recording.read(folder).damaged[0][0] == "launch.json"


def test_without_counting_the_hooks_are_left_alone(site):
    plan, temporary, records = distribution.prepare(plan_of(site), None, "acme:Plat")
    assert plan.environment.env[recorder.PROMISED] == "acme:Plat"
    done = run(plan, LOAD + "import target; print(target.work.__wrapped__.__wrapped__ is not None)")
    assert records.is_relative_to(temporary)
    hooks = {(h.target, h.type): h for h in recording.read_processes(records)[0][0].hooks}
    assert hooks["target.work", "around"].applied, done.stderr
    assert not hooks["target.work", "around"].counted
    assert list(records.glob("*.bin")) == []


def test_the_trace_holds_the_last_calls(site, tmp_path):
    calls = counters.EVENTS + 10
    found, _ = record(site, tmp_path / "records", f"import target\ntarget.work.__wrapped__\n[target.never() for _ in range({calls})]")
    hook = hooks_of(found)["target.never", "before"]
    assert (hook.count, len(hook.events)) == (calls, counters.EVENTS)
    assert [begin for begin, _, _ in hook.events] == sorted(begin for begin, _, _ in hook.events)
    trace = json.loads(json.dumps(recording.chrome_trace(found)))
    calls_in_trace = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(calls_in_trace) == counters.EVENTS
    assert {"name", "ts", "dur", "pid", "tid", "cat"} <= calls_in_trace[0].keys()
    assert calls_in_trace[0]["name"] == "target.never"


def test_many_hooks_take_more_files(site, tmp_path):
    count = counters.BLOCKS_A_FILE + 3
    hooks = "\n".join(f"    HookRegistry.register('many.f{i}', lambda *a: None, HookType.BEFORE)" for i in range(count))
    body = f"from sglang.srt.plugins.hook_registry import HookRegistry, HookType\ndef register():\n{hooks}\n"
    (site.root / "my_hooks.py").write_text(body)
    (site.root / "many.py").write_text("\n".join(f"def f{i}(): pass" for i in range(count)))
    found, done = record(site, tmp_path / "records", f"import many\n[getattr(many, f'f{{i}}')() for i in range({count})]")
    assert [hook.count for hook in found.processes[0].hooks] == [1] * count, done.stderr
    assert len(list((tmp_path / "records").glob("*.bin"))) == 2


def test_ranks_and_roles_in_words():
    record = recording.ProcessRecord("scheduler", 1, "srt", {"tp_rank": 1, "pp_rank": 0})
    assert record.title == "scheduler TP1"
    assert dataclasses.replace(record, rank={"dp_rank": 0, "pp_rank": 1, "tp_rank": 0}).title == "scheduler DP0 PP1 TP0"
