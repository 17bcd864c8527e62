"""The built-in MUSA platform: its torch extension maps the names of CUDA to it."""

from __future__ import annotations

from .cuda import CudaDeviceMixin
from .device_mixin import PlatformEnum
from .interface import PlatformCapabilities, SRTPlatform


class MusaDeviceMixin(CudaDeviceMixin):
    """Device operations, by way of `torch.cuda`."""

    _enum = PlatformEnum.MUSA
    device_name = "musa"
    device_type = "musa"

    def get_torch_distributed_backend_str(self) -> str:
        return "mccl"


class MusaSRTPlatform(MusaDeviceMixin, SRTPlatform):
    """Moore Threads GPUs as an SRT platform."""

    capabilities = PlatformCapabilities(supports_triton=True, graph_capture=True, supports_pynccl=True)

    def get_default_attention_backend(self) -> str:
        return "torch_native"
