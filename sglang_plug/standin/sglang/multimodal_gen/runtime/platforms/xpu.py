"""The built-in Intel XPU platform."""

from __future__ import annotations

from .interface import DeviceCapability, PlatformEnum
from .torch_device import CPU_COMMUNICATOR, TorchDevicePlatform


class XpuPlatform(TorchDevicePlatform):
    """Intel devices, through `torch.xpu`."""

    _enum = PlatformEnum.XPU
    device_name = "xpu"
    device_type = "xpu"
    dispatch_key = "XPU"
    device_control_env_var = "ZE_AFFINITY_MASK"

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        """Return None: `torch.xpu` reports a table of features, not a pair of numbers."""
        return None

    @classmethod
    def get_all_to_all_communicator_cls(cls) -> str:
        return CPU_COMMUNICATOR

    @classmethod
    def enable_dit_layerwise_offload_by_default(cls) -> bool:
        return False
