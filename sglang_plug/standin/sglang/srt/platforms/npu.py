"""The built-in NPU platform: Huawei Ascend through `torch.npu`, which the package `torch_npu` adds to torch."""

from __future__ import annotations

from typing import Any

import torch

from .device_mixin import DeviceCapability, DeviceMixin, PlatformEnum
from .interface import PlatformCapabilities, SRTPlatform


class NPUDeviceMixin(DeviceMixin):
    """Device operations of Ascend devices."""

    _enum = PlatformEnum.NPU
    device_name = "npu"
    device_type = "npu"

    def get_device_total_memory(self, device_id: int = 0) -> int:
        return int(torch.npu.get_device_properties(device_id).total_memory)

    def get_current_memory_usage(self, device: Any = None) -> float:
        return float(torch.npu.max_memory_allocated(device))

    def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
        free, total = torch.npu.mem_get_info(device_id)
        return free, total

    def is_pin_memory_available(self, device: Any = None) -> bool:
        return str(device) != "cpu"

    def get_torch_distributed_backend_str(self) -> str:
        return "hccl"

    def get_device(self, device_id: int = 0) -> Any:
        return torch.device("npu", device_id)

    def set_device(self, device: Any) -> None:
        torch.npu.set_device(device)

    def get_device_name(self, device_id: int = 0) -> str:
        return str(torch.npu.get_device_name(device_id))

    def get_device_uuid(self, device_id: int = 0) -> str:
        return str(torch.npu.get_device_properties(device_id).uuid)

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        return DeviceCapability(0, 0)

    def empty_cache(self) -> None:
        torch.npu.empty_cache()

    def synchronize(self) -> None:
        torch.npu.synchronize()

    @classmethod
    def seed_everything(cls, seed: int | None = None) -> None:
        if seed is None:
            return
        super().seed_everything(seed)
        torch.npu.manual_seed_all(seed)


class NPUSRTPlatform(NPUDeviceMixin, SRTPlatform):
    """Ascend devices as an SRT platform."""

    capabilities = PlatformCapabilities(supports_triton=True, graph_capture=True)

    def get_default_attention_backend(self) -> str:
        return "torch_native"

    def get_dispatch_key_name(self) -> str:
        return "npu"
