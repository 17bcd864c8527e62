"""The built-in ROCm platform: torch offers it under the names of CUDA."""

from __future__ import annotations

from .cuda import CudaDeviceMixin
from .device_mixin import PlatformEnum
from .interface import PlatformCapabilities, SRTPlatform


class RocmDeviceMixin(CudaDeviceMixin):
    """Device operations, by way of `torch.cuda`."""

    _enum = PlatformEnum.ROCM
    device_name = "rocm"


class RocmSRTPlatform(RocmDeviceMixin, SRTPlatform):
    """AMD GPUs as an SRT platform."""

    capabilities = PlatformCapabilities(
        supports_triton=True, graph_capture=True, piecewise_graph=True, hicache_device_kernels=True, supports_pynccl=True
    )

    def get_default_attention_backend(self) -> str:
        return "torch_native"
