"""Hooks read off a plugin's source: nothing of it runs, and what cannot be applied is known beforehand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.core.entrypoints import Candidate
from sglang_plug.core.selection import Choice
from sglang_plug.launch.foresight import Foreseen, foresee
from sglang_plug.launch.plan import make
from sglang_plug.launch.processes import expected, place_of
from sglang_plug.probe.environment import Environment

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "raise SystemExit('never imported')\nfrom sglang.srt.plugins.hook_registry import HookRegistry, HookType, plugin_hook\n"
GOOD = "sglang.srt.managers.scheduler.Scheduler.run_batch"


def choices(*, verdict: str = "load") -> list[Choice]:
    return [Choice(Candidate("mine", "mine.hooks:register", "sglang.srt.plugins", "mine-dist", "1"), verdict, "")]


def write(folder: Path, body: str) -> list[str]:
    (folder / "mine").mkdir()
    (folder / "mine" / "__init__.py").write_text("")
    (folder / "mine" / "hooks.py").write_text(HEAD + body)
    return ["/nowhere", str(folder)]


def register(target: str, kind: str = "AROUND") -> str:
    return f"def register():\n    HookRegistry.register({target!r}, lambda original, *a: original(*a), HookType.{kind})\n"


def test_targets_and_types(tmp_path):
    body = register(GOOD) + f"@plugin_hook({GOOD!r}, type=HookType.BEFORE)\ndef before(*args): pass\n"
    hooks, findings = foresee(choices(), write(tmp_path, body), "0.5.23", "srt")
    assert sorted(hooks, key=lambda hook: hook.type or "") == [Foreseen("mine", GOOD, "AROUND"), Foreseen("mine", GOOD, "BEFORE")]
    assert findings == []
    assert "mine" not in sys.modules


@pytest.mark.parametrize(("own", "level"), [("mine-dist", Level.ERROR), ("other", Level.WARNING), (None, Level.WARNING)])
def test_a_target_that_is_gone_is_fatal_for_the_platforms_own_hooks(tmp_path, own, level):
    path = write(tmp_path, register("sglang.srt.managers.scheduler.Scheduler.schedule"))
    _, findings = foresee(choices(), path, "0.5.23", "srt", own=own)
    assert [(finding.code, finding.level) for finding in findings] == [("SP501", level)]
    assert ("--allow SP501" in (findings[0].hint or "")) is (level is Level.ERROR)


def test_diffusion_aborts_where_srt_goes_on(tmp_path):
    imports = "def register():\n    from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType\n"
    body = register("sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.gone").replace("def register():\n", imports)
    path = write(tmp_path, body)
    for own, text in (("mine-dist", "diffusion aborts its start"), ("other", "goes on without the hook")):
        _, (finding,) = foresee(choices(), path, "0.5.23", "diffusion", own=own)
        assert (finding.code, text in finding.message, "--allow" in (finding.hint or "")) == ("SP501", True, False)


def test_a_hook_in_the_other_runtimes_registry_is_told(tmp_path):
    path = write(tmp_path, register("sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.init_device_and_model"))
    hooks, findings = foresee(choices(), path, "0.5.23", "diffusion", own="mine-dist")
    assert hooks == []
    assert [(finding.code, finding.level) for finding in findings] == [("SP517", Level.WARNING)]


def test_traps_are_foreseen(tmp_path):
    _, findings = foresee(
        choices(), write(tmp_path, register("sglang.srt.model_executor.model_runner.ModelRunner.forward")), "0.5.23", "srt"
    )
    assert "SP061" in {finding.code for finding in findings}


def test_a_hook_that_never_fires_does_not_forbid_the_start(tmp_path):
    _, findings = foresee(
        choices(), write(tmp_path, register("sglang.srt.server_args.ServerArgs.__post_init__", "BEFORE")), "0.5.23", "srt"
    )
    assert findings
    assert all(finding.level is Level.WARNING for finding in findings)


def test_what_will_not_be_loaded_is_not_read(tmp_path):
    assert foresee(choices(verdict="skipped"), write(tmp_path, register(GOOD)), "0.5.23", "srt") == ([], [])


def test_a_plugin_that_is_nowhere_says_nothing(tmp_path):
    assert foresee(choices(), [str(tmp_path)], "0.5.23", "srt") == ([], [])


def test_a_release_before_the_plugin_system(tmp_path):
    assert foresee(choices(), write(tmp_path, register(GOOD)), "0.4.0", "srt") == ([], [])


@pytest.mark.parametrize(
    ("target", "options", "place"),
    [
        (GOOD, (), "scheduler"),
        ("sglang.srt.managers.tp_worker:TpModelWorker.__init__", (), "scheduler"),
        ("sglang.srt.layers.activation.SiluAndMul.forward_native", (), "scheduler"),
        ("sglang.srt.managers.detokenizer_manager.DetokenizerManager.event_loop", (), "detokenizer"),
        ("sglang.srt.server_args.ServerArgs.add_cli_args", (), "main"),
        ("sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request", (), "main"),
        ("sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request", ("--tokenizer-worker-num", "2"), "tokenizer worker"),
        ("torch.nn.Linear.forward", (), None),
    ],
)
def test_where_a_target_runs(target, options, place):
    plan = make(Environment("python", {}, "/"), options, engine="sglang", release="0.5.23")
    assert place_of(target, expected(plan)) == place


def of(name: str, value: str, verdict: str = "load") -> Choice:
    return Choice(Candidate(name, value, "sglang.srt.plugins", "mine-dist", "1"), verdict, "")


@pytest.mark.parametrize("skipped", [False, True])
def test_each_plugin_of_a_package_has_its_own_hooks(tmp_path, skipped):
    """By the callback around them, by the entry points' modules, and everyone's where neither tells."""
    path = write(tmp_path, register(GOOD) + register(GOOD + "_gone").replace("register():", "second():", 1))
    third = "sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request"
    (tmp_path / "mine" / "third.py").write_text(HEAD + f"@plugin_hook({third!r}, type=HookType.BEFORE)\ndef before(*args): pass\n")
    shared = "sglang.srt.managers.scheduler.Scheduler.__init__"
    (tmp_path / "mine" / "shared.py").write_text(HEAD + register(shared))
    asked = [
        of("one", "mine.hooks:register"),
        of("two", "mine.hooks : second", "skip" if skipped else "load"),
        of("three", "mine.third:register"),
    ]
    hooks, findings = foresee(asked, path, "0.5.23", "srt", own="mine-dist")
    assert {(hook.plugin, hook.target) for hook in hooks} == {
        *([] if skipped else [("two", GOOD + "_gone"), ("two", shared)]),
        ("one", GOOD),
        ("three", third),
        ("one", shared),
        ("three", shared),
    }
    assert [finding.code for finding in findings if finding.level is Level.ERROR] == ([] if skipped else ["SP501"])


def test_the_source_of_an_editable_install_is_found(tmp_path):
    write(tmp_path, register(GOOD))
    site = tmp_path / "site"
    site.mkdir()
    (site / "__editable___broken_1_finder.py").write_text("MAPPING: dict[str, str] = {'mine': open('x')}")
    (site / "__editable___mine_1_finder.py").write_text(f"MAPPING: dict[str, str] = {{'mine': {str(tmp_path / 'mine')!r}}}\n")
    hooks, _ = foresee(choices(), [str(site)], "0.5.23", "srt")
    assert hooks == [Foreseen("mine", GOOD, "AROUND")]


def test_a_misspelt_target_is_answered_with_the_nearest(tmp_path):
    _, (finding,) = foresee(choices(), write(tmp_path, register(GOOD.replace("run_batch", "run_bach"))), "0.5.23", "srt")
    assert GOOD in (finding.hint or "")
