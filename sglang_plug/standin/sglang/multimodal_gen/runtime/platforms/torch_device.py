"""What the built-in accelerator platforms share: every operation goes through `torch.get_device_module(device_type)`.

Not part of upstream's module tree; vendors derive from `interface.Platform`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import envs
from .interface import AttentionBackendEnum, DeviceCapability, Platform

if TYPE_CHECKING:
    import torch

SDPA_BACKEND = "sglang.multimodal_gen.runtime.layers.attention.backends.sdpa.SDPABackend"
CPU_COMMUNICATOR = "sglang.multimodal_gen.runtime.distributed.device_communicators.cpu_communicator.CpuCommunicator"
CUDA_COMMUNICATOR = "sglang.multimodal_gen.runtime.distributed.device_communicators.cuda_communicator.CudaCommunicator"
GIB = 1 << 30


def smallest_of_group(value: float, device: str, group: Any) -> float:
    """Return the smallest `value` among the ranks of a process group."""
    import torch

    tensor = torch.tensor(value, dtype=torch.float32, device=device)
    torch.distributed.all_reduce(tensor, op=torch.distributed.ReduceOp.MIN, group=group)
    return float(tensor.item())


class TorchDevicePlatform(Platform):
    """A platform whose device torch knows under `device_type`."""

    @classmethod
    def _module(cls) -> Any:
        import torch

        return torch.get_device_module(cls.device_type)

    @classmethod
    def get_local_torch_device(cls) -> torch.device:
        import torch

        return torch.device(cls.device_type, envs.LOCAL_RANK)

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return str(cls._module().get_device_name(device_id))

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        return str(cls._module().get_device_properties(device_id).uuid)

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        capability = cls._module().get_device_capability(device_id)
        return DeviceCapability(*capability) if isinstance(capability, tuple) else None

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return int(cls._module().get_device_properties(device_id).total_memory)

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        return float(cls._module().max_memory_allocated(device))

    @classmethod
    def get_available_gpu_memory(
        cls, device_id: int | None = None, distributed: bool = False, empty_cache: bool = True, cpu_group: Any = None
    ) -> float:
        module = cls._module()
        if empty_cache:
            module.empty_cache()
        free, _ = module.mem_get_info(module.current_device() if device_id is None else device_id)
        return (smallest_of_group(free, cls.device_type, cpu_group) if distributed else free) / GIB

    @classmethod
    def synchronize(cls) -> None:
        cls._module().synchronize()

    @classmethod
    def empty_cache(cls) -> None:
        cls._module().empty_cache()

    def tensor_on_device(self, t: torch.Tensor) -> bool:
        return bool(t.device.type == self.device_type)

    @classmethod
    def get_attn_backend_cls_str(cls, selected_backend: AttentionBackendEnum | None, head_size: int, dtype: torch.dtype) -> str:
        """Return the SDPA backend, the only one that the stand-in ships.

        Raises:
            ValueError: another backend was asked for by name.
        """
        if selected_backend not in (None, AttentionBackendEnum.TORCH_SDPA):
            raise ValueError(f"the stand-in engine has no attention backend {selected_backend} for {cls.device_name}; use torch_sdpa")
        return SDPA_BACKEND
