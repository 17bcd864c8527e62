"""A launch from start to end, on a real process tree: what is told, what is left behind (nobody), and with which status it ends."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sglang_plug.core.resolution import Resolution
from sglang_plug.errors import LaunchError
from sglang_plug.launch import readiness, session, supervise, tree, watcher
from sglang_plug.launch.preflight import Preflight
from sglang_plug.launch.session import Options
from sglang_plug.launch.terms import Wishes


def alive(pids: list[int]) -> list[int]:
    everybody = tree.snapshot()
    return [pid for pid in pids if pid in everybody and everybody[pid].state not in "ZX"]


def pids_in(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()]


def interrupt(number: signal.Signals = signal.SIGINT):
    return lambda: os.kill(os.getpid(), number)


def test_a_start_is_followed_to_the_first_answer(small, ledger, streams, port):
    ledger.when["ready"] = interrupt()
    outcome = supervise.run(small(), ledger, out=streams[0], err=streams[1])
    assert ledger.said("reached") == ["arguments resolved", "engine says ready"]
    assert ledger.said("ready") == [f"http://127.0.0.1:{port} one token"]
    assert outcome.ready is not None
    assert outcome.obituary is None
    assert streams[0].getvalue() == b"on stdout\n"
    assert b"fired up" in streams[1].getvalue()


def test_what_the_log_says_in_passing_is_told_once(small, ledger, streams):
    ledger.when["ready"] = interrupt()
    falls_back = "[01-01 10:00:00] Falling back to diffusers backend"
    supervise.run(
        small("--say", falls_back, falls_back, "The server is fired up and ready to roll!"), ledger, out=streams[0], err=streams[1]
    )
    (warned,) = ledger.said("warned")
    assert "--model-id" in warned


def test_the_selected_platforms_own_code_is_named_where_it_raises(small, ledger, streams):
    chosen = Resolution("srt", "plugin", "acme", "small_engine:Plat", "acme-dist")  # the engine's file, as if it were the platform's
    outcome = session.run(Preflight(small("--die", "import"), chosen), ledger, Options(guarded=False), out=streams[0], err=streams[1])
    assert outcome.obituary is not None
    assert (outcome.obituary.raised or "").startswith("plugin acme, ")


def test_an_engine_that_nobody_could_look_into_is_told(small, ledger, streams):
    """Its processes write no record: no recorder was loaded, or the disk is full."""
    ledger.when["ready"] = interrupt()
    ledger.say = lambda text, style="": ledger.events.append(("say", text))
    session.run(Preflight(small()), ledger, Options(), out=streams[0], err=streams[1])
    (said,) = ledger.said("say")
    assert said.startswith("not seen from inside: no process wrote to ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_whole_tree_and_the_status_is_the_engines(small, ledger, streams, tmp_path, number):
    ledger.when["ready"] = interrupt(number)
    plan = small("--children", "plain", "session", "--pids", str(tmp_path / "pids"), "--exit-status", "7")
    outcome = supervise.run(plan, ledger, out=streams[0], err=streams[1])
    assert outcome.status == 7
    assert ledger.said("stopping") == [number.name]
    pids = pids_in(tmp_path / "pids")
    assert len(pids) == 3
    assert alive(pids) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_engine_that_dies_of_our_stop_has_the_status_of_the_signal(small, ledger, streams, number):
    ledger.when["reached"] = interrupt(number)
    outcome = supervise.run(small("--default-signals"), ledger, out=streams[0], err=streams[1])
    assert outcome.status == 128 + number


def test_what_ignores_sigterm_is_killed(small, ledger, streams, tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "GRACE", 0.5)
    ledger.when["ready"] = interrupt()
    plan = small("--deaf", "--children", "stubborn", "--pids", str(tmp_path / "pids"))
    outcome = supervise.run(plan, ledger, out=streams[0], err=streams[1])
    assert outcome.status == 128 + signal.SIGKILL
    assert alive(pids_in(tmp_path / "pids")) == []


def test_a_second_signal_does_not_wait(small, ledger, streams, monkeypatch):
    monkeypatch.setattr(supervise, "GRACE", 600.0)
    ledger.when["ready"] = interrupt()
    ledger.when["stopping"] = interrupt()
    outcome = supervise.run(small("--deaf"), ledger, out=streams[0], err=streams[1])
    assert outcome.status == 128 + signal.SIGKILL


def test_orphans_of_an_engine_that_dies_are_ended(small, ledger, streams, tmp_path):
    plan = small("--children", "session", "stubborn", "--pids", str(tmp_path / "pids"), "--die", "import")
    outcome = supervise.run(plan, ledger, out=streams[0], err=streams[1])
    assert outcome.status == 1
    assert outcome.obituary is not None
    assert outcome.obituary.error == "ModuleNotFoundError: No module named 'vendor_rt'"
    assert "arguments resolved" in outcome.obituary.ended
    assert ledger.said("killed") == ["1"]
    assert alive(pids_in(tmp_path / "pids")) == []


def test_a_process_without_mark_and_parent_is_remembered(small, ledger, streams, tmp_path):
    """SGLang's schedulers write their title over their environment; when main is killed, nothing else tells whose they were."""
    ledger.when["ready"] = lambda: os.kill(pids_in(tmp_path / "pids")[0], signal.SIGKILL)
    plan = small("--children", "hidden", "--pids", str(tmp_path / "pids"))
    outcome = supervise.run(plan, ledger, out=streams[0], err=streams[1])
    assert outcome.status == 128 + signal.SIGKILL
    assert alive(pids_in(tmp_path / "pids")) == []


def test_an_obituary_names_process_error_and_meaning(small, ledger, streams):
    outcome = supervise.run(small("--die", "scheduler"), ledger, out=streams[0], err=streams[1])
    assert outcome.obituary is not None
    assert outcome.obituary.process == "scheduler TP1"
    assert outcome.obituary.error is not None
    assert outcome.obituary.error.startswith("AssertionError: SGLANG_CPU_OMP_THREADS_BIND is not set")
    assert "SGLANG_CPU_OMP_THREADS_BIND='0|1'" in (outcome.obituary.hint or "")


def test_a_worker_that_ends_is_told(small, ledger, streams, tmp_path):
    ledger.when["ready"] = lambda: os.kill(pids_in(tmp_path / "pids")[0], signal.SIGUSR1)
    ledger.when["lost"] = interrupt()
    supervise.run(small("--worker", "--pids", str(tmp_path / "pids")), ledger, out=streams[0], err=streams[1])
    assert ledger.said("lost") == ["sglang::scheduler"]


def test_a_kill_from_elsewhere_is_told_apart(small, ledger, streams):
    outcome = supervise.run(small("--die", "oom"), ledger, out=streams[0], err=streams[1])
    assert outcome.status == 137
    assert outcome.obituary is not None
    assert outcome.obituary.ended.startswith("signal SIGKILL")
    assert "memory" in (outcome.obituary.meaning or "")


def test_a_refused_first_request_is_told(small, ledger, streams):
    ledger.when["not_answering"] = interrupt()
    outcome = supervise.run(small("--generate-status", "500"), ledger, out=streams[0], err=streams[1])
    assert outcome.ready is None
    assert ledger.said("not_answering")[0].startswith("/generate says HTTP 500")


def test_a_first_request_without_an_answer_is_told(small, ledger, streams, monkeypatch):
    monkeypatch.setattr(readiness, "SLOWEST_ANSWER", 0.1)
    ledger.when["not_answering"] = interrupt()
    outcome = supervise.run(small("--generate-status", "0"), ledger, out=streams[0], err=streams[1])
    assert outcome.ready is None
    assert ledger.said("not_answering")[0].startswith("/generate gave no answer within")


WARM = "The server is fired up and ready to roll!"
COLD = "Synthetic server warmup failed; continuing startup"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((WARM,), "it has made a picture of its own to warm up"),
        ((COLD, WARM), "its own warm-up picture failed"),
        ((), "no warm-up picture"),
    ],
)
def test_what_stands_behind_the_health_of_a_diffusion_server_is_told(small, ledger, streams, lines, told):
    """SGLang's own server is not asked for a picture: it would be written to the user's folder."""
    plan = dataclasses.replace(small("--generate-status", "500", "--say", *lines), runtime="diffusion")
    ledger.when["ready"] = interrupt()
    assert supervise.run(plan, ledger, out=streams[0], err=streams[1]).ready is not None
    assert " its models; " in ledger.said("ready")[0]
    assert told in ledger.said("ready")[0]


def test_an_answer_that_comes_while_it_is_stopped_is_no_readiness(small, ledger, streams, monkeypatch):
    monkeypatch.setattr(supervise, "GRACE", 2.0)  # deaf and answering for so long
    ledger.when["reached"] = interrupt()
    outcome = supervise.run(small("--deaf"), ledger, out=streams[0], err=streams[1])
    assert outcome.ready is None
    assert ledger.said("ready") == []


@pytest.mark.parametrize("more", [(), ("--default-signals",)])
def test_a_start_that_takes_too_long_is_given_up(small, ledger, streams, more):
    """Its own status, which may be 0, is not that of a launch that failed."""
    plan = small("--generate-status", "503", *more)
    outcome = supervise.run(plan, ledger, out=streams[0], err=streams[1], wishes=Wishes(ready_limit=0.1))
    assert ledger.said("stopping") == ["no answer within 0.1 s"]
    assert (outcome.ready, outcome.status) == (None, 1)
    assert outcome.obituary is not None
    assert "no answer within 0.1 s" in outcome.obituary.ended
    assert "--ready-timeout" in (outcome.obituary.hint or "")


def test_a_reason_of_the_check_ends_the_start(small, ledger, streams):
    wishes = Wishes(check=lambda: "a required hook did not apply")
    supervise.run(small("--generate-status", "503"), ledger, out=streams[0], err=streams[1], wishes=wishes)
    assert ledger.said("stopping") == ["a required hook did not apply"]


def test_a_program_that_is_not_there(small, ledger, streams):
    plan = small()
    broken = type(plan)(**{**plan.__dict__, "argv": ("/nowhere/sglang", "serve")})
    with pytest.raises(LaunchError) as caught:
        supervise.run(broken, ledger, out=streams[0], err=streams[1])
    assert caught.value.subject == "/nowhere/sglang"


def test_a_stopped_watcher_does_not_hold_the_end(monkeypatch):
    monkeypatch.setattr(watcher, "GRACE", 0.2)
    witness = watcher.Watcher("mark")
    os.kill(witness._process.pid, signal.SIGSTOP)
    witness.dismiss()
    assert witness._process.returncode == -signal.SIGKILL


def test_nobody_is_left_when_the_supervisor_is_killed_outright(tmp_path, port):
    """The watcher ends the tree, a process in a session of its own included, and removes the launch's folder."""
    folder, pids = tmp_path / "folder", tmp_path / "pids"
    folder.mkdir()
    code = f"""
import os, sys
from pathlib import Path
from sglang_plug.launch import supervise
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.plan import Plan
from sglang_plug.launch.terms import Wishes
from sglang_plug.probe.environment import Environment
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.launch.conftest import SMALL_ENGINE, Ledger
tokens = ("--port", "{port}", "--deaf", "--children", "session", "stubborn", "--pids", {str(pids)!r})
plan = Plan("sglang", None, "srt", Environment(sys.executable, dict(os.environ), {str(tmp_path)!r}),
            (sys.executable, "-S", str(SMALL_ENGINE), *tokens), {{}}, EngineArguments(tokens))
ledger = Ledger()
ledger.when["ready"] = lambda: print("ready", flush=True)
supervise.run(plan, ledger, out=sys.stderr.buffer, err=sys.stderr.buffer, wishes=Wishes(folders=(Path({str(folder)!r}),)))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"ready\n"
        left = pids_in(pids)
        assert alive(left) == left
        supervisor.kill()
    deadline = time.monotonic() + 60
    while (alive(left) or folder.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(left) == []
    assert not folder.exists()
