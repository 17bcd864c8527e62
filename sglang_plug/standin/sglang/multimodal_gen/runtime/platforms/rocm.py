"""The built-in ROCm platform; torch addresses its devices as `cuda`."""

from __future__ import annotations

from .interface import PlatformEnum
from .torch_device import CUDA_COMMUNICATOR, TorchDevicePlatform


class RocmPlatform(TorchDevicePlatform):
    """AMD devices, through `torch.cuda`."""

    _enum = PlatformEnum.ROCM
    device_name = "rocm"
    device_type = "cuda"
    dispatch_key = "CUDA"
    device_control_env_var = "CUDA_VISIBLE_DEVICES"

    @classmethod
    def get_gcn_arch_name(cls, device_id: int = 0) -> str:
        """Return the architecture's name, for instance `gfx950`."""
        return str(cls._module().get_device_properties(device_id).gcnArchName)

    @classmethod
    def is_gfx1151(cls) -> bool:
        return cls._module().is_available() and cls.get_gcn_arch_name().startswith("gfx1151")

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return CUDA_COMMUNICATOR
