"""The built-in CUDA platform: device operations through `torch.cuda`."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from .device_mixin import DeviceCapability, DeviceMixin, PlatformEnum
from .interface import PlatformCapabilities, SRTPlatform

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)


class CudaDeviceMixin(DeviceMixin):
    """Device operations of every device that speaks `torch.cuda`."""

    _enum = PlatformEnum.CUDA
    device_name = "cuda"
    device_type = "cuda"

    def get_device_total_memory(self, device_id: int = 0) -> int:
        return int(torch.cuda.get_device_properties(device_id).total_memory)

    def get_current_memory_usage(self, device: Any = None) -> float:
        return float(torch.cuda.max_memory_allocated(device))

    def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
        free, total = torch.cuda.mem_get_info(device_id)
        return free, total

    def is_pin_memory_available(self, device: Any = None) -> bool:
        return str(device) != "cpu"

    @contextmanager
    def reindex_device_id(self, device_id: int) -> Iterator[int]:
        """Show only this device to CUDA, as number 0; numbers follow the bus only with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
        if os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
            logger.warning("CUDA_DEVICE_ORDER is not PCI_BUS_ID: device numbers may differ from the tools'")
        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        visible = before.split(",") if before else []
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[device_id] if visible else str(device_id)
        try:
            yield 0
        finally:
            if before is None:
                del os.environ["CUDA_VISIBLE_DEVICES"]
            else:
                os.environ["CUDA_VISIBLE_DEVICES"] = before

    def get_device(self, device_id: int = 0) -> Any:
        return torch.device(self.device_type, device_id)

    def set_device(self, device: Any) -> None:
        torch.cuda.set_device(device)

    def get_device_name(self, device_id: int = 0) -> str:
        return str(torch.cuda.get_device_name(device_id))

    def get_device_uuid(self, device_id: int = 0) -> str:
        return str(torch.cuda.get_device_properties(device_id).uuid)

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        major, minor = torch.cuda.get_device_capability(device_id)
        return DeviceCapability(major, minor)

    def empty_cache(self) -> None:
        torch.cuda.empty_cache()

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def get_torch_distributed_backend_str(self) -> str:
        return "nccl"

    def get_torch_profiler_activity_str(self) -> str:
        return "GPU"

    def get_torch_profiler_activity(self) -> Any:
        return torch.profiler.ProfilerActivity.CUDA

    @classmethod
    def seed_everything(cls, seed: int | None = None) -> None:
        if seed is None:
            return
        super().seed_everything(seed)
        torch.cuda.manual_seed_all(seed)


class CudaSRTPlatform(CudaDeviceMixin, SRTPlatform):
    """NVIDIA GPUs as an SRT platform."""

    capabilities = PlatformCapabilities(
        supports_triton=True, graph_capture=True, piecewise_graph=True, hicache_device_kernels=True, supports_pynccl=True
    )

    def supports_fp8(self) -> bool:
        return True

    def get_default_attention_backend(self) -> str:
        return "torch_native"
