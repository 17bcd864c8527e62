"""Which hardware is there, on machines made up of fake vendor libraries."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sglang_plug.core import detect, environ
from sglang_plug.core.policy import DIFFUSION, SRT, Policy, policy

NO_CUDA: dict[str, Any] = {"is_available": lambda: False, "device_count": lambda: 0}


def torch(**parts: Any) -> SimpleNamespace:
    """Return a torch that sees nothing, but for these parts."""
    nothing = SimpleNamespace(is_available=lambda: False, device_count=lambda: 0)
    base = {
        "cuda": nothing,
        "xpu": nothing,
        "mps": nothing,
        "version": SimpleNamespace(hip=None, cuda=None),
        "backends": SimpleNamespace(mps=nothing),
    }
    return SimpleNamespace(**{**base, **parts})


def cuda(name: str = "H200") -> SimpleNamespace:
    return SimpleNamespace(is_available=lambda: True, device_count=lambda: 1, get_device_name=lambda: name)


THERE = SimpleNamespace(is_available=lambda: True, device_count=lambda: 2)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a machine of modules, NVML's answer and marker files; nothing else is there."""

    def make(nvml: int | None = None, jetson: bool = False, **modules: Any) -> None:
        for name in ("torch", "amdsmi", "pymtml", "torchada"):
            monkeypatch.setitem(sys.modules, name, modules.get(name))

        def count() -> int:
            if nvml is None:
                raise OSError("libnvidia-ml.so.1: cannot open shared object file")
            return nvml

        monkeypatch.setattr(detect, "nvml_count", count)
        monkeypatch.setattr(detect.os.path, "isfile", lambda path: jetson)

    return make


def present(rules: Policy, **env: str) -> list[str]:
    probe = detect.detector(rules, environ.read(env))
    return [entry.name for entry in rules.builtins if probe(entry.name).present]


NEWEST = policy("srt", "0.5.23")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, []),
        ({"cuda": cuda()}, ["cuda"]),
        ({"cuda": cuda("ZW810")}, ["sail", "cuda"]),
        ({"cuda": cuda(), "version": SimpleNamespace(hip="6.2")}, ["rocm"]),
        ({"xpu": THERE}, ["xpu"]),
        ({"npu": THERE}, ["npu"]),
        ({"mps": THERE}, ["mps"]),
        ({"version": SimpleNamespace(hip=None, musa="4.0")}, []),
    ],
)
def test_srt(parts: dict[str, Any], expected: list[str], machine: Any):
    machine(torch=torch(**parts))
    assert present(NEWEST) == expected


def test_srt_musa_needs_torchada(machine: Any):
    machine(torch=torch(version=SimpleNamespace(hip=None, musa="4.0")), torchada=SimpleNamespace())
    assert present(NEWEST) == ["musa"]


def test_the_cpu_engine_is_a_variable_and_costs_no_torch(machine: Any):
    machine()
    probe = detect.detector(SRT, environ.read({"SGLANG_USE_CPU_ENGINE": "1"}))
    assert probe("cpu").present
    assert "SGLANG_USE_CPU_ENGINE" in probe("cpu").why


def devices(count: int, prefix: str) -> SimpleNamespace:
    """Return a vendor's library that sees so many devices."""
    if prefix == "amdsmi":
        return SimpleNamespace(
            amdsmi_init=lambda: None, amdsmi_shut_down=lambda: None, amdsmi_get_processor_handles=lambda: list(range(count))
        )
    return SimpleNamespace(mtmlLibraryInit=lambda: None, mtmlLibraryShutDown=lambda: None, mtmlLibraryCountDevice=lambda: count)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ({"torch": torch()}, ["cpu"]),
        ({}, ["cpu"]),  # no torch at all: every detector that needs it says no
        ({"torch": torch(), "nvml": 2}, ["cuda", "cpu"]),
        ({"torch": torch(cuda=cuda()), "nvml": 0}, ["cpu"]),  # a CPU build on a machine with a driver
        ({"torch": torch(cuda=cuda())}, ["cuda", "cpu"]),  # no NVML, but torch sees a device
        ({"torch": torch(cuda=cuda(), version=SimpleNamespace(hip="6.2"))}, ["cpu"]),
        ({"torch": torch(), "jetson": True}, ["cuda", "cpu"]),
        ({"torch": torch(backends=SimpleNamespace(mps=THERE))}, ["mps", "cpu"]),
        ({"torch": torch(xpu=THERE)}, ["xpu", "cpu"]),
        ({"torch": torch(xpu=SimpleNamespace(is_available=lambda: True, device_count=lambda: 0))}, ["cpu"]),
        ({"torch": torch(npu=THERE)}, ["npu", "cpu"]),
        ({"torch": torch(), "amdsmi": devices(1, "amdsmi")}, ["rocm", "cpu"]),
        ({"torch": torch(), "amdsmi": devices(0, "amdsmi")}, ["cpu"]),
        ({"torch": torch(), "pymtml": devices(8, "mtml")}, ["musa", "cpu"]),
    ],
)
def test_diffusion(made: dict[str, Any], expected: list[str], machine: Any):
    machine(**made)
    assert present(DIFFUSION) == expected


def test_before_0_5_17_diffusion_does_not_ask_torch_for_cuda(machine: Any):
    machine(torch=torch(cuda=cuda()))
    assert present(policy("diffusion", "0.5.16")) == ["cpu"]


def test_the_reason_names_what_failed(machine: Any):
    machine(torch=torch())
    assert "libnvidia-ml.so.1" in detect.detector(DIFFUSION, environ.read({}))("cuda").why
    assert detect.detector(DIFFUSION, environ.read({}))("npu").why.startswith("AttributeError")


def test_every_built_in_has_a_probe():
    names = {entry.detector for rules in (NEWEST, DIFFUSION, policy("diffusion", "0.5.11")) for entry in rules.builtins}
    assert names - {"cpu-engine"} <= set(detect.PROBES)


class Nvml:
    """NVIDIA's library as ctypes gives it: functions that answer a status."""

    def __init__(self, devices: int, init: int = 0, count: int = 0) -> None:
        self.devices, self.init, self.count, self.closed = devices, init, count, 0

    def nvmlInit_v2(self) -> int:
        return self.init

    def nvmlDeviceGetCount_v2(self, reference: Any) -> int:
        reference._obj.value = self.devices
        return self.count

    def nvmlShutdown(self) -> int:
        self.closed += 1
        return 0


@pytest.mark.parametrize(
    ("library", "answer", "closed"),
    [(Nvml(3), 3, 1), (Nvml(0), 0, 1), (Nvml(3, init=9), "nvmlInit answered 9", 0), (Nvml(3, count=5), "nvmlDeviceGetCount answered 5", 1)],
)
def test_nvml_is_asked_and_closed(library: Nvml, answer: Any, closed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: library if name == "libnvidia-ml.so.1" else None)
    if isinstance(answer, int):
        assert detect.nvml_count() == answer
    else:
        with pytest.raises(OSError, match=answer):
            detect.nvml_count()
    assert library.closed == closed
