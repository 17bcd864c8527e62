"""The generated trees, as texts that a diff shows. After a wanted change: UPDATE_SNAPSHOTS=1 pytest tests/scaffold/test_snapshots.py."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sglang_plug.scaffold import hook, platform
from sglang_plug.scaffold.answers import judge_name
from tests.scaffold.making import FORMS, answers

if TYPE_CHECKING:
    from collections.abc import Mapping

SNAPSHOTS = Path(__file__).parent / "snapshots"
HOOKS = {
    "around": ("sglang.srt.managers.scheduler.Scheduler.run_batch", "around"),
    "after-stream": ("sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request", "after"),
    "replace-class": ("sglang.srt.managers.scheduler.Scheduler", "replace"),
    "before-diffusion": ("sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.execute_forward", "before"),
}


def check(name: str, files: Mapping[str, str]) -> None:
    text = "".join(f"===== {path}\n{content}" for path, content in files.items())
    text = re.sub(r"called from \d+ places?", "called from N places", text)  # counted anew with every catalogue
    place = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    assert text == place.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMS)
def test_platform_package(form: str) -> None:
    check(f"platform-{form}", platform.files(answers(**FORMS[form])))


@pytest.mark.parametrize("form", HOOKS)
def test_hook_package(form: str) -> None:
    target, kind = HOOKS[form]
    check(f"hook-{form}", hook.package(hook.judge_target(target, kind, None, "0.5.23"), judge_name("my-hook")))
