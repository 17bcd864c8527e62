"""Real SGLang makes images on the CPU through the platform package that `new-platform` writes: `generate` and `serve`, one and two workers.

The order in a worker is written down by a platform derived from the scaffolded one, and by hooks of its own distribution (S7.1).
"""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.diffusion import packages
from tests.plugins.install import DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, Site

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(600)]

HERE = Path(__file__).parent
MODEL_ID = "stable-diffusion-3-medium"  # which of SGLang's pipelines: a local folder has no name to tell it by

OBSERVED = """
    from acme.diffusion_platform import AcmeDiffusionPlatform
    from observed.journal import note

    class Observed(AcmeDiffusionPlatform):
        device_name = "observed"

        def init_backend(self):
            note("init_backend")
            super().init_backend()
"""
ORDER = ["init_backend", "register", "hooks applied", "arguments", "run_scheduler_process", "init_device_and_model"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The scaffolded package `acme`, as an installation of its own."""
    root = tmp_path_factory.mktemp("scaffold")
    subprocess.run([sys.executable, "-m", "sglang_plug", "new-platform", "acme", "--runtime", "diffusion"], cwd=root, check=True)
    project = tomllib.loads((root / "acme" / "pyproject.toml").read_text())["project"]
    made = Site(tmp_path_factory.mktemp("site"), [root / "acme"])
    made.add(project["name"], project["entry-points"], version=project.get("version", "1.0"))
    return made


@pytest.fixture(scope="session")
def observed(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The same, and the package `observed` on top of it."""
    made = Site(tmp_path_factory.mktemp("observed"), [*site.extra, site.root])
    files = {
        "observed/__init__.py": 'def activate(): return "observed.platform.Observed"\n',
        "observed/platform.py": OBSERVED,
        "observed/journal.py": packages.JOURNAL,
        "observed/target.py": packages.TARGET.replace("acme", "observed"),
        "observed/hooks.py": packages.HOOKS.replace("acme", "observed"),
    }
    points = {DIFFUSION_PLATFORMS: {"observed": "observed:activate"}, DIFFUSION_PLUGINS: {"observed": "observed.hooks:register"}}
    made.add("observed-pkg", points, files)
    return made


@pytest.fixture(scope="session")
def pipeline(real_sglang: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Stable Diffusion 3."""
    folder = tmp_path_factory.mktemp("sd3")
    subprocess.run([real_sglang, HERE / "tiny_sd3.py", folder], check=True, env=os.environ | {"HF_HUB_OFFLINE": "1"}, capture_output=True)
    return folder


@pytest.fixture(params=["0.5.23", "0.5.21"])
def engine(request: pytest.FixtureRequest) -> Path:
    """The python of one release's environment."""
    found: Path = request.getfixturevalue({"0.5.23": "real_sglang", "0.5.21": "real_sglang_0521"}[request.param])
    return found


def pixels(image: bytes) -> Any:
    import numpy as np
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(image)).convert("RGB")).astype(int)


def generate(engine: Path, pipeline: Path, site: Site, folder: Path, workers: int, **variables: str) -> Any:
    """Run `sglang generate` and return the pixels of what it saved."""
    out = folder / f"images-{workers}"
    command = [engine.with_name("sglang"), "generate", "--model-path", pipeline, "--model-id", MODEL_ID, "--prompt", "a red cube"]
    size = ["--num-inference-steps", "2", "--height", "64", "--width", "64", "--seed", "1", "--num-gpus", str(workers)]
    done = subprocess.run(
        [*map(str, command), *size, "--save-output", "--output-path", str(out)],
        env=site.env(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", **variables),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    (image,) = out.iterdir()
    return pixels(image.read_bytes())


def test_images_and_the_order_in_each_worker(engine: Path, pipeline: Path, observed: Site, tmp_path: Path):
    images = {}
    for workers in (1, 2):
        path = tmp_path / f"journal-{workers}"
        variables = {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "observed", "JOURNAL": str(path)}
        images[workers] = generate(engine, pipeline, observed, tmp_path, workers, **variables)
        events = packages.journal(path)
        pids = {e["pid"] for e in events if e["event"] == "run_scheduler_process"}
        assert len(pids) == workers
        for pid in pids:
            mine = [e for e in events if e["pid"] == pid and e["event"] in ORDER]
            assert [e["event"] for e in mine] == ORDER
            assert not any("managers.gpu_worker" in e["loaded"] or "server_args.server_args" in e["loaded"] for e in mine[:2])
    assert images[1].shape == (64, 64, 3)
    assert images[1].std() > 5
    assert abs(images[1] - images[2]).max() <= 16  # another order of sums


def test_both_releases_draw_the_same(real_sglang: Path, real_sglang_0521: Path, pipeline: Path, site: Site, tmp_path: Path):
    drawn = []
    for name, python in (("newer", real_sglang), ("older", real_sglang_0521)):
        (tmp_path / name).mkdir()
        drawn.append(generate(python, pipeline, site, tmp_path / name, 1))
    assert abs(drawn[0] - drawn[1]).max() <= 2


def answer(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"content-type": "application/json"}), timeout=120) as reply:
        return reply.read()


@pytest.mark.parametrize(
    ("engine", "workers"), [(release, workers) for release in ("0.5.23", "0.5.21") for workers in (1, 2)], indirect=["engine"]
)
def test_serve_answers_an_image_request(engine: Path, pipeline: Path, site: Site, tmp_path: Path, workers: int):
    port = 32400 + os.getpid() % 500
    command = ["serve", "--runtime", "diffusion", "--platform", "acme", "--python", str(engine), "--"]
    model = ["--model-path", str(pipeline), "--model-id", MODEL_ID, "--host", "127.0.0.1", "--port", str(port), "--num-gpus", str(workers)]
    log = tmp_path / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", "sglang_plug", *command, *model],
            env=site.env(HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1"),
            cwd=tmp_path,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        await_health(server, f"http://127.0.0.1:{port}/health", log)
        body = {"prompt": "a red cube", "size": "64x64", "n": 1, "num_inference_steps": 2, "response_format": "b64_json"}
        reply = json.loads(answer(f"http://127.0.0.1:{port}/v1/images/generations", body))
        assert pixels(base64.b64decode(reply["data"][0]["b64_json"])).shape == (64, 64, 3)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(60)
        finally:
            end_group(server.pid)
    assert "acme" in log.read_text(errors="replace")


def await_health(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Return once the server is healthy; fail with its log where it ends before."""
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline:
        try:
            server.wait(1)
        except subprocess.TimeoutExpired:
            try:
                answer(url)
            except (urllib.error.URLError, OSError):
                continue
            return
        break
    raise AssertionError(log.read_text(errors="replace")[-4000:])


def end_group(group: int) -> None:
    """Kill what is left of a session."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
