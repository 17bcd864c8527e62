"""A scaffolded platform, served by `sglang-plug serve` on real SGLang: answers, hooks, several processes, and sudden deaths."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from sglang_plug.launch import recording
from tests.e2e.server import SMALL, TOOL, Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]

PROMPT = "hello world"
TWO_RANKS = {"SGLANG_CPU_OMP_THREADS_BIND": "0|1"}


@pytest.fixture(scope="module")
def model() -> str:
    from sglang_plug.standin.models import tiny_llama

    return str(tiny_llama())


def scaffold(python: Path, folder: Path, *options: str) -> Path:
    """Scaffold `mydev`, install it into a folder, and return that folder."""
    subprocess.run([TOOL, "new-platform", "mydev", "--yes", *options], cwd=folder, check=True, capture_output=True)
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target", folder / "site"]
    subprocess.run([*command, folder / "mydev"], check=True, capture_output=True)
    return folder / "site"


@pytest.fixture(scope="module")
def site(real_sglang: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scaffold(real_sglang, tmp_path_factory.mktemp("mydev"))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records") / "hooks"


def arguments(python: Path, model: str, *more: str) -> tuple[str, ...]:
    return ("--python", str(python), "--platform", "mydev", "--model-path", model, *SMALL, *more)


@pytest.fixture(scope="module")
def server(real_sglang: Path, site: Path, model: str, records: Path) -> Iterator[Server]:
    """One server for the tests that only ask."""
    env = {"PYTHONPATH": str(site)}
    with serving(*arguments(real_sglang, model, "--sleep-on-idle", "--record", str(records)), env=env) as running:
        yield running


def generate(server: Server, tokens: int = 16) -> list[int]:
    body = {"text": PROMPT, "sampling_params": {"max_new_tokens": tokens, "temperature": 0}}
    request = urllib.request.Request(
        f"{server.url}/generate", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["output_ids"]


@pytest.fixture(scope="module")
def expected(model: str) -> list[int]:
    """What transformers generates from the same weights, greedily."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    llm = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    with torch.no_grad():
        out = llm.generate(ids, max_new_tokens=16, do_sample=False)
    return out[0, ids.shape[1] :].tolist()


@pytest.fixture(scope="module")
def client(server: Server):
    from openai import OpenAI

    with OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=120) as client:
        yield client


class TestOneServer:
    def test_the_screen_says_what_serves(self, server: Server):
        assert "engine     SGLang 0.5.23, srt runtime" in server.log
        assert "platform   SRT will use mydev (mydev.platform:MydevPlatform) of mydev, selected by SGLANG_PLATFORM" in server.log
        assert "plugins    load     mydev (mydev 0.1.0)" in server.log

    def test_every_process_serves_on_the_platform(self, server: Server):
        for process in ("main", "scheduler TP0", "detokenizer"):
            assert f"{process} (" in server.log
        assert server.log.count("platform mydev.platform.MydevPlatform") == 3

    def test_tokens_are_those_of_transformers(self, server: Server, expected: list[int]):
        assert generate(server) == expected

    def test_completions(self, client):
        answer = client.completions.create(model="default", prompt=PROMPT, max_tokens=8, temperature=0)
        assert answer.usage.completion_tokens == 8
        assert answer.choices[0].text

    def test_chat_and_its_stream_say_the_same(self, client):
        asked = {"model": "default", "max_tokens": 12, "temperature": 0, "messages": [{"role": "user", "content": "Hello!"}]}
        whole = client.chat.completions.create(**asked)
        chunks = list(client.chat.completions.create(**asked, stream=True))
        assert len(chunks) > 2
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole.choices[0].message.content

    def test_hooks_are_recorded_in_every_process(self, server: Server, records: Path):
        found = recording.read(records)
        assert [process.title for process in found.processes] == ["main", "detokenizer", "scheduler TP0"]
        assert found.launch["release"] == "0.5.23"
        fired = {(process.role, hook.target): hook.count for process in found.processes for hook in process.hooks if hook.count}
        assert fired == {("scheduler", "sglang.srt.managers.scheduler.Scheduler.__init__"): 1}
        assert recording.failed(found) == []
        assert recording.without_plugins(found) == []

    def test_hooks_command(self, server: Server, records: Path):
        done = subprocess.run([TOOL, "hooks", records], capture_output=True, text=True, check=True)
        assert "sglang.srt.managers.scheduler.Scheduler.__init__" in done.stdout
        assert "fired" in done.stdout


def test_two_ranks_want_to_be_told_their_cores(real_sglang: Path, site: Path, model: str):
    """Told before the start; without the variable the engine dies, and the obituary says why (on a machine with one NUMA node)."""
    from sglang_plug.launch.traps import numa_nodes

    if numa_nodes() > 1:
        pytest.skip("this machine has a NUMA node for each rank")
    with serving(*arguments(real_sglang, model, "--tp-size", "2"), env={"PYTHONPATH": str(site)}, ready=False, status=None) as server:
        assert server.wait_end(300) != 0
    assert "warning SP055" in server.log
    assert "process: scheduler TP" in server.log
    assert "error: AssertionError: SGLANG_CPU_OMP_THREADS_BIND is not set" in server.log
    assert "hint: set SGLANG_CPU_OMP_THREADS_BIND" in server.log


@pytest.mark.parametrize(
    ("option", "processes"),
    [
        ("--tp-size", ["main", "detokenizer", "scheduler TP0", "scheduler TP1"]),
        ("--dp-size", ["main", "data-parallel controller", "detokenizer", "scheduler DP0 TP0", "scheduler DP1 TP0"]),
    ],
)
def test_two_ranks(real_sglang: Path, site: Path, model: str, expected: list[int], tmp_path: Path, option: str, processes: list[str]):
    env = {"PYTHONPATH": str(site), **TWO_RANKS}
    with serving(*arguments(real_sglang, model, option, "2", "--record", str(tmp_path / "hooks")), env=env) as server:
        assert "SP055" not in server.log
        assert generate(server) == expected
        assert generate(server) == expected
    found = recording.read(tmp_path / "hooks")
    assert [process.title for process in found.processes] == processes
    schedulers = [process for process in found.processes if process.role == "scheduler"]
    assert [sum(hook.count for hook in process.hooks) for process in schedulers] == [1, 1]


def test_two_tokenizer_workers(real_sglang: Path, site: Path, model: str, expected: list[int], tmp_path: Path):
    """The workers load no plugins: said before the start, and seen in the records."""
    more = ("--tokenizer-worker-num", "2", "--sleep-on-idle", "--record", str(tmp_path / "hooks"))
    # Uvicorn's supervisor, which stands above the workers, has a status of its own when it is told to stop.
    with serving(*arguments(real_sglang, model, *more), env={"PYTHONPATH": str(site)}, status=None) as server:
        assert "warning SP056" in server.log
        assert "no hooks 2 × tokenizer worker" in server.log
        assert generate(server) == expected
    assert [process.title for process in recording.read(tmp_path / "hooks").processes] == ["main", "detokenizer", "scheduler TP0"]


def test_an_older_release(real_sglang_0521: Path, tmp_path: Path, model: str, expected: list[int]):
    site = scaffold(real_sglang_0521, tmp_path, "--sglang", "0.5.21")
    more = ("--sleep-on-idle", "--record", str(tmp_path / "hooks"))
    with serving(*arguments(real_sglang_0521, model, *more), env={"PYTHONPATH": str(site)}) as server:
        assert "engine     SGLang 0.5.21" in server.log
        assert "info SP058" in server.log
        assert generate(server) == expected
    # before 0.5.22 the detokenizer loads no plugins
    assert [process.title for process in recording.read(tmp_path / "hooks").processes] == ["main", "scheduler TP0"]


def test_a_required_hook_that_cannot_apply_ends_the_start(real_sglang: Path, site: Path, model: str, tmp_path: Path):
    """The platform's own hook names a target that is gone: the launch ends before any weight is loaded, whatever SGLang logs."""
    subprocess.run(["cp", "-r", *map(str, site.iterdir()), str(tmp_path)], check=True)
    (next(tmp_path.glob("mydev-*.dist-info")) / "entry_points.txt").write_text(
        "[sglang.srt.platforms]\nmydev = mydev:activate\n[sglang.srt.plugins]\nmydev = mydev_broken:register\n"
    )
    (tmp_path / "mydev_broken.py").write_text(
        "from sglang.srt.plugins.hook_registry import HookRegistry, HookType\n"
        "def register():\n"
        "    HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.' + str.lower('GONE'), lambda *a: None, HookType.BEFORE)\n"
    )
    with serving(*arguments(real_sglang, model), env={"PYTHONPATH": str(tmp_path)}, ready=False, status=None) as server:
        assert server.wait_end(300) == 1
    assert "error SP529: the hook of mydev on sglang.srt.managers.scheduler.Scheduler.gone cannot be applied in main" in server.log
    assert "Load weight begin" not in server.log


def test_a_killed_scheduler_ends_the_launch(real_sglang: Path, site: Path, model: str):
    with serving(*arguments(real_sglang, model, "--sleep-on-idle"), env={"PYTHONPATH": str(site)}, status=None) as server:
        os.kill(server.pid_of("sglang::scheduler"), signal.SIGKILL)
        assert server.wait_end(120) != 0
    assert "sglang-plug: the engine ended with" in server.log


def test_a_killed_main_process_ends_the_launch(real_sglang: Path, site: Path, model: str):
    with serving(*arguments(real_sglang, model, "--sleep-on-idle"), env={"PYTHONPATH": str(site)}, status=None) as server:
        main = int(server.log.split("main (")[1].split(")")[0])
        os.kill(main, signal.SIGKILL)
        assert server.wait_end(60) == 128 + signal.SIGKILL
    assert "signal SIGKILL, after: serving" in server.log


def test_a_killed_tool_leaves_nobody(real_sglang: Path, site: Path, model: str):
    with serving(*arguments(real_sglang, model, "--sleep-on-idle"), env={"PYTHONPATH": str(site)}, status=None) as server:
        assert len(server.processes()) > 3
        server.process.kill()
        deadline = time.monotonic() + 60
        while server.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert server.processes() == {}
