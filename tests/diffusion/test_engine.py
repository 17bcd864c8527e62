"""Real processes: the order in a worker (S7.1), two ranks against one, failures that end the start, and nobody left behind."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from sglang_plug.standin.diffusion_contract import ROWS
from tests.diffusion import packages
from tests.plugins.install import DIFFUSION_PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.diffusion.conftest import World

# `dispatch_key` is an attribute, and the newer communicator method asks the older one.
METHODS = [row.name for row in ROWS if row.name != "dispatch_key"]
IMPORTED_LATE = {"managers.gpu_worker", "server_args.server_args"}


def pixels(png: Path) -> Any:
    return np.asarray(Image.open(io.BytesIO(png.read_bytes()))).astype(int)


@pytest.fixture(scope="module")
def one(shared: World, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The image of one rank on the built-in CPU platform."""
    done = shared.script(packages.SCRIPT, "{}", SGLANG_DIFFUSION_PLATFORM_OVERRIDE="cpu")
    assert done.returncode == 0, done.stderr
    return pixels(shared.folder / "image.png")


@pytest.fixture(scope="module")
def two(shared: World, one: Any) -> dict[str, Any]:
    """Two ranks on an external platform that writes down whatever it is asked."""
    packages.install(shared.site, " ".join(METHODS))
    path = shared.folder / "journal"
    done = shared.script(packages.SCRIPT, json.dumps({"num_gpus": 2}), JOURNAL=str(path))
    assert done.returncode == 0, done.stderr
    events = packages.journal(path)
    result = json.loads(done.stdout)
    workers = sorted({e["pid"] for e in events if e["event"] == "run_scheduler_process"})
    return {**result, "events": events, "workers": workers, "image": pixels(shared.folder / "image.png"), "stderr": done.stderr}


def happened(run: dict[str, Any], pid: int, *events: str) -> list[dict[str, Any]]:
    """Return the events of one process: those named, and the backend's initialisation."""
    return [e for e in run["events"] if e["pid"] == pid and (e["event"] in events or e.get("name") == "init_backend")]


def test_two_ranks_make_the_image_of_one(one: Any, two: dict[str, Any]):
    assert abs(one - two["image"]).max() <= 1
    assert two["shape"] == [64, 64, 3]
    assert [worker["rank"] for worker in two["info"]] == [0, 1]
    assert {worker["platform"] for worker in two["info"]} == {"acme"}
    exchanges = [e for e in two["events"] if e["event"] == "all_to_all_4D"]
    assert len(exchanges) == 2 * 2 * 2 * 2  # two ranks, two steps, two blocks, there and back


def test_the_order_in_each_worker(two: dict[str, Any]):
    assert len(two["workers"]) == 2
    names = ("register", "hooks applied", "arguments", "run_scheduler_process", "init_device_and_model")
    for pid in two["workers"]:
        events = happened(two, pid, *names)
        assert [e.get("name", e["event"]) for e in events] == ["init_backend", *names]
        before_hooks = events[:2]
        assert not any(IMPORTED_LATE & set(e["loaded"]) for e in before_hooks), before_hooks
        assert not IMPORTED_LATE - set(events[4]["loaded"])
        assert events[4]["keywords"] == ["local_rank", "pipe_writer", "rank", "server_args"]


def test_the_launcher_has_hooks_of_its_own_and_never_touches_the_device(two: dict[str, Any]):
    events = happened(two, two["pid"], "register", "hooks applied")
    assert [e["event"] for e in events] == ["register", "hooks applied"]


def test_every_row_of_the_contract_is_asked(two: dict[str, Any]):
    asked = {e["name"] for e in two["events"] if e["event"] == "asked"}
    assert asked == set(METHODS)


def test_the_documents_layout_brings_no_warning(two: dict[str, Any]):
    assert "imported before this worker" not in two["stderr"]


BREAKING_THE_LAYOUT = "from sglang.multimodal_gen import SamplingParams\n" + packages.SCRIPT


def test_a_script_that_breaks_the_layout_is_told_what_and_where(world: World):
    done = world.script(BREAKING_THE_LAYOUT, "{}", SGLANG_DIFFUSION_PLATFORM_OVERRIDE="cpu")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "imported before this worker" in line]
    assert "sglang.multimodal_gen.configs.sample" in line
    assert str(world.folder / "script.py") in line


FAILING = {
    "backend": ("        def init_backend(self): pass\n", "        def init_backend(self): raise OSError('no such chip')\n"),
    "worker": (
        '        def get_device(self, local_rank): return torch.device("cpu")\n',
        "        def get_device(self, local_rank): raise OSError('no such chip')\n",
    ),
}


@pytest.mark.parametrize("where", sorted(FAILING))
def test_a_worker_that_fails_ends_the_start(world: World, where: str):
    old, new = FAILING[where]
    assert old in packages.PLATFORM
    packages.install(world.site, "init_backend", platform=packages.PLATFORM.replace(old, new))
    path = world.folder / "journal"
    done = world.script(packages.SCRIPT, json.dumps({"num_gpus": 2}), JOURNAL=str(path))
    assert done.returncode == 1
    assert "no such chip" in done.stderr
    assert "sglang-diffusionWorker-" in done.stderr.splitlines()[-1]
    tries = [e["pid"] for e in packages.journal(path) if e.get("name") == "init_backend"]
    assert len(tries) == len(set(tries)) >= 1  # S7.4: at most once in a process


BROKEN_HOOK = """
    from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry

    def register():
        HookRegistry.register("acme_no_such_module.function", lambda result: None)
"""


def test_a_broken_hook_of_the_platforms_package_ends_the_start(world: World):
    packages.install(world.site, "init_backend", hooks=BROKEN_HOOK)
    done = world.script(packages.SCRIPT, "{}", JOURNAL=str(world.folder / "journal"))
    assert done.returncode == 1
    assert "could not apply hooks on: acme_no_such_module.function" in done.stderr


def test_a_broken_hook_of_another_package_is_logged_and_the_image_is_made(world: World, one: Any):
    packages.install(world.site, "init_backend")
    world.site.add("other-pkg", {DIFFUSION_PLUGINS: {"other": "other:register"}}, {"other.py": BROKEN_HOOK})
    done = world.script(packages.SCRIPT, "{}", JOURNAL=str(world.folder / "journal"))
    assert done.returncode == 0, done.stderr
    assert "Failed to apply hooks to acme_no_such_module.function" in done.stderr
    assert abs(one - pixels(world.folder / "image.png")).max() <= 1


def test_the_image_is_made_under_a_temporary_folder_too_long_for_sockets(world: World, one: Any):
    packages.install(world.site, "init_backend")
    temporary = world.folder / ("d" * 120)
    temporary.mkdir()
    done = world.script(packages.SCRIPT, "{}", JOURNAL=str(world.folder / "journal"), TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    assert abs(one - pixels(world.folder / "image.png")).max() <= 1


WAITING = """
import os, sys
from sglang.multimodal_gen import DiffGenerator

if __name__ == "__main__":
    generator = DiffGenerator.from_pretrained(model_path="tiny-dit", log_level="error")
    print(*(process.pid for process in generator.local_scheduler_process), flush=True)
    sys.stdin.read()
"""


def gone(pid: int) -> bool:
    """Wait until a process that is not ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    import select

    try:
        return bool(select.select([handle], [], [], 20)[0])
    finally:
        os.close(handle)


LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="pidfd_open")


@pytest.fixture
def scratch() -> Iterator[str]:
    """Where a launcher that is killed leaves its socket; short, because the path of a socket has some hundred letters at most."""
    with tempfile.TemporaryDirectory(prefix="plug", dir="/tmp") as folder:
        yield folder


@LINUX
def test_a_worker_that_hangs_in_its_backend_ends_with_its_launcher_too(world: World, scratch: str):
    stuck = "        def init_backend(self): __import__('threading').Event().wait()\n"
    packages.install(world.site, "init_backend", platform=packages.PLATFORM.replace(FAILING["backend"][0], stuck))
    fifo = world.folder / "journal"
    os.mkfifo(fifo)
    (world.folder / "script.py").write_text(WAITING)
    with world.start(str(world.folder / "script.py"), JOURNAL=str(fifo), TMPDIR=scratch) as process:
        pid = None
        while pid is None:  # each writer opens the pipe anew, so it ends between them
            notes = [json.loads(line) for line in fifo.read_text().splitlines()]
            pid = next((note["pid"] for note in notes if note.get("name") == "init_backend"), None)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
    assert pid != process.pid
    assert gone(pid)


@LINUX
def test_workers_end_with_a_launcher_that_is_killed(world: World, scratch: str):
    (world.folder / "script.py").write_text(WAITING)
    with world.start(str(world.folder / "script.py"), SGLANG_DIFFUSION_PLATFORM_OVERRIDE="cpu", TMPDIR=scratch) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        assert pids
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=20)
    assert all(gone(pid) for pid in pids)
