"""The server's life: ready, stopped, killed, or never up. Nobody is left behind, and the reason is told (S6.4)."""

from __future__ import annotations

import json
import os
import signal
import socket
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.plugins.install import SRT_PLATFORMS, Site
from tests.standin.server import Server, alive

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = {"text": "x", "sampling_params": {"temperature": 0, "max_new_tokens": 1900, "ignore_eos": True}, "stream": True}


def soon(holds: Callable[[], Any], seconds: float = 15) -> Any:
    """Wait until something holds, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_even_with_a_client_streaming(number: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        env = {**os.environ, "SGLANG_USE_CPU_ENGINE": "1", "TMPDIR": place}
        with Server(env=env) as server, httpx.stream("POST", f"{server.url}/generate", json=LONG, timeout=30) as answer:
            next(answer.iter_lines())
            children = set(server.children)
            assert len(children) >= 2
            assert [name for name in os.listdir(place) if name.startswith("sglang-standin-")]
            assert server.end(number) == 0
            assert soon(lambda: not alive(children))
        assert not [name for name in os.listdir(place) if name.startswith("sglang-standin-")]


def test_nobody_is_left_when_the_main_process_is_killed() -> None:
    with Server("--tp-size", "2") as server:
        children = set(server.children)
        assert len(children) >= 3
        assert server.end(signal.SIGKILL) == -signal.SIGKILL
        assert soon(lambda: not alive(children))


def test_a_killed_scheduler_ends_the_server_and_tells_the_client() -> None:
    with Server() as server, httpx.Client(base_url=server.url, timeout=30) as client:
        scheduler = next(pid for pid, command in server.children.items() if _is_scheduler(server, pid, command))
        with client.stream("POST", "/generate", json=LONG) as answer:
            lines = answer.iter_lines()
            next(lines)
            os.kill(scheduler, signal.SIGKILL)
            events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        assert "scheduler_TP0" in events[-1]["error"]["message"]
        assert server.wait() == 1
        assert "scheduler_TP0" in server.log
        assert "killed by SIGKILL" in server.log


def _is_scheduler(server: Server, pid: int, command: str) -> bool:
    """The scheduler is the child with torch in it."""
    with open(f"/proc/{pid}/maps") as file:
        return "spawn_main" in command and "libtorch" in file.read()


def test_a_stop_while_starting_leaves_nobody() -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "sglang_plug.standin", "serve", "--model-path", "tiny", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "SGLANG_USE_CPU_ENGINE": "1"}, start_new_session=True)
    holder: Any = type("Started", (), {"process": process})
    children = soon(lambda: Server.children.fget(holder))  # type: ignore[attr-defined]
    assert children
    process.terminate()
    assert process.wait(20) in {0, -signal.SIGTERM}
    assert soon(lambda: not alive(set(children)))


# -- never up


def refusal(*arguments: str) -> str:
    with pytest.raises(RuntimeError) as refused:
        Server(*arguments)
    return str(refused.value).strip()


def test_a_taken_port_is_told_before_anything_is_loaded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refusal("--port", str(port)).startswith(f"sglang serve: cannot listen on 127.0.0.1:{port}: Address already in use")


def test_a_platform_that_fails_to_start_is_shown_with_its_traceback(site: Site) -> None:
    platform = """
        from sglang.srt.platforms.device_mixin import PlatformEnum
        from sglang.srt.platforms.interface import SRTPlatform
        class Plat(SRTPlatform):
            _enum = PlatformEnum.OOT
            device_name = "pa"
            def get_device(self, device_id=0): return "cpu"
            def init_backend(self): return None .no_driver
    """
    files = {"pa/__init__.py": "def activate(): return 'pa.plat:Plat'", "pa/plat.py": platform}
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, files)
    with pytest.raises(RuntimeError) as refused:
        Server(env=site.env(SGLANG_PLATFORM="pa"))
    said = str(refused.value).strip()
    assert said.splitlines()[-1] == "sglang serve: scheduler_TP0: AttributeError: 'NoneType' object has no attribute 'no_driver'"
    assert "plat.py" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--model-path", "/no/such/folder"), "--model-path: no folder /no/such/folder"),
        (("--page-size", "0"), "--page-size must be at least 1"),
        (
            ("--attention-backend", "flashy"),
            "scheduler_TP0: ValueError: attention backend 'flashy' is not registered (known: torch_native)",
        ),
    ],
)
def test_a_server_that_cannot_work_says_why_in_its_last_line(arguments: tuple[str, ...], words: str) -> None:
    said = refusal(*arguments)
    assert words in said.splitlines()[-1]
    assert "Traceback" not in said
