"""`sglang-plug serve` on the stand-in, as processes: it refuses, it serves, it records, and it leaves nobody."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from sglang_plug.launch import recording
from tests.e2e.server import READY, TOOL, Server, serving
from tests.plugins.install import DIFFUSION_PLUGINS, SRT_PLUGINS, Site, platform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STANDIN = ("--engine", "standin")
HOOKS = """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    def around(original, *args, **kwargs): return original(*args, **kwargs)
    def register():
        HookRegistry.register("sglang.srt.managers.scheduler.Scheduler.run_batch", around, HookType.AROUND)
        HookRegistry.register("sglang.srt.managers.scheduler.Scheduler.abort_request", around, HookType.AROUND)
        {more}
"""


def hooks(site: Site, more: str = "", dist: str = "hooks-dist") -> None:
    site.add(dist, {SRT_PLUGINS: {"my_hooks": "my_hooks:register"}}, {"my_hooks.py": HOOKS.format(more=more)})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site")


def refuse(site: Site, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a serve that is expected to end before anything is started."""
    command = [TOOL, "serve", *STANDIN, *arguments]
    return subprocess.run(command, env=site.env(**env), capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records") / "hooks"


@pytest.fixture(scope="module")
def server(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    site = Site(tmp_path_factory.mktemp("site"))
    platform(site)
    hooks(site)
    options = (*STANDIN, "--platform", "pa", "--plugins", "my_hooks", "--record", str(records))
    with serving(*options, "--", "--served-model-name", "my model", env={"PYTHONPATH": str(site.root)}) as running:
        yield running


class TestOneServer:
    def test_the_screen(self, server: Server):
        assert "platform   SRT will use pa (pa.plat.Plat) of pa-dist, selected by SGLANG_PLATFORM" in server.log
        assert "plugins    load     my_hooks (hooks-dist 1.0)" in server.log
        assert "variables  SGLANG_PLATFORM=pa SGLANG_PLUGINS=my_hooks" in server.log
        assert "hooks    scheduler: Scheduler.run_batch (AROUND, my_hooks), Scheduler.abort_request (AROUND, my_hooks)" in server.log
        assert "scheduler TP0 (" in server.log

    def test_arguments_arrive_untouched(self, server: Server):
        with urllib.request.urlopen(f"{server.url}/v1/models", timeout=30) as answer:
            assert json.load(answer)["data"][0]["id"] == "my model"

    def test_the_record_counts_what_happened(self, server: Server, records: Path):
        def run_batch() -> int:
            return sum(hook.count for p in recording.read(records).processes for hook in p.hooks if hook.target.endswith("run_batch"))

        before = run_batch()
        body = json.dumps({"text": "hello", "sampling_params": {"max_new_tokens": 5, "temperature": 0, "ignore_eos": True}}).encode()
        request = urllib.request.Request(f"{server.url}/generate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200
        assert run_batch() - before == 5  # one batch a token, the prompt's first
        found = recording.read(records)
        assert [hook.target for hook in recording.silent(found)] == ["sglang.srt.managers.scheduler.Scheduler.abort_request"]

    def test_hooks_command_flags_what_never_fired(self, server: Server, records: Path):
        done = subprocess.run([TOOL, "hooks", records, "--strict"], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "never fired: sglang.srt.managers.scheduler.Scheduler.abort_request (around, my_hooks)" in done.stdout
        plain = subprocess.run([TOOL, "hooks", records, "--format", "json"], capture_output=True, text=True, check=True)
        facts = json.loads(plain.stdout)
        assert facts["schema"] == 1
        assert {process["role"] for process in facts["processes"]} == {"main", "scheduler", "detokenizer"}
        trace = subprocess.run([TOOL, "hooks", records, "--format", "trace"], capture_output=True, text=True, check=True)
        assert any(event["name"] == "Scheduler.run_batch" for event in json.loads(trace.stdout)["traceEvents"])
        written = subprocess.run([TOOL, "hooks", records, "-o", records / "table.txt"], capture_output=True, text=True, check=True)
        assert written.stdout == ""
        assert "Scheduler.run_batch" in (records / "table.txt").read_text()
        nowhere = subprocess.run([TOOL, "hooks", records, "-o", records / "no" / "x"], capture_output=True, text=True, check=False)
        assert nowhere.returncode == 1
        assert "the answer cannot be written" in nowhere.stderr

    def test_a_port_that_is_taken_is_told_before_the_start(self, server: Server, site: Site):
        done = refuse(site, "--port", str(server.port))
        assert done.returncode == 1
        assert f"error SP053: port {server.port} of 127.0.0.1 cannot be used" in done.stderr
        assert "not started: SP053. To start all the same: --allow SP053, or --no-preflight\n" in done.stderr


def test_a_platform_that_failed_is_not_replaced_in_silence(site: Site):
    platform(site, activate="import vendor_runtime_missing\n")
    done = refuse(site)
    assert done.returncode == 1
    assert "error SP051: platform plugin 'pa' is installed, but" in done.stderr
    assert "vendor_runtime_missing" in done.stderr
    assert "not started: SP051" in done.stderr


def test_an_allowlist_that_hides_the_platform(site: Site):
    platform(site)
    hooks(site)
    done = refuse(site, "--plugins", "my_hooks")
    assert done.returncode == 1
    assert "error SP105" in done.stderr


def test_a_selector_that_names_nothing(site: Site):
    platform(site)
    done = refuse(site, "--platform", "pb")
    assert done.returncode == 1
    assert "error SP050: RuntimeError: SGLANG_PLATFORM='pb' not found" in done.stderr
    assert "(available: 'pa')" in done.stderr


def test_a_model_that_is_not_there(site: Site):
    done = refuse(site, "--model-path", "/no/such/model")
    assert done.returncode == 1
    assert "error SP054: the model folder does not exist: /no/such/model" in done.stderr


def test_real_sglang_where_there_is_none(site: Site):
    done = refuse(site, "--engine", "sglang")
    assert done.returncode == 1
    assert "SGLang is not installed in the engine's environment" in done.stderr


def test_nodes_with_different_plugins_are_told_apart(site: Site):
    """Two nodes that differ by one plugin's version have different fingerprints; the same plugins elsewhere have the same."""
    same, other = Site(site.root.parent / "same"), Site(site.root.parent / "other")
    for place, version in ((site, "1.0"), (same, "1.0"), (other, "1.1")):
        place.add("hooks-dist", {SRT_PLUGINS: {"my_hooks": "my_hooks:register"}}, {"my_hooks.py": "def register(): pass"}, version=version)

    def ask(place: Site, *more: str) -> str:
        return refuse(place, "--nnodes", "2", "--model-path", "/no/such/model", *more).stderr

    found = re.search(r"--expect-fingerprint (\w+)", ask(site))
    assert found is not None
    assert "SP059" not in ask(same, "--expect-fingerprint", found[1])
    assert "error SP059" in ask(other, "--expect-fingerprint", found[1])


@pytest.mark.parametrize("options", [("--platform", ""), ("--record", ""), ("--ready-timeout", "0"), ("--ready-timeout", "nan")])
def test_options_that_say_nothing_are_refused(site: Site, options: tuple[str, str]):
    done = refuse(site, *options)
    assert done.returncode == 2
    assert options[0] in done.stderr


def test_names_are_escaped(site: Site):
    done = refuse(site, "--platform", "\x1b[31mred")
    assert "\x1b" not in done.stderr
    assert "\\x1b[31mred" in done.stderr


def vendor(site: Site, target: str) -> None:
    """Install platform and hooks as one distribution, as a vendor ships them; `target` is an expression."""
    platform(site)
    site.write({"my_hooks.py": HOOKS.format(more=f"HookRegistry.register({target}, around, HookType.AROUND)")})
    info = next(site.root.glob("pa_dist-*.dist-info"))
    info.joinpath("entry_points.txt").write_text(
        "[sglang.srt.platforms]\npa = pa:activate\n[sglang.srt.plugins]\nmy_hooks = my_hooks:register\n"
    )


GONE = "sglang.srt.managers.scheduler.Scheduler.gone"


def test_the_platforms_own_hook_on_a_target_that_is_gone(site: Site):
    vendor(site, repr(GONE))
    done = refuse(site, "--platform", "pa")
    assert done.returncode == 1
    assert "error SP501" in done.stderr
    assert GONE in done.stderr
    assert "not started: SP501" in done.stderr


def test_a_target_that_the_source_does_not_tell_is_found_inside_the_engine(site: Site):
    vendor(site, f"{GONE[:-4]!r} + str.lower('GONE')")
    env = {"PYTHONPATH": str(site.root)}
    with serving(*STANDIN, "--platform", "pa", env=env, ready=False, status=None) as server:
        assert server.wait_end(60) == 1
    assert "the source of my_hooks computes targets" in server.log
    assert f"error SP529: the hook of my_hooks on {GONE} cannot be applied in main" in server.log
    with serving(*STANDIN, "--platform", "pa", "--allow", "sp529", env=env) as server:
        assert f"error SP529: the hook of my_hooks on {GONE}" in server.log


def test_a_killed_scheduler_ends_the_launch(site: Site):
    with serving(*STANDIN, status=None) as server:
        main = next(pid for pid, title in server.processes().items() if "site/sglang" in title)
        scheduler = int(server.log.split("scheduler TP0 (")[1].split(")")[0])
        assert scheduler != main
        os.kill(scheduler, signal.SIGKILL)
        assert server.wait_end(60) != 0
    assert "sglang-plug: the engine ended with" in server.log


def test_a_killed_tool_leaves_nobody(site: Site):
    with serving(*STANDIN, status=None) as server:
        server.process.kill()
        deadline = time.monotonic() + 60
        while server.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.processes() == {}


def test_without_preflight_and_without_a_guard(site: Site):
    platform(site, activate="import vendor_runtime_missing\n")
    with serving(*STANDIN, "--no-preflight", env={"PYTHONPATH": str(site.root)}) as server:
        assert "platform   " not in server.log


def test_the_engines_own_help(site: Site):
    done = refuse(site, "--", "--help")
    assert done.returncode == 0
    assert "--tp-size" in done.stdout
    assert "not started" not in done.stderr


def test_print_command_starts_nothing(site: Site):
    platform(site)
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = str(door.getsockname()[1])
        done = refuse(site, "--platform", "pa", "--print-command", "--format", "json", "--port", port, "--", "--tp-size", "2")
    assert done.returncode == 0
    facts = json.loads(done.stdout)
    assert facts["argv"][-4:] == ["--port", port, "--tp-size", "2"]
    assert facts["env"]["SGLANG_PLATFORM"] == "pa"
    written = refuse(site, "--print-command", "--format", "systemd")
    assert written.returncode == 0
    assert "this starts the stand-in engine of this machine" in written.stderr
    other = refuse(site, "--print-command", "--expect-fingerprint", "0000")
    assert (other.returncode, other.stdout) == (1, "")
    assert "error SP059" in other.stderr


DRAWN = """
    from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry
    def drawn(answer, *args, **kwargs):
        print("drawn:", answer.output[0].shape, file=__import__("sys").stderr, flush=True)
    def register():
        HookRegistry.register("sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.execute_forward", drawn)
"""


def test_a_diffusion_server_has_made_a_picture_before_it_is_called_ready(site: Site, tmp_path: Path):
    site.add("drawn-dist", {DIFFUSION_PLUGINS: {"drawn": "drawn:register"}}, {"drawn.py": DRAWN})
    site.add("idle-dist", {DIFFUSION_PLUGINS: {"idle": "idle:register"}}, {"idle.py": "def register(): pass"})
    env = {"SGLANG_USE_CPU_ENGINE": "1", "SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "cpu", "SGLANG_PLUG_CACHE": str(tmp_path / "cache")}
    with serving(*STANDIN, "--runtime", "diffusion", env={**env, "PYTHONPATH": str(site.root)}) as server:
        (ready,) = [line for line in server.lines if READY in line]
        assert ready.rstrip().endswith("answered a request: one picture of 64x64, one step")
    assert re.findall(r"drawn: (.*)", server.log) == ["(64, 64, 3)"]
    assert [line.strip() for line in server.lines if "SP516" in line] == ["warning SP516: plugin 'idle' registered no hook in any process"]
    assert "SRTPlatform" not in server.log  # the other runtime's, which serves nothing
