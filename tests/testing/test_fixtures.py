"""The fixtures of the test kit, used as an author uses them, in this very run of pytest; and their inertness, in another."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.core import entrypoints
from sglang_plug.testing import FakeInstalls, WorkerFailed, engine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLATFORM = """
    from sglang.srt.platforms.device_mixin import PlatformEnum
    from sglang.srt.platforms.interface import SRTPlatform

    class Chip(SRTPlatform):
        _enum = PlatformEnum.OOT
        device_name = "chip"
        def init_backend(self):
            import os
            os.environ["CHIP_BACKEND"] = "set up"
"""
HOOKS = """
    calls = []

    def register():
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
        HookRegistry.register("textwrap.dedent", double, HookType.AFTER)

    def double(result, text):
        calls.append(text)
        return result * 2
"""


@pytest.fixture
def chip(fake_install: FakeInstalls) -> None:
    groups = {"sglang.srt.platforms": {"chip": "chip:activate"}, "sglang.srt.plugins": {"chip_hooks": "chip_hooks:register"}}
    fake_install(
        "chip", groups, {"chip.py": "def activate(): return 'chip_platform:Chip'", "chip_platform.py": PLATFORM, "chip_hooks.py": HOOKS}
    )


def test_a_fake_install_is_installed(chip: None) -> None:
    assert [found.dist for found in entrypoints.installed("sglang.srt.platforms") if found.name == "chip"] == ["chip"]
    code = "from importlib.metadata import version; import chip; print(version('chip'), chip.activate())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1.0 chip_platform:Chip\n"
    importlib.import_module("chip_hooks")
    assert importlib.import_module("chip").activate() == "chip_platform:Chip"


def test_a_fake_install_is_gone_afterwards() -> None:
    assert not [found for found in entrypoints.installed("sglang.srt.platforms") if found.name == "chip"]
    assert not {"chip", "chip_platform", "chip_hooks"} & sys.modules.keys()
    assert not any("fake-installs" in place for place in [*sys.path, os.environ.get("PYTHONPATH", "")])


def test_hooks_are_in_force_and_then_not(chip: None, hooked: Callable[..., Any]) -> None:
    done = hooked("chip_hooks")
    assert done.targets == ("textwrap.dedent",)
    assert [entry.type for entry in done.registrations] == ["after"]
    assert textwrap.dedent("ab") == "abab"
    assert sys.modules["chip_hooks"].calls == ["ab"]
    done.revert()
    assert textwrap.dedent("ab") == "ab"


def test_hooks_left_in_force_are_taken_back() -> None:
    assert textwrap.dedent("ab") == "ab"


def test_a_callback_can_be_hooked_without_an_install(hooked: Callable[..., Any]) -> None:
    def register() -> None:
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType

        HookRegistry.register("textwrap.dedent", lambda text: ((text + "!",), {}), HookType.BEFORE)

    hooked(register)
    assert textwrap.dedent("ab") == "ab!"


def test_a_target_that_cannot_be_hooked_is_told(hooked: Callable[..., Any]) -> None:
    def register() -> None:
        from sglang.srt.plugins.hook_registry import HookRegistry

        HookRegistry.register("textwrap.nonsense", print)

    assert "nonsense" in str(hooked(register).failures["textwrap.nonsense"])


def test_an_unknown_plugin_fails_in_words(hooked: Callable[..., Any]) -> None:
    with pytest.raises(pytest.fail.Exception, match="no entry point 'nobody' in group sglang"):
        hooked("nobody")


def answer(question: str) -> tuple[str, str | None, str, str]:
    from sglang.srt.platforms import current_platform

    return question, os.environ.get("CHIP_BACKEND"), current_platform.device_name, textwrap.dedent("x")


def fail() -> None:
    raise KeyError("in the worker")


def end() -> None:
    os._exit(5)


def test_a_worker_is_set_up_before_the_function_runs(chip: None, spawned_worker: Callable[..., Any]) -> None:
    assert spawned_worker(answer, "hi", platform="chip") == ("hi", "set up", "chip", "xx")
    assert "CHIP_BACKEND" not in os.environ
    assert textwrap.dedent("x") == "x"


def test_a_worker_takes_variables(chip: None, spawned_worker: Callable[..., Any]) -> None:
    assert spawned_worker(answer, "hi", platform="chip", env={"SGLANG_PLUGINS": "none"})[3] == "x"


def test_two_platforms_need_a_selector(fake_install: FakeInstalls, spawned_worker: Callable[..., Any]) -> None:
    """The guide's example."""
    for name in ("one", "two"):
        fake_install(name, {"sglang.srt.platforms": {name: f"{name}:activate"}}, {f"{name}.py": "def activate(): return 'x.Y'"})
    with pytest.raises(WorkerFailed, match="Set SGLANG_PLATFORM"):
        spawned_worker(print)


def test_a_failing_worker_tells_its_own_traceback(spawned_worker: Callable[..., Any]) -> None:
    with pytest.raises(WorkerFailed, match=r"(?s)in fail.*KeyError: 'in the worker'"):
        spawned_worker(fail)
    with pytest.raises(WorkerFailed, match="ended with status 5"):
        spawned_worker(end)
    with pytest.raises(WorkerFailed, match="nobody"):
        spawned_worker(answer, "hi", platform="nobody")


def test_the_world_is_put_back(pytestconfig: pytest.Config) -> None:
    from sglang_plug.testing import world

    registry = None
    with world.restored():
        registry = importlib.import_module("sglang.srt.plugins.hook_registry")
        plugins = importlib.import_module("sglang.srt.plugins")
        registry.HookRegistry.register("textwrap.dedent", lambda result, text: "patched")
        plugins.load_plugins()
        os.environ["SGLANG_PLUGINS"] = "x"
        sys.path.append("/nowhere")
        assert textwrap.dedent("ab") == "patched"
    assert textwrap.dedent("ab") == "ab"
    assert "SGLANG_PLUGINS" not in os.environ
    assert "/nowhere" not in sys.path
    with world.restored():
        plugins.load_plugins()  # the gate is open again, and the hook of before is forgotten
        assert textwrap.dedent("ab") == "ab"
    with world.restored():
        registry.HookRegistry.register("textwrap.indent", lambda result, *_: "again")
        plugins.load_plugins()
        assert textwrap.indent("ab", " ") == "again"


def test_the_standin_counts_as_the_release_that_it_mirrors() -> None:
    assert not engine.is_real()
    assert engine.contract().version == engine.release() == "0.5.23"


BARE = """
import sys

def test_inert():
    heavy = {"torch", "sglang", "typer", "rich", "cookiecutter", "griffe", "tomlkit", "numpy"} & sys.modules.keys()
    assert not heavy
    ours = {name for name in sys.modules if name.startswith("sglang_plug.")}
    assert ours == {"sglang_plug.testing", "sglang_plug.testing.plugin"}
    assert not [finder for finder in sys.meta_path if type(finder).__name__ == "StandinFinder"]
"""


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_plugin_is_inert_until_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(BARE)
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout


def test_imports_at_the_top_of_modules_need_the_setting(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from sglang.srt.platforms.interface import SRTPlatform\n\ndef test_it():\n    assert SRTPlatform\n"
    )
    assert run_pytest(tmp_path).returncode == 2
    (tmp_path / "pytest.ini").write_text("[pytest]\nsglang_standin = true\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
