"""Which built-in hardware is there. Owns the probes of both runtimes; torch is imported only inside them, and nothing is initialised.

Needs nothing of this package while it is imported: the tool's probe loads it by path in interpreters that do not have it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.core.environ import Settings
    from sglang_plug.core.policy import Policy


class Detection(NamedTuple):
    """Whether a built-in platform's hardware is there, and how that is known."""

    present: bool
    why: str


def detector(policy: Policy, settings: Settings) -> Callable[[str], Detection]:
    """Return the function that tells, by a built-in's name, whether this machine has its hardware."""

    def detect(name: str) -> Detection:
        probe = policy.builtin(name).detector
        if probe == "cpu-engine":
            return _answer(settings.cpu_engine, "SGLANG_USE_CPU_ENGINE is 1", "SGLANG_USE_CPU_ENGINE is not 1")
        return PROBES[probe]()

    return detect


def _answer(present: bool, yes: str, no: str) -> Detection:
    return Detection(present, yes if present else no)


def _torch() -> Any:
    import torch

    return torch


def _always() -> Detection:
    return Detection(True, "always there")


def _torch_cuda() -> Detection:
    torch = _torch()
    if not torch.cuda.is_available():
        return Detection(False, "torch.cuda is not available")
    return _answer(torch.version.hip is None, "torch.cuda is available", "torch is built for ROCm")


def _torch_rocm() -> Detection:
    torch = _torch()
    if not torch.cuda.is_available():
        return Detection(False, "torch.cuda is not available")
    return _answer(torch.version.hip is not None, "torch is built for ROCm and sees a device", "torch is not built for ROCm")


def _torch_sail() -> Detection:
    torch = _torch()
    if not torch.cuda.is_available():
        return Detection(False, "torch.cuda is not available")
    name = torch.cuda.get_device_name()
    return _answer("ZW" in name, f"the device is {name!r}", f"the device is {name!r}, not a SAIL one")


def _torch_npu() -> Detection:
    torch = _torch()
    if not hasattr(torch, "npu"):
        return Detection(False, "torch has no npu")
    return _answer(bool(torch.npu.is_available()), "torch.npu is available", "torch.npu is not available")


def _torch_xpu() -> Detection:
    return _answer(bool(_torch().xpu.is_available()), "torch.xpu is available", "torch.xpu is not available")


def _torch_musa() -> Detection:
    torch = _torch()
    if getattr(torch.version, "musa", None) is None:
        return Detection(False, "torch is not built for MUSA")
    try:
        import torchada  # type: ignore[import-not-found]  # noqa: F401 -- its presence is the question
    except ImportError as error:
        return Detection(False, f"torchada does not import: {error}")
    return Detection(True, "torch is built for MUSA and torchada imports")


def _torch_mps() -> Detection:
    torch = _torch()
    mps = getattr(torch, "mps", None)
    return _answer(mps is not None and bool(mps.is_available()), "torch.mps is available", "torch.mps is not available")


def _guarded(probe: Callable[[], Detection]) -> Callable[[], Detection]:
    """Return `probe` as diffusion runs it: whatever it raises means that the hardware is absent."""

    def guarded() -> Detection:
        try:
            return probe()
        except Exception as error:  # noqa: BLE001 -- a vendor library may raise anything; the reason is kept
            return Detection(False, f"{type(error).__name__}: {error}")

    return guarded


def _mps_backend() -> Detection:
    there = bool(_torch().backends.mps.is_available())
    return _answer(there, "torch.backends.mps is available", "torch.backends.mps is not available")


def _xpu_devices() -> Detection:
    torch = _torch()
    if not (hasattr(torch, "xpu") and torch.xpu.is_available()):
        return Detection(False, "torch.xpu is not available")
    count = torch.xpu.device_count()
    return _answer(count > 0, f"torch.xpu sees {count} device{'s' * (count > 1)}", "torch.xpu sees no device")


def _npu_loose() -> Detection:
    return _answer(bool(_torch().npu.is_available()), "torch.npu is available", "torch.npu is not available")


def _amdsmi() -> Detection:
    import amdsmi  # type: ignore[import-not-found]

    amdsmi.amdsmi_init()
    try:
        count = len(amdsmi.amdsmi_get_processor_handles())
    finally:
        amdsmi.amdsmi_shut_down()
    return _answer(count > 0, f"amdsmi sees {count} device{'s' * (count > 1)}", "amdsmi sees no device")


def _mtml() -> Detection:
    import pymtml  # type: ignore[import-not-found]

    pymtml.mtmlLibraryInit()
    try:
        count = pymtml.mtmlLibraryCountDevice()
    finally:
        pymtml.mtmlLibraryShutDown()
    return _answer(count > 0, f"pymtml sees {count} device{'s' * (count > 1)}", "pymtml sees no device")


def nvml_count() -> int:
    """Return how many devices NVIDIA's management library sees.

    Raises:
        OSError: the library is not there, or refuses to start.
    """
    import ctypes

    library = ctypes.CDLL("libnvidia-ml.so.1")
    status = library.nvmlInit_v2()
    if status:
        raise OSError(status, f"nvmlInit answered {status}")
    try:
        count = ctypes.c_uint()
        status = library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        if status:
            raise OSError(status, f"nvmlDeviceGetCount answered {status}")
        return count.value
    finally:
        library.nvmlShutdown()


def is_jetson() -> bool:
    """Tell by its marker files whether this is one of NVIDIA's boards, which have no NVML."""
    return os.path.isfile("/etc/nv_tegra_release") or os.path.exists("/sys/class/tegra-firmware")


def _nvml_only() -> Detection:
    """Until 0.5.16: NVML's count; without NVML, only Jetson's marker files."""
    try:
        count = nvml_count()
    except OSError as error:
        return _answer(is_jetson(), "this is a Jetson", f"NVML is not there: {error}")
    return _answer(count > 0, f"NVML sees {count} device{'s' * (count > 1)}", "NVML sees no device")


def _nvml() -> Detection:
    """Since 0.5.17: as before, then torch where NVML is not there; a count of zero still means absent."""
    found = _nvml_only()
    if found.present or found.why == "NVML sees no device":
        return found
    torch = _guarded(_torch_cuda)()
    return Detection(torch.present, torch.why if torch.present else f"{found.why}; {torch.why}")


PROBES: dict[str, Callable[[], Detection]] = {
    "always": _always,
    "torch-cuda": _torch_cuda,
    "torch-rocm": _torch_rocm,
    "torch-sail": _torch_sail,
    "torch-npu": _torch_npu,
    "torch-xpu": _torch_xpu,
    "torch-musa": _torch_musa,
    "torch-mps": _torch_mps,
    "torch-mps-backend": _guarded(_mps_backend),
    "torch-xpu-devices": _guarded(_xpu_devices),
    "torch-npu-loose": _guarded(_npu_loose),
    "amdsmi": _guarded(_amdsmi),
    "mtml": _guarded(_mtml),
    "nvml": _nvml,
    "nvml-only": _nvml_only,
}
