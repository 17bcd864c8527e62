"""The built-in Moore Threads MUSA platform; importing `torch_musa` gives torch the device."""

from __future__ import annotations

from typing import Any

from .interface import PlatformEnum
from .torch_device import CUDA_COMMUNICATOR, TorchDevicePlatform


class MusaPlatformBase(TorchDevicePlatform):
    """Moore Threads devices, through `torch.musa`."""

    _enum = PlatformEnum.MUSA
    device_name = "musa"
    device_type = "musa"
    dispatch_key = "MUSA"
    device_control_env_var = "MUSA_VISIBLE_DEVICES"

    @classmethod
    def _module(cls) -> Any:
        import torch_musa  # type: ignore[import-not-found]  # noqa: F401 - registers torch.musa

        return super()._module()

    @classmethod
    def is_float64_supported(cls) -> bool:
        return False

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return CUDA_COMMUNICATOR


class MusaPlatform(MusaPlatformBase):
    """What the selection chain names."""
