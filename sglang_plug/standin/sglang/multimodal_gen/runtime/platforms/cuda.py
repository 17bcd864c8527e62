"""The built-in CUDA platform."""

from __future__ import annotations

from .interface import PlatformEnum
from .torch_device import CUDA_COMMUNICATOR, TorchDevicePlatform


class CudaPlatformBase(TorchDevicePlatform):
    """NVIDIA devices, through `torch.cuda`."""

    _enum = PlatformEnum.CUDA
    device_name = "cuda"
    device_type = "cuda"
    dispatch_key = "CUDA"
    device_control_env_var = "CUDA_VISIBLE_DEVICES"

    @classmethod
    def is_full_nvlink(cls, device_ids: list[int]) -> bool:
        """Return whether every pair of devices can reach each other's memory directly."""
        module = cls._module()
        return all(module.can_device_access_peer(a, b) for a in device_ids for b in device_ids if a != b)

    @classmethod
    def device_shares_host_memory(cls) -> bool:
        return bool(getattr(cls._module().get_device_properties(0), "is_integrated", False))

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return CUDA_COMMUNICATOR


class CudaPlatform(CudaPlatformBase):
    """What the selection chain names."""


class NonNvmlCudaPlatform(CudaPlatformBase):
    """Upstream's name for a CUDA platform that asks torch, as this one always does."""
