"""The built-in SAIL platform: torch offers it under the names of CUDA."""

from __future__ import annotations

from .cuda import CudaDeviceMixin
from .device_mixin import PlatformEnum
from .interface import PlatformCapabilities, SRTPlatform


class SailDeviceMixin(CudaDeviceMixin):
    """Device operations, by way of `torch.cuda`."""

    _enum = PlatformEnum.SAIL
    device_name = "sail"


class SailSRTPlatform(SailDeviceMixin, SRTPlatform):
    """T-Head accelerators as an SRT platform."""

    capabilities = PlatformCapabilities(supports_triton=True, graph_capture=True, piecewise_graph=True, supports_pynccl=True)

    def get_default_attention_backend(self) -> str:
        return "torch_native"
