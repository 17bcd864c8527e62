"""Upstream's names over the core: what may be patched there, and what importing them costs."""

from __future__ import annotations

import ast
import multiprocessing
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
from sglang.cli import serve
from sglang.multimodal_gen.runtime import platforms
from sglang.multimodal_gen.runtime.managers import worker_bootstrap
from sglang.multimodal_gen.runtime.platforms import Platform, PlatformEnum, plugins
from sglang.srt.plugins.hook_registry import HookRegistry as SrtRegistry

from sglang_plug.core import process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.diffusion.conftest import World

SELECTOR = "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"


class Vendor(Platform):
    _enum = PlatformEnum.OOT
    device_name = "vendor"
    device_type = "cpu"


class Nameless(Vendor):
    device_name = " "


class Disguised(Vendor):
    _enum = PlatformEnum.CUDA


def entry(name: str, answer: Any, dist: str | None = None) -> mock.MagicMock:
    made = mock.MagicMock()
    made.name, made.value = name, f"{name}:activate"
    made.dist = SimpleNamespace(name=dist, version="1") if dist else None
    made.load.return_value = answer if callable(answer) else lambda: answer
    return made


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[mock.MagicMock]]:
    """The entry points that both faces see; the runtime is as in a fresh process, before and after."""
    entries: list[mock.MagicMock] = []
    monkeypatch.delenv(SELECTOR, raising=False)
    monkeypatch.delenv("SGLANG_PLUGINS", raising=False)
    monkeypatch.setattr(platforms, "entry_points", lambda group: entries)
    process.diffusion.reset()
    yield entries
    process.diffusion.reset()


def qualname(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


@pytest.mark.parametrize("selector", ["vendor", " vendor ", ""])
def test_the_selected_platform_and_its_distribution(installed: list[Any], selector: str, monkeypatch: pytest.MonkeyPatch):
    installed += [entry("vendor", qualname(Vendor), "vendor-pkg"), entry("absent", None, "absent-pkg")]
    monkeypatch.setenv(SELECTOR, selector)
    assert isinstance(platforms.current_platform, Vendor)
    assert platforms.get_selected_platform_dist() == "vendor-pkg"
    assert installed[1].load.called is (selector == "")  # S2.3: an explicit selection imports only what it names


@pytest.mark.parametrize("name", ["cpu", "CUDA", " rocm ", "mps", "npu", "musa"])
def test_a_named_built_in_is_taken_without_asking_anybody(installed: list[Any], name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(platforms, "entry_points", mock.Mock(side_effect=AssertionError))
    monkeypatch.setattr(platforms, "builtin_platform_plugins", {})
    monkeypatch.setenv(SELECTOR, name)
    assert platforms.resolve_current_platform_cls_qualname() == platforms._BUILTIN_PLATFORM_QUALNAMES[name.strip().lower()]


def test_detection_goes_in_the_documents_order(installed: list[Any], monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    probes = {name: lambda name=name: asked.append(name) or (name == "npu" and "x.Y") or None for name in platforms.BUILTIN_PLATFORM_NAMES}
    monkeypatch.setattr(platforms, "builtin_platform_plugins", probes)
    assert platforms.resolve_current_platform_cls_qualname().endswith("npu.NPUPlatformBase")
    assert asked == ["mps", "xpu", "rocm", "cuda", "npu"]  # S4.3


@pytest.mark.parametrize(
    ("entries", "selector", "error", "words"),
    [
        ([], "nosuch", ValueError, "not found"),
        ([("v", None)], "v", RuntimeError, "returned None"),
        ([("v", 42)], "v", TypeError, "non-empty class qualname"),
        ([("a", qualname(Vendor)), ("b", qualname(Vendor))], "", RuntimeError, "Multiple|several|active"),
        ([("a", None), ("a", None)], "", RuntimeError, "unique"),
        ([("XPU", None)], "", RuntimeError, "built-in"),
        ([("v", qualname(Nameless))], "v", TypeError, "device_name"),
        ([("v", qualname(Disguised))], "v", TypeError, "PlatformEnum.OOT"),
        ([("v", "sglang.multimodal_gen.runtime.platforms.cpu.CpuPlatform")], "v", TypeError, "PlatformEnum.OOT"),
        ([("v", f"{__name__}.Missing")], "v", TypeError, "Missing"),
        ([("v", mock.Mock(side_effect=OSError("driver is broken")))], "", OSError, "driver is broken"),
    ],
)
def test_a_selection_that_cannot_stand_stops_the_start(
    installed: list[Any], entries: list[Any], selector: str, error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch
):
    installed += [entry(name, answer, f"{name}-pkg") for name, answer in entries]
    monkeypatch.setenv(SELECTOR, selector)
    with pytest.raises(error, match=words):
        _ = platforms.current_platform
    assert platforms._current_platform is None
    assert platforms._current_platform_selection is None


def test_the_backend_is_initialised_once_and_a_failure_stands(installed: list[Any]):
    platform = Vendor()
    platforms._current_platform = platform
    with mock.patch.object(platform, "init_backend") as init:
        platforms.initialize_current_platform()
        platforms.initialize_current_platform()
        assert init.call_count == 1
    platforms._backend_init_done = False
    with mock.patch.object(platform, "init_backend", side_effect=KeyboardInterrupt) as init:
        with pytest.raises(KeyboardInterrupt):
            platforms.initialize_current_platform()
        with pytest.raises(RuntimeError, match="previously failed"):
            platforms.initialize_current_platform()
        assert init.call_count == 1  # S7.4: never retried


def test_the_two_runtimes_keep_their_hooks_apart():
    with mock.patch.dict(plugins.HookRegistry._hooks), mock.patch.dict(SrtRegistry._hooks):
        undo = plugins.HookRegistry.register("some.module.target", lambda result: None)
        assert "some.module.target" in plugins.HookRegistry._hooks
        assert issubclass(plugins.HookRegistry, SrtRegistry)  # as in SGLang: one interface, two registries
        assert "some.module.target" not in SrtRegistry._hooks
        undo()
        assert "some.module.target" not in plugins.HookRegistry._hooks


class TestPluginFailures:
    """S5: what ships with the selected platform must work; others are best effort."""

    @pytest.fixture(autouse=True)
    def _selected(self, installed: list[Any], monkeypatch: pytest.MonkeyPatch):
        installed.append(entry("vendor", qualname(Vendor), "vendor-pkg"))
        self.hooks: list[Any] = []
        monkeypatch.setattr(plugins, "entry_points", lambda group: self.hooks if group == plugins.GENERAL_PLUGINS_GROUP else installed)

    @staticmethod
    def registering_then_failing() -> None:
        plugins.HookRegistry.register("acme_no_such_module.function", lambda result: None)
        raise OSError("half way")

    def broken(self, how: str, dist: str) -> Any:
        if how == "load":
            made = entry("p", None, dist)
            made.load.side_effect = ImportError("no wheel")
            return made
        callbacks = {
            "call": self.registering_then_failing,
            "apply": lambda: plugins.HookRegistry.register("acme_no_such_module.function", lambda result: None) and None,
        }
        return entry("p", callbacks[how], dist)

    @pytest.mark.parametrize(("how", "error"), [("load", ImportError), ("call", OSError), ("apply", RuntimeError)])
    def test_the_platforms_own_aborts_the_start(self, how: str, error: type[Exception]):
        self.hooks.append(self.broken(how, "vendor-pkg"))
        with pytest.raises(error):
            plugins.apply_plugin_hooks()
        with pytest.raises(RuntimeError, match="previously failed"):
            plugins.apply_plugin_hooks()

    @pytest.mark.parametrize(("how", "logged"), [("load", "no wheel"), ("call", "half way"), ("apply", "acme_no_such_module")])
    def test_anothers_is_logged_and_its_hooks_are_dropped(self, how: str, logged: str, caplog: pytest.LogCaptureFixture):
        self.hooks.append(self.broken(how, "other-pkg"))
        plugins.apply_plugin_hooks()
        assert logged in caplog.text
        assert not plugins.HookRegistry._hooks or how == "apply"

    def test_plugins_of_platforms_that_were_not_selected_are_not_imported(self, installed: list[Any]):
        installed.append(entry("idle", None, "idle-pkg"))
        self.hooks.append(entry("p", lambda: None, "idle-pkg"))
        plugins.apply_plugin_hooks()
        self.hooks[0].load.assert_not_called()

    def test_an_allowlist_may_leave_out_the_platforms_own(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("SGLANG_PLUGINS", ",")
        self.hooks.append(self.broken("load", "vendor-pkg"))
        plugins.apply_plugin_hooks()
        self.hooks[0].load.assert_not_called()


@pytest.mark.parametrize(
    ("module", "warned"),
    [
        ("sglang.multimodal_gen.envs", False),
        ("sglang.multimodal_gen.runtime.platforms.plugins", False),
        ("sglang.multimodal_gen.runtime.managers.worker_bootstrap", False),
        ("sglang.multimodal_gen.configs.sample", True),
        ("sglang.multimodal_gen.runtime.managers.gpu_worker", True),
    ],
)
def test_what_a_scripts_module_scope_may_import(
    module: str, warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    there = {"__main__": SimpleNamespace(__file__="offline.py"), module: None}
    monkeypatch.setattr(worker_bootstrap, "sys", SimpleNamespace(modules=there))
    worker_bootstrap._warn_if_runtime_imported_early()
    assert (module in caplog.text and "offline.py" in caplog.text) is warned


def test_a_script_without_the_guard_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch):
    """`spawn` runs it again while the child is still being set up, where `multiprocessing` forbids children."""
    from sglang.multimodal_gen.runtime import launch_server

    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    monkeypatch.setitem(sys.modules, "__mp_main__", SimpleNamespace(__file__="offline.py"))  # type: ignore[arg-type]
    with pytest.raises(SystemExit, match=r'offline\.py starts the engine .* `if __name__ == "__main__":`'):
        launch_server.launch_server(mock.MagicMock())


@pytest.mark.parametrize(
    ("argv", "diffusion"),
    [
        (["tiny-dit"], True),
        (["tiny-dit", "--port", "1"], True),
        (["--model-path", "tiny-dit"], True),
        (["--model-path=tiny-dit"], True),
        (["tiny-llama"], False),
        ([], False),
    ],
)
def test_serve_knows_an_image_model_by_its_name(argv: list[str], diffusion: bool):
    assert serve._is_diffusion(argv) is diffusion


IMPORTS = """
import sys
from sglang.multimodal_gen import DiffGenerator
before = [name for name in sys.modules if name.startswith("sglang.multimodal_gen.")]
assert before == ["sglang.multimodal_gen.lazy"], before
import sglang.multimodal_gen.envs
from sglang.multimodal_gen.runtime.managers import worker_bootstrap
from sglang.multimodal_gen.runtime.platforms import cpu, cuda, mps, musa, npu, plugins, rocm, xpu
assert "torch" not in sys.modules, "torch was imported"
print("fine")
"""


def test_platforms_hooks_and_facade_import_without_torch(world: World):
    done = world.script("import sys; sys.modules['torch'] = None\n" + IMPORTS.replace('"torch" not in sys.modules', "True"))
    assert done.stdout == "fine\n", done.stderr


def test_the_faces_parse_on_python_3_10():
    files = list(platforms.__path__)
    for file in [path for folder in files for path in Path(folder).glob("*.py")]:
        ast.parse(file.read_text(), feature_version=(3, 10))
