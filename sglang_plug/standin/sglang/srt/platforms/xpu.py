"""The built-in XPU platform: Intel GPUs through `torch.xpu`."""

from __future__ import annotations

from typing import Any

import torch

from .device_mixin import DeviceCapability, DeviceMixin, PlatformEnum
from .interface import PlatformCapabilities, SRTPlatform


class XpuDeviceMixin(DeviceMixin):
    """Device operations of Intel GPUs."""

    _enum = PlatformEnum.XPU
    device_name = "xpu"
    device_type = "xpu"

    def get_device_total_memory(self, device_id: int = 0) -> int:
        return int(torch.xpu.get_device_properties(device_id).total_memory)

    def get_current_memory_usage(self, device: Any = None) -> float:
        return float(torch.xpu.max_memory_allocated(device))

    def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
        total = self.get_device_total_memory(device_id)
        return total - int(torch.xpu.memory_allocated(device_id)), total

    def is_pin_memory_available(self, device: Any = None) -> bool:
        return str(device) != "cpu"

    def get_torch_distributed_backend_str(self) -> str:
        return "xccl"

    def get_device(self, device_id: int = 0) -> Any:
        return torch.device("xpu", device_id)

    def set_device(self, device: Any) -> None:
        torch.xpu.set_device(device)

    def get_device_name(self, device_id: int = 0) -> str:
        return str(torch.xpu.get_device_name(device_id))

    def get_device_uuid(self, device_id: int = 0) -> str:
        return str(torch.xpu.get_device_properties(device_id).uuid)

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        """Return the first two numbers of the driver's device version, e.g. 12.60 of "12.60.7"."""
        numbers = str(torch.xpu.get_device_properties(device_id).version).split(".")
        return DeviceCapability(int(numbers[0]), int(numbers[1])) if len(numbers) > 1 else None

    def empty_cache(self) -> None:
        torch.xpu.empty_cache()

    def synchronize(self) -> None:
        torch.xpu.synchronize()

    def get_torch_profiler_activity_str(self) -> str:
        return "XPU"

    def get_torch_profiler_activity(self) -> Any:
        return torch.profiler.ProfilerActivity.XPU

    @classmethod
    def seed_everything(cls, seed: int | None = None) -> None:
        if seed is None:
            return
        super().seed_everything(seed)
        torch.xpu.manual_seed_all(seed)


class XpuSRTPlatform(XpuDeviceMixin, SRTPlatform):
    """Intel GPUs as an SRT platform."""

    capabilities = PlatformCapabilities(supports_triton=True, graph_capture=True, piecewise_graph=True)

    def get_default_attention_backend(self) -> str:
        return "torch_native"
