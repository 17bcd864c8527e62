{% if cookiecutter.diffusion %}
"""The diffusion platform: image and video generation on this device. SGLang constructs it without arguments."""

from __future__ import annotations

from typing import Any

import torch
from sglang.multimodal_gen.runtime.platforms import Platform, PlatformEnum
from sglang.multimodal_gen.runtime.platforms.interface import DeviceCapability

from {{ cookiecutter.package }} import hardware

{% if cookiecutter.device_type != "cpu" %}
hardware.load()

{% endif %}

class {{ cookiecutter.prefix }}DiffusionPlatform(Platform):
    """{{ cookiecutter.prefix }} for diffusion.

    Most methods are class methods, as in SGLang: the core calls them on the class as well.
    """

    _enum = PlatformEnum.OOT  # diffusion refuses an external class with any other
    device_name = "{{ cookiecutter.package }}"
    device_type = hardware.DEVICE_TYPE
    dispatch_key = "{{ {"cpu": "CPU", "cuda": "CUDA", "xpu": "XPU", "mps": "MPS"}.get(cookiecutter.device_type, "PrivateUse1") }}"  # PyTorch's key, for torch.library; read at import, so never empty
{% if cookiecutter.device_type == "cpu" %}

    def is_cpu(self) -> bool:
        """Take the core's CPU branches: the others ask `torch.cpu` for memory statistics that it does not keep."""
        return True  # VENDOR: delete this method
{% endif %}

    # --- before ServerArgs are built ---

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        """Return what people call it. {{ cookiecutter.diffusion_status.get_device_name }}"""
        return hardware.name(device_id)

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        """Return the memory in bytes. {{ cookiecutter.diffusion_status.get_device_total_memory }}"""
        return hardware.total_memory(device_id)

    @classmethod
    def get_available_gpu_memory(
        cls,
        device_id: int | None = None,
        distributed: bool = False,
        empty_cache: bool = True,
        cpu_group: Any = None,
    ) -> float:
        """Return the free memory in GiB, unlike its neighbours. {{ cookiecutter.diffusion_status.get_available_gpu_memory }}"""
        if empty_cache:
            hardware.empty_cache()
        free = hardware.free_memory(device_id or 0) / (1 << 30)
        if distributed:  # every rank plans with the least that any of them has
            least = torch.tensor(free, dtype=torch.float32)
            torch.distributed.all_reduce(least, op=torch.distributed.ReduceOp.MIN, group=cpu_group)
            free = float(least.item())
        return free

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        """Return a unique name. {{ cookiecutter.diffusion_status.get_device_uuid }}"""
        return hardware.uuid(device_id)

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        """Return (major, minor), or None. {{ cookiecutter.diffusion_status.get_device_capability }}"""
        capability = hardware.capability(device_id)
        return None if capability is None else DeviceCapability(*capability)

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Set defaults for this device. {{ cookiecutter.diffusion_status.apply_server_args_defaults }}"""
        # VENDOR: server_args.… = …

    @classmethod
    def enable_dit_layerwise_offload_by_default(cls) -> bool:
        """Tell whether layers wait in host memory. {{ cookiecutter.diffusion_status.enable_dit_layerwise_offload_by_default }}"""
        return {{ "False  # VENDOR: True where the model may not fit" if cookiecutter.device_type == "cpu" else "True  # VENDOR" }}

    # --- before a worker is bound to its device ---

    def get_device(self, local_rank: int) -> torch.device:
        """Return the rank's device; a torch.device here, a string in SRT. {{ cookiecutter.diffusion_status.get_device }}"""
{% if cookiecutter.device_type == "cpu" %}
        return torch.device("cpu")  # VENDOR: torch.device(self.device_type, local_rank)
{% else %}
        return torch.device(self.device_type, local_rank)
{% endif %}

    @classmethod
    def get_local_torch_device(cls) -> torch.device:
        """Return this process's device. {{ cookiecutter.diffusion_status.get_local_torch_device }}"""
{% if cookiecutter.device_type == "cpu" %}
        return torch.device("cpu")  # VENDOR: torch.device(cls.device_type, int(os.environ["LOCAL_RANK"]))
{% else %}
        return torch.device(cls.device_type, torch.get_device_module(cls.device_type).current_device())  # VENDOR
{% endif %}

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        """Make `device` current. {{ cookiecutter.diffusion_status.set_device }}"""
        hardware.use(torch.device(device).index or 0)

    @classmethod
    def synchronize(cls) -> None:
        """Wait for the device. {{ cookiecutter.diffusion_status.synchronize }}"""
        hardware.synchronize()

    @classmethod
    def empty_cache(cls) -> None:
        """Give unused memory back. {{ cookiecutter.diffusion_status.empty_cache }}"""
        hardware.empty_cache()

    # --- several workers ---

    def get_torch_distributed_backend_str(self) -> str:
        """Return the collective backend. {{ cookiecutter.diffusion_status.get_torch_distributed_backend_str }}"""
        return "{{ "nccl" if cookiecutter.device_type == "cuda" else "xccl" if cookiecutter.device_type == "xpu" else "gloo" }}"  # VENDOR: the name your library registers with torch.distributed

    def supports_distributed_device_id(self) -> bool:
        """Tell whether init_process_group takes a device. {{ cookiecutter.diffusion_status.supports_distributed_device_id }}"""
        return False  # VENDOR

    @classmethod
    def get_all_to_all_communicator_cls(cls) -> str:
        """Return the class that serves all_to_all_4D(). {{ cookiecutter.diffusion_status.get_all_to_all_communicator_cls }}"""
        # VENDOR: your communicator's qualified name
        return "sglang.multimodal_gen.runtime.distributed.device_communicators.cpu_communicator.CpuCommunicator"

    # --- the model ---

    def get_dispatch_key_name(self) -> str:
        """Return the key of custom ops: registered forwards and `forward_<key>()`. {{ cookiecutter.diffusion_status.get_dispatch_key_name }}"""
        return "{{ cookiecutter.package }}"

    @classmethod
    def get_attn_backend_cls_str(cls, selected_backend: Any, head_size: int, dtype: torch.dtype) -> str:
        """Return the attention backend's class. {{ cookiecutter.diffusion_status.get_attn_backend_cls_str }}"""
        # VENDOR: your backend's qualified name
        return "sglang.multimodal_gen.runtime.layers.attention.backends.sdpa.SDPABackend"

    def get_compile_backend(self, mode: str | None = None) -> str:
        """Return the torch.compile backend. {{ cookiecutter.diffusion_status.get_compile_backend }}"""
        return "eager"  # VENDOR: "inductor" where it generates code for the device

    def init_backend(self) -> None:
        """Set the backend up, at most once in a worker; a failure stops the server. {{ cookiecutter.diffusion_status.init_backend }}

        Imports stay inside: the platform's class must load before the layers do.
        """
        from sglang.multimodal_gen.runtime.layers.custom_op import CustomOp
        from sglang.multimodal_gen.runtime.layers.layernorm import RMSNorm

        from {{ cookiecutter.package }}.ops import rms_norm_forward

        CustomOp.register_oot_forward(RMSNorm, fn=rms_norm_forward, platform_key=self.get_dispatch_key_name())
{% endif %}
