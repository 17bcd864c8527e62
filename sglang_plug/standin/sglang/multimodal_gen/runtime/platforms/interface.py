"""The diffusion `Platform`: the contract of S8 with its defaults, and its types. No torch at module scope.

Source: rules S4.5 and S8, the diffusion contract table, `sglang/multimodal_gen/runtime/platforms/interface.py`.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

from .identity import AttentionBackendEnum, CpuArchEnum, DeviceCapability, Identity, PlatformEnum

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

__all__ = ["AttentionBackendEnum", "CpuArchEnum", "DeviceCapability", "Platform", "PlatformEnum"]


class Platform(Identity):
    """What a diffusion worker asks of its device. Every method is called on an instance made without arguments."""

    device_name: str
    device: Any = None
    #: The dispatch key for direct `torch.library` registrations; an out-of-tree platform must set it.
    dispatch_key: str = ""
    simple_compile_backend: str = "inductor"
    #: The environment variable that restricts the visible devices, where there is one.
    device_control_env_var: ClassVar[str] = ""

    # -- life cycle -----------------------------------------------------------------------------------------------

    def init_backend(self) -> None:
        """Bring the backend up, once in each worker process. Raising aborts the start; it is never retried there."""

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Write platform defaults into arguments that the user left alone, before they are checked."""

    # -- device and memory ----------------------------------------------------------------------------------------

    def get_device(self, local_rank: int) -> torch.device:
        """Return the device of a rank.

        Raises:
            NotImplementedError: an out-of-tree platform does not define it.
        """
        import torch

        if self.is_out_of_tree():
            raise NotImplementedError("Out-of-tree diffusion platforms must implement get_device()")
        kind = _TORCH_DEVICE_OF.get(self._enum, "cpu")
        return torch.device(kind) if kind in ("cpu", "mps") else torch.device(kind, local_rank)

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Make `device` the current one."""
        import torch

        torch.get_device_module(device).set_device(device)

    @classmethod
    def get_local_torch_device(cls) -> torch.device:
        """Return this process's device."""
        raise NotImplementedError

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """Return the device's name for people."""
        raise NotImplementedError

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        """Return a name that no other device bears."""
        raise NotImplementedError

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Return the device's memory in bytes."""
        raise NotImplementedError

    @classmethod
    def get_available_gpu_memory(
        cls, device_id: int | None = None, distributed: bool = False, empty_cache: bool = True, cpu_group: Any = None
    ) -> float:
        """Return the free memory in GiB; with `distributed`, the smallest of the group."""
        raise NotImplementedError

    @classmethod
    def get_current_memory_usage(cls, device: Any = None) -> float:
        """Return the memory in use, in bytes."""
        raise NotImplementedError

    @classmethod
    def device_shares_host_memory(cls) -> bool:
        """Return whether device and host draw from one pool of memory."""
        return False

    @classmethod
    def synchronize(cls) -> None:
        """Wait for the device's pending work."""
        import torch

        torch.get_device_module().synchronize()

    @classmethod
    def empty_cache(cls) -> None:
        """Give cached device memory back."""
        import torch

        torch.get_device_module().empty_cache()

    def tensor_on_device(self, t: torch.Tensor) -> bool:
        """Return whether a tensor lies on this platform's device."""
        return bool(t.is_cuda)

    # -- distributed ----------------------------------------------------------------------------------------------

    def get_torch_distributed_backend_str(self) -> str:
        """Return the name of the `torch.distributed` backend.

        Raises:
            NotImplementedError: the platform is out of tree, or of no known kind, and does not define it.
        """
        backend = _DISTRIBUTED_BACKEND_OF.get(self._enum)
        if backend is None:
            raise NotImplementedError(f"{type(self).__name__} must implement get_torch_distributed_backend_str()")
        return backend

    def supports_distributed_device_id(self) -> bool:
        """Return whether `init_process_group` may be given this platform's device."""
        return self._enum not in _WITHOUT_DEVICE_ID

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        """Return the communicator's dotted name. Kept for older subclasses: override the next method instead."""
        return _BASE_COMMUNICATOR

    @classmethod
    def get_all_to_all_communicator_cls(cls) -> str:
        """Return the dotted name of the class whose `all_to_all_4D` sequence parallelism uses.

        Raises:
            NotImplementedError: an out-of-tree platform overrides neither this nor `get_device_communicator_cls`.
        """
        qualname = cls.get_device_communicator_cls()
        if cls._enum is PlatformEnum.OOT and qualname == _BASE_COMMUNICATOR:
            raise NotImplementedError("Out-of-tree diffusion platforms must implement get_all_to_all_communicator_cls()")
        return qualname

    @classmethod
    def get_cpu_architecture(cls) -> CpuArchEnum:
        """Return the host processor's architecture."""
        return CpuArchEnum.UNSPECIFIED

    # -- dispatch and models --------------------------------------------------------------------------------------

    def get_dispatch_key_name(self) -> str:
        """Return the key by which `CustomOp` chooses a forward. Not `dispatch_key`, which is PyTorch's."""
        return "native"

    def get_torch_library_dispatch_key(self) -> str:
        """Return the PyTorch dispatch key for `torch.library` registrations.

        Raises:
            NotImplementedError: an out-of-tree platform leaves `dispatch_key` empty.
        """
        if not self.is_out_of_tree():
            return "PrivateUse1" if self.is_npu() else "CUDA"
        if not self.dispatch_key:
            raise NotImplementedError("Out-of-tree diffusion platforms must define dispatch_key")
        return self.dispatch_key

    @classmethod
    def get_attn_backend_cls_str(cls, selected_backend: AttentionBackendEnum | None, head_size: int, dtype: torch.dtype) -> str:
        """Return the dotted name of the attention backend; an empty answer is refused by the selector."""
        return ""

    def get_attn_backend(self, *args: Any, **kwargs: Any) -> Any:
        """Return the class that `get_attn_backend_cls_str` names."""
        return resolve_name(self.get_attn_backend_cls_str(*args, **kwargs))

    @classmethod
    def verify_model_arch(cls, model_arch: str) -> None:
        """Raise where a model's class cannot run here. All can, unless the platform says otherwise."""

    @classmethod
    def optimize_vae(cls, vae: torch.nn.Module) -> torch.nn.Module:
        """Return the image decoder, changed for this platform."""
        return vae

    @classmethod
    def is_amp_supported(cls) -> bool:
        return True

    @classmethod
    def is_float64_supported(cls) -> bool:
        return True

    @classmethod
    def get_modelopt_fp4_quantize_op(cls) -> Callable[..., Any] | None:
        return None

    @classmethod
    def get_modelopt_fp4_gemm_op(cls) -> tuple[Callable[..., Any] | None, str | None]:
        return None, None

    @classmethod
    def get_modelopt_flashinfer_fp4_backend(cls) -> str:
        return "auto"

    # -- execution ------------------------------------------------------------------------------------------------

    def get_compile_backend(self, mode: str | None = None) -> str:
        """Return the backend that `torch.compile` is given."""
        return self.simple_compile_backend

    def get_compile_options(self, module: torch.nn.Module) -> dict[str, object] | None:
        """Return options for compiling `module`, or None."""
        return None

    @classmethod
    def inference_mode(cls) -> Any:
        """Return the context in which a request runs."""
        import torch

        return torch.inference_mode(mode=True)

    @classmethod
    def seed_everything(cls, seed: int | None = None) -> None:
        """Seed every random generator; None leaves them alone."""
        if seed is None:
            return
        import random

        import numpy as np
        import torch

        random.seed(seed)
        np.random.seed(seed)  # the legacy generator is the one that libraries read
        torch.manual_seed(seed)

    @classmethod
    def enable_dit_layerwise_offload_by_default(cls) -> bool:
        """Return whether the transformer's layers may be kept off the device until they are needed."""
        return True


_BASE_COMMUNICATOR = "sglang.multimodal_gen.runtime.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase"
_TORCH_DEVICE_OF = {
    PlatformEnum.CUDA: "cuda",
    PlatformEnum.ROCM: "cuda",
    PlatformEnum.NPU: "npu",
    PlatformEnum.XPU: "xpu",
    PlatformEnum.MUSA: "musa",
    PlatformEnum.MPS: "mps",
}
_DISTRIBUTED_BACKEND_OF = {
    PlatformEnum.CUDA: "nccl",
    PlatformEnum.ROCM: "nccl",
    PlatformEnum.MUSA: "nccl",
    PlatformEnum.NPU: "hccl",
    PlatformEnum.XPU: "xccl",
    PlatformEnum.MPS: "gloo",
    PlatformEnum.CPU: "gloo",
}
_WITHOUT_DEVICE_ID = {PlatformEnum.OOT, PlatformEnum.MPS, PlatformEnum.MUSA, PlatformEnum.NPU, PlatformEnum.CPU, PlatformEnum.XPU}
