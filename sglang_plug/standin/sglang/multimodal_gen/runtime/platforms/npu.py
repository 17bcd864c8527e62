"""The built-in Ascend NPU platform; importing `torch_npu` gives torch the device."""

from __future__ import annotations

from typing import Any

from .interface import DeviceCapability, PlatformEnum
from .torch_device import CPU_COMMUNICATOR, TorchDevicePlatform


class NPUPlatformBase(TorchDevicePlatform):
    """Huawei devices, through `torch.npu`."""

    _enum = PlatformEnum.NPU
    device_name = "npu"
    device_type = "npu"
    dispatch_key = "PrivateUse1"
    device_control_env_var = "ASCEND_RT_VISIBLE_DEVICES"

    @classmethod
    def _module(cls) -> Any:
        import torch_npu  # type: ignore[import-not-found]  # noqa: F401 - registers torch.npu

        return super()._module()

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        return None

    @classmethod
    def get_all_to_all_communicator_cls(cls) -> str:
        return CPU_COMMUNICATOR

    @classmethod
    def enable_dit_layerwise_offload_by_default(cls) -> bool:
        return False
