"""Each conformance test of hooks fires on the mistake it is about, and is silent on a sound plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plugins.install import DIFFUSION_PLUGINS, SRT_PLUGINS, Site
from tests.testing.test_platform_contract import module, run

if TYPE_CHECKING:
    from pathlib import Path

SRT = "from sglang.srt.plugins.hook_registry import HookRegistry, HookType"
DIFFUSION = "from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType"
SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
STREAM = "sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request"


def plugin(target: str, hook: str, kind: str, api: str = SRT) -> str:
    return f"def register():\n    {api}\n    {hook}\n    HookRegistry.register('{target}', hook, HookType.{kind})\n"


#: (module, the test that must fail, words of its message)
WRONG: dict[str, tuple[str, str, str]] = {
    "nothing": ("def register(): pass", "something_is_registered", "nothing changes"),
    "callback raises": ("def register(): raise OSError('no chip')", "something_is_registered", "the callback fails: OSError: no chip"),
    "other registry": (
        plugin(f"{SCHEDULER}.run_batch", "hook = lambda *a, **k: None", "AFTER", DIFFUSION),
        "the_right_registry_is_used",
        "never runs them",
    ),
    "no such target": (
        plugin(f"{SCHEDULER}.run_batsch", "hook = lambda *a, **k: None", "AFTER"),
        "targets_exist",
        f"near: {SCHEDULER}.run_batch",
    ),
    "colon function": (
        plugin("sglang.srt.managers.scheduler:Scheduler", "class hook: pass", "REPLACE"),
        "colon_targets_have_a_class",
        "write a dot",
    ),
    "class wrapped": (
        plugin(SCHEDULER, "hook = lambda *a, **k: None", "AROUND"),
        "types_fit_targets",
        "is a class, and the hook is around",
    ),
    "after without result": (
        plugin(f"{SCHEDULER}.run_batch", "def hook(self, batch): pass", "AFTER"),
        "hooks_take_the_targets_arguments",
        "too many positional",
    ),
    "around without original": (
        plugin(f"{SCHEDULER}.run_batch", "def hook(self): pass", "AROUND"),
        "hooks_take_the_targets_arguments",
        "cannot be called",
    ),
    "stream as a result": (
        plugin(STREAM, "def hook(result, self, *a, **k): return result", "AFTER"),
        "coroutines_are_awaited",
        "gets the coroutine",
    ),
    "async before a stream": (plugin(STREAM, "async def hook(*a, **k): pass", "BEFORE"), "coroutines_are_awaited", "without await"),
    "async around a method": (
        plugin(f"{SCHEDULER}.run_batch", "async def hook(fn, *a, **k): pass", "AROUND"),
        "hooks_are_not_async",
        "takes the coroutine for the result",
    ),
    "replaced twice": (
        plugin(f"{SCHEDULER}.run_batch", "hook = lambda *a, **k: None", "REPLACE")
        + f"    HookRegistry.register('{SCHEDULER}.run_batch', hook, HookType.REPLACE)\n",
        "one_hook_replaces_a_target",
        "takes the last",
    ),
    "dead target": (
        plugin("sglang.srt.server_args.ServerArgs.__post_init__", "hook = lambda *a, **k: None", "AFTER"),
        "targets_are_alive",
        "resolve_once",
    ),
    "process entry": (
        plugin("sglang.srt.managers.scheduler.run_scheduler_process", "hook = lambda fn, *a, **k: fn(*a, **k)", "AROUND"),
        "targets_are_alive",
        "PicklingError",
    ),
    "not applicable": (plugin("json.nonsense.thing", "hook = lambda *a, **k: None", "AFTER"), "hooks_can_be_applied", "cannot be hooked"),
}
SOUND = {
    "srt": plugin(
        f"{SCHEDULER}.run_batch",
        "def hook(original, self, batch, *args, **kwargs): return original(self, batch, *args, **kwargs)",
        "AROUND",
    ),
    "diffusion": plugin(
        "sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.init_device_and_model",
        "def hook(original, self, *args, **kwargs): return original(self, *args, **kwargs)",
        "AROUND",
        DIFFUSION,
    ),
}
SOUND_TOO = {
    "async after a coroutine": plugin(
        "sglang.srt.managers.tokenizer_manager.TokenizerManager.handle_loop", "async def hook(r, *a, **k): return await r", "AFTER"
    ),
    "plain around a stream": plugin(STREAM, "def hook(fn, *a, **k): return fn(*a, **k)", "AROUND"),
    "beyond the stand-in": plugin(
        "sglang.srt.model_loader.loader.DefaultModelLoader.load_model", "def hook(fn, *a, **k): return fn(*a, **k)", "AROUND"
    ),
}
FULL_NAMES = {
    "hooks_are_not_async": "hooks_are_not_async_where_targets_are_not",
    "hooks_can_be_applied": "hooks_can_be_applied_and_taken_back",
}

TEST = """
from sglang_plug.testing import HookContract

class Test_{name}(HookContract):
    runtime = "{runtime}"
    entry_point = "{name}"
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Outcome and message of each test, `case::test`."""
    folder: Path = tmp_path_factory.mktemp("hooks")
    site = Site(folder / "site")
    wanted, tests = [], []
    for case, (text, test, _) in WRONG.items():
        name = module(case, "h")
        site.add(f"{name}-dist", {SRT_PLUGINS: {name: f"{name}:register"}}, {f"{name}.py": text})
        tests.append(TEST.format(name=name, runtime="srt"))
        wanted.append(f"test_all.py::Test_{name}::test_{FULL_NAMES.get(test, test)}")
    for case, text in {**{f"sound {runtime}": text for runtime, text in SOUND.items()}, **SOUND_TOO}.items():
        name = module(case, "h")
        runtime = "diffusion" if case.endswith("diffusion") else "srt"
        group = SRT_PLUGINS if runtime == "srt" else DIFFUSION_PLUGINS
        site.add(f"{name}-dist", {group: {name: f"{name}:register"}}, {f"{name}.py": text})
        tests.append(TEST.format(name=name, runtime=runtime))
        wanted.append(f"test_all.py::Test_{name}")
    (folder / "test_all.py").write_text("".join(tests))
    return run(folder, site, wanted)


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_hook_fails_its_test(results: dict[str, tuple[str, str]], case: str) -> None:
    _, test, words = WRONG[case]
    outcome, message = results[f"{module(case, 'h')}::{FULL_NAMES.get(test, test)}"]
    assert outcome in {"failure", "error"}, message
    assert words in message


@pytest.mark.parametrize("runtime", SOUND)
def test_a_sound_plugin_passes_all(results: dict[str, tuple[str, str]], runtime: str) -> None:
    mine = {name: result for name, result in results.items() if name.startswith(f"h_sound_{runtime}::")}
    assert not {name: result for name, result in mine.items() if result[0] != "passed"}
    assert len(mine) == 13


@pytest.mark.parametrize("case", SOUND_TOO)
def test_what_is_unusual_and_right_fails_nothing(results: dict[str, tuple[str, str]], case: str) -> None:
    """A target that only SGLang has is skipped in the one test that needs it, and the reason says so."""
    mine = {name: result for name, result in results.items() if name.startswith(f"{module(case, 'h')}::")}
    assert len(mine) == 13
    unusual = {name: result for name, result in mine.items() if result[0] != "passed"}
    assert {result[0] for result in unusual.values()} <= {"skipped"}, unusual
    assert ["the stand-in has not" in result[1] for result in unusual.values()] == [True] * (case == "beyond the stand-in")
