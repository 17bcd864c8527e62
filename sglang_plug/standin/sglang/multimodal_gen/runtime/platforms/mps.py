"""The built-in Apple MPS platform: one device that shares the host's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .cpu import host_memory
from .interface import DeviceCapability, PlatformEnum
from .torch_device import CPU_COMMUNICATOR, GIB, TorchDevicePlatform, smallest_of_group

if TYPE_CHECKING:
    import torch


class MpsPlatform(TorchDevicePlatform):
    """Apple silicon, through `torch.mps`."""

    _enum = PlatformEnum.MPS
    device_name = "mps"
    device_type = "mps"
    dispatch_key = "MPS"
    device_control_env_var = "MPS_VISIBLE_DEVICES"

    @classmethod
    def get_local_torch_device(cls) -> torch.device:
        import torch

        return torch.device("mps")

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Do nothing: there is one device."""

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return "Apple Silicon MPS"

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        return "mps"

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        return None

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return host_memory("PHYS_PAGES")

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        return float(cls._module().current_allocated_memory())

    @classmethod
    def get_available_gpu_memory(
        cls, device_id: int | None = None, distributed: bool = False, empty_cache: bool = True, cpu_group: Any = None
    ) -> float:
        if empty_cache:
            cls.empty_cache()
        # Darwin has no count of free pages; what Metal recommends less what it holds is the honest figure.
        free = cls._module().recommended_max_memory() - cls._module().driver_allocated_memory()
        return (smallest_of_group(free, "cpu", cpu_group) if distributed else free) / GIB

    @classmethod
    def is_amp_supported(cls) -> bool:
        return False

    @classmethod
    def is_float64_supported(cls) -> bool:
        return False

    @classmethod
    def get_all_to_all_communicator_cls(cls) -> str:
        return CPU_COMMUNICATOR
