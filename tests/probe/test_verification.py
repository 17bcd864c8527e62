"""Our word beside the host's: agreement, a failure that only the host shows, and a difference, which is an error with both sides."""

from __future__ import annotations

from typing import Any

import pytest

from sglang_plug.core.resolution import Failure, Resolution
from sglang_plug.probe.verification import compare, summarise

PLUGIN = Resolution("srt", "plugin", "pa", "pa.plat.Plat", "pa-dist")
BUILTIN = Resolution("srt", "builtin", "cpu", "sglang.srt.platforms.cpu.CpuSRTPlatform")
ERROR = Resolution("srt", "error", error=Failure("RuntimeError", "not found"))


def host(**facts: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "engine": "sglang",
        "version": "0.5.23",
        "class": None,
        "enum": None,
        "error": None,
        "device_name": "acme",
        "resolved": {},
    }
    return base | facts


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (PLUGIN, host(**{"class": "pa.plat.Plat"})),
        (PLUGIN, host(**{"class": "pa.impl.Plat"})),  # re-exported
        (PLUGIN, host(**{"class": "pa.impl.Real"}, resolved={"pa.plat.Plat": "pa.impl.Real"})),  # an alias
        (BUILTIN, host(**{"class": "sglang.srt.platforms.cpu.CpuSRTPlatform"})),
        (ERROR, host(error={"type": "builtins.RuntimeError", "message": "not found", "cause": None})),
    ],
)
def test_agreement(ours: Resolution, theirs: dict[str, Any]) -> None:
    step, failure = compare(ours, theirs)
    assert (step.verdict, failure) == ("agrees", None)


def test_a_variant_of_the_builtin_is_the_builtin() -> None:
    ours = Resolution("diffusion", "builtin", "cuda", "sglang.multimodal_gen.runtime.platforms.cuda.CudaPlatform")
    theirs = host(**{"class": "sglang.multimodal_gen.runtime.platforms.cuda.NonNvmlCudaPlatform", "enum": "CUDA"})
    assert compare(ours, theirs, "CUDA")[1] is None
    assert compare(ours, theirs, "ROCM")[1] is not None
    assert compare(ours, theirs)[1] is not None


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        (PLUGIN, host(**{"class": "sglang.srt.platforms.interface.SRTPlatform"}), ("pa.plat.Plat", "SRTPlatform")),
        (PLUGIN, host(**{"class": "pa.second.Plat"}, resolved={"pa.second.Plat": "pa.second.Plat"}), ("pa.plat.Plat", "pa.second.Plat")),
        (BUILTIN, host(**{"class": "pa.plat.Plat"}), ("cpu", "pa.plat.Plat")),
        (ERROR, host(**{"class": "pa.plat.Plat"}), ("RuntimeError: not found", "pa.plat.Plat")),
        (BUILTIN, host(error={"type": "OSError", "message": "hw", "cause": None}), ("cpu", "OSError: hw")),
        (ERROR, host(error={"type": "OSError", "message": "hw", "cause": None}), ("RuntimeError: not found", "OSError: hw")),
    ],
)
def test_a_difference_shows_both_sides(ours: Resolution, theirs: dict[str, Any], both: tuple[str, str]) -> None:
    step, failure = compare(ours, theirs)
    assert step.verdict == "differs"
    assert failure is not None
    assert all(side in failure.message for side in both)
    assert "report" in (failure.hint or "")


def test_what_only_the_host_shows_is_the_hosts_error() -> None:
    step, failure = compare(PLUGIN, host(error={"type": "TypeError", "message": "must set _enum", "cause": "at pa/plat.py:3"}))
    assert step.verdict == "failed"
    assert failure == Failure("TypeError", "must set _enum", "at pa/plat.py:3", "try: sglang-plug doctor")


def test_a_host_without_an_answer_agrees_with_nothing() -> None:
    step, failure = compare(PLUGIN, host())
    assert (step.verdict, failure is not None) == ("failed", True)


def test_a_rehearsal_that_ended_early_is_the_hosts_error() -> None:
    facts: dict[str, Any] = {"imports": [], "platforms": {}, "verdict": {}, "plugins": {}, "together": {}}
    for ended, message in (
        ({"kind": "signal", "name": "SIGSEGV"}, "the host's dry run crashed the process (SIGSEGV)"),
        ({"kind": "exit", "code": 9, "stack": []}, "the host's dry run ended the process (exit status 9)"),
        ({"kind": "timeout"}, "the host's dry run ended (timeout)"),
    ):
        assert summarise({**facts, "ended": ended}, "srt", real=True)["error"]["message"] == message
