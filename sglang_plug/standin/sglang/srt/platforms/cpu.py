"""The built-in CPU platform: the host's memory and torch's CPU device."""

from __future__ import annotations

import gc
import os
import platform as _platform
from typing import Any

from .device_mixin import CpuArchEnum, DeviceCapability, DeviceMixin, PlatformEnum
from .interface import PlatformCapabilities, SRTPlatform


def host_memory() -> tuple[int, int]:
    """Return the host's available and total memory in bytes."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        available = total // 2  # no /proc: a guess on the safe side
    return available, total


class CpuDeviceMixin(DeviceMixin):
    """Device operations of the host itself."""

    _enum = PlatformEnum.CPU
    device_name = "cpu"
    device_type = "cpu"

    def get_device_total_memory(self, device_id: int = 0) -> int:
        return host_memory()[1]

    def get_current_memory_usage(self, device: Any = None) -> float:
        """Return what the whole machine uses, so that total minus usage is what is really free."""
        available, total = host_memory()
        return float(total - available)

    def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
        return host_memory()

    def get_device(self, device_id: int = 0) -> Any:
        """Return the one CPU device: all ranks share it."""
        import torch

        return torch.device("cpu")

    def set_device(self, device: Any) -> None:
        import torch

        torch.cpu.set_device(device)

    def get_device_name(self, device_id: int = 0) -> str:
        names = {CpuArchEnum.ARM: "cpu (aarch64)", CpuArchEnum.X86: "cpu (x86_64)"}
        return names.get(self.cpu_arch, "cpu")

    def get_device_uuid(self, device_id: int = 0) -> str:
        return _platform.machine()

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        return None

    def empty_cache(self) -> None:
        gc.collect()

    def synchronize(self) -> None:
        import torch

        torch.cpu.synchronize()

    def get_torch_distributed_backend_str(self) -> str:
        return "gloo"

    def get_torch_profiler_activity_str(self) -> str:
        return "CPU"

    def get_torch_profiler_activity(self) -> Any:
        import torch

        return torch.profiler.ProfilerActivity.CPU


class CpuSRTPlatform(CpuDeviceMixin, SRTPlatform):
    """The CPU as an SRT platform."""

    capabilities = PlatformCapabilities(graph_capture=True)

    def get_default_attention_backend(self) -> str:
        return "torch_native"
