"""The built-in CPU platform."""

from __future__ import annotations

import gc
import logging
import os
import platform
from typing import TYPE_CHECKING, Any

from .interface import AttentionBackendEnum, CpuArchEnum, Platform, PlatformEnum
from .torch_device import CPU_COMMUNICATOR, GIB, SDPA_BACKEND, smallest_of_group

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

_ARCHITECTURES = {
    **dict.fromkeys(("x86_64", "amd64", "i386", "i686"), CpuArchEnum.X86),
    **dict.fromkeys(("arm64", "aarch64"), CpuArchEnum.ARM),
}


def host_memory(kind: str) -> int:
    """Return the host's memory in bytes: `PHYS_PAGES` for all of it, `AVPHYS_PAGES` for what is free."""
    return os.sysconf(f"SC_{kind}") * os.sysconf("SC_PAGE_SIZE")


class CpuPlatform(Platform):
    """The host processor."""

    _enum = PlatformEnum.CPU
    device_name = "CPU"
    device_type = "cpu"
    dispatch_key = "CPU"

    @classmethod
    def get_local_torch_device(cls) -> torch.device:
        import torch

        return torch.device("cpu")

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Do nothing: there is one CPU."""

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return platform.processor() or platform.machine()

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        return platform.machine()

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return host_memory("PHYS_PAGES")

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        return 0.0

    @classmethod
    def get_available_gpu_memory(
        cls, device_id: int | None = None, distributed: bool = False, empty_cache: bool = True, cpu_group: Any = None
    ) -> float:
        free = host_memory("AVPHYS_PAGES")
        return (smallest_of_group(free, "cpu", cpu_group) if distributed else free) / GIB

    @classmethod
    def synchronize(cls) -> None:
        """Do nothing: work on the CPU is done when the call returns."""

    @classmethod
    def empty_cache(cls) -> None:
        gc.collect()

    def tensor_on_device(self, t: torch.Tensor) -> bool:
        return bool(t.device.type == "cpu")

    @classmethod
    def get_attn_backend_cls_str(cls, selected_backend: AttentionBackendEnum | None, head_size: int, dtype: torch.dtype) -> str:
        if selected_backend not in (None, AttentionBackendEnum.TORCH_SDPA):
            logger.warning("%s is not available on the CPU; using torch_sdpa.", selected_backend)
        return SDPA_BACKEND

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return CPU_COMMUNICATOR

    @classmethod
    def get_cpu_architecture(cls) -> CpuArchEnum:
        return _ARCHITECTURES.get(platform.machine().lower(), CpuArchEnum.UNSPECIFIED)

    @classmethod
    def enable_dit_layerwise_offload_by_default(cls) -> bool:
        return False
