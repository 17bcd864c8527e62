"""The HTTP server and the commands, as real processes."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.diffusion.test_engine import gone, pixels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.diffusion.conftest import World

CPU = {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "cpu"}


class Client:
    """Talks to one server."""

    def __init__(self, port: int) -> None:
        self.port, self.root = port, f"http://127.0.0.1:{port}"

    def ask(self, path: str, body: dict[str, Any] | bytes | None = None) -> tuple[int, Any]:
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        request = urllib.request.Request(self.root + path, data, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)


def serve(world: World, **variables: str) -> tuple[subprocess.Popen[str], Client]:
    """Start a server and return once it says that it listens."""
    from sglang.multimodal_gen.runtime.server_args.server_args import free_port

    port = free_port()
    process = world.start("-m", "sglang.cli.main", "serve", "--model-type", "diffusion", "--port", str(port), **CPU, **variables)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Uvicorn running" in line:
            return process, Client(port)
    raise AssertionError("".join(lines))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=40)
    return process.returncode, out + err


@pytest.fixture(scope="module")
def server(shared: World) -> Iterator[Client]:
    # Short: the path of a socket has some hundred letters at most.
    with tempfile.TemporaryDirectory(prefix="plug", dir="/tmp") as scratch:
        process, client = serve(shared, TMPDIR=scratch)
        assert len(list(Path(scratch).glob("sgl-diffusion-*"))) == 1
        yield client
        process.send_signal(signal.SIGTERM)
        status, text = ended(process)
        assert status == 0, text
        assert list(Path(scratch).glob("sgl-diffusion-*")) == []


def test_it_is_healthy_and_names_its_model(server: Client):
    assert server.ask("/health")[0] == 200
    status, models = server.ask("/v1/models")
    assert (status, [entry["id"] for entry in models["data"]]) == (200, ["tiny-dit"])
    status, info = server.ask("/server_info")
    assert (status, info["workers"][0]["platform"]) == (200, "CPU")


def test_images_are_png_files_in_base64_the_same_for_a_seed(server: Client, tmp_path: Path):
    body = {"prompt": "a red cube", "size": "32x48", "n": 2, "seed": 3, "num_inference_steps": 2, "response_format": "b64_json"}
    status, answer = server.ask("/v1/images/generations", body)
    assert status == 200
    files = [base64.b64decode(entry["b64_json"]) for entry in answer["data"]]
    assert len(files) == 2
    assert files[0] != files[1]
    assert files[0].startswith(b"\x89PNG")
    (tmp_path / "a.png").write_bytes(files[0])
    assert pixels(tmp_path / "a.png").shape == (48, 32, 3)
    assert server.ask("/v1/images/generations", body)[1]["data"] == answer["data"]
    # The second image of a request is the first of the next seed.
    second = server.ask("/v1/images/generations", {**body, "seed": 4, "n": 1})[1]["data"][0]
    assert second == answer["data"][1]


def test_the_openai_client_is_served(server: Client):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{server.root}/v1", api_key="none") as client:
        answer = client.images.generate(prompt="x", size="32x32", extra_body={"num_inference_steps": 1})  # type: ignore[arg-type]
    assert base64.b64decode(answer.data[0].b64_json).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "prompt"),
        ({"prompt": "x", "size": "50x50"}, "size '50x50': height must be a multiple of 16"),
        ({"prompt": "x", "size": "64x50", "height": 32, "width": 0}, "width must be a multiple of 16"),
        ({"prompt": "x", "size": "large"}, "size must be auto or WIDTHxHEIGHT, for instance 64x64, not 'large'"),
        ({"prompt": "x", "size": "64"}, "size must be auto or WIDTHxHEIGHT"),
        ({"prompt": "x", "n": 0}, "n:"),
        ({"prompt": "x", "response_format": "url"}, "response_format"),
        ({"prompt": "x", "num_inference_steps": 0}, "num_inference_steps must"),
        (b'{"prompt": "x", "guidance_scale": NaN}', "guidance_scale must"),
        (b"hello", "body: JSON decode error (Expecting value)"),
        (b'{"prompt": "\xff"}', "parsing the body"),
    ],
)
def test_a_wrong_request_is_told_what_is_wrong(server: Client, body: dict[str, Any] | bytes, words: str):
    status, answer = server.ask("/v1/images/generations", body)
    assert status == 400
    assert words in answer["error"]["message"]
    assert not words.endswith(" must") or answer["error"]["message"].startswith(words)
    assert server.ask("/health")[0] == 200


def test_null_asks_for_the_default(server: Client):
    body = {"prompt": "x", "num_inference_steps": 1}
    nulls = dict.fromkeys(("n", "size", "output_format", "response_format", "seed", "guidance_scale", "negative_prompt"))
    plain, null = server.ask("/v1/images/generations", body), server.ask("/v1/images/generations", {**body, **nulls})
    assert plain[1]["data"] == null[1]["data"] == server.ask("/v1/images/generations", {**body, "size": "auto"})[1]["data"]


def test_a_worker_that_dies_ends_the_server_and_whoever_waits_for_it_is_told(world: World):
    process, client = serve(world)
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    children = [int(pid) for pid in listed.split() if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    worker, _ = children  # the HTTP server is the second
    os.kill(worker, signal.SIGSTOP)  # so that it cannot answer
    waiting = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
    waiting.request("POST", "/v1/images/generations", '{"prompt": "x"}', {"content-type": "application/json"})
    assert client.ask("/health")[0] == 200  # asked later, answered later: the request has come in
    os.kill(worker, signal.SIGKILL)
    answer = waiting.getresponse()
    assert (answer.status, json.load(answer)["error"]["message"]) == (503, f"the worker with process id {worker} has ended")
    waiting.close()
    status, text = ended(process)
    assert status == 1
    assert "sglang-diffusionWorker-0 ended while serving (signal SIGKILL)" in text
    assert all(gone(pid) for pid in children)
    with pytest.raises(OSError, match=r"refused|reset"):
        client.ask("/health")


def test_generate_writes_the_file_and_says_where(world: World):
    target = world.folder / "out" / "cube.png"
    command = ["generate", "--prompt", "a red cube", "--seed", "1", "--height", "32", "--width", "32", "--num-inference-steps", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "sglang_plug.standin", *command, "--output-file-path", str(target), "--log-level", "error"],
        env=world.env(**CPU),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{target}\n"), done.stderr
    assert pixels(target).shape == (32, 32, 3)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["serve", "--num-gpus", "0"], "--num-gpus"),
        (["generate", "--prompt", "x", "--height", "50"], "height"),
        (["serve", "--nosuch"], "--nosuch"),
        (["serve", "/nowhere"], "/nowhere"),
    ],
)
def test_a_wrong_command_line_is_status_2(world: World, argv: list[str], words: str):
    done = subprocess.run(
        [sys.executable, "-m", "sglang.multimodal_gen.runtime.entrypoints.cli.main", *argv],
        env=world.env(**CPU),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[-1]
