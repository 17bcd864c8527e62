"""The built-in MPS platform: Apple GPUs through `torch.mps`."""

from __future__ import annotations

from typing import Any

import torch

from .device_mixin import DeviceCapability, DeviceMixin, PlatformEnum
from .interface import SRTPlatform


class MpsDeviceMixin(DeviceMixin):
    """Device operations of the one Apple GPU."""

    _enum = PlatformEnum.MPS
    device_name = "mps"
    device_type = "mps"

    def get_device_total_memory(self, device_id: int = 0) -> int:
        """Return the working set that Metal recommends, which is less than the host's memory. Raises: RuntimeError: it has none."""
        total = int(torch.mps.recommended_max_memory())
        if total <= 0:
            raise RuntimeError(f"torch tells a non-positive Metal working-set limit ({total}); the host's memory would be too much")
        return total

    def get_current_memory_usage(self, device: Any = None) -> float:
        return float(torch.mps.driver_allocated_memory())

    def get_torch_distributed_backend_str(self) -> str:
        return "gloo"

    def get_device(self, device_id: int = 0) -> Any:
        """Return the device. Raises: ValueError: there is only one."""
        if device_id not in (-1, 0):
            raise ValueError(f"MPS has one device, number 0; {device_id} was asked for")
        return torch.device("mps")

    def set_device(self, device: Any) -> None:
        """Check that `device` is the one there is. Raises: ValueError."""
        if str(device).split(":", 1)[0] != "mps":
            raise ValueError(f"the MPS platform cannot select device {device}")

    def get_device_name(self, device_id: int = 0) -> str:
        return str(torch.backends.mps.get_name())

    def get_device_uuid(self, device_id: int = 0) -> str:
        return "mps:0"

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        return None

    def empty_cache(self) -> None:
        torch.mps.empty_cache()

    def synchronize(self) -> None:
        torch.mps.synchronize()


class MpsSRTPlatform(MpsDeviceMixin, SRTPlatform):
    """The Apple GPU as an SRT platform."""

    def get_default_attention_backend(self) -> str:
        return "torch_native"
