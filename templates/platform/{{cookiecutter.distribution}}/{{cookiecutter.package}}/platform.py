{% if cookiecutter.srt %}
"""The SRT platform: which parts SGLang builds the engine from on this device."""

from __future__ import annotations

from typing import Any

from sglang.srt.platforms.interface import SRTPlatform

from {{ cookiecutter.package }}.device import {{ cookiecutter.prefix }}Device


# The device comes first: a name that SRTPlatform defines as well would otherwise win over it.
class {{ cookiecutter.prefix }}Platform({{ cookiecutter.prefix }}Device, SRTPlatform):
    """{{ cookiecutter.prefix }} for LLM serving."""

{% if not cookiecutter.before_0_5_22 %}
    # VENDOR: what the device can do, from SGLang 0.5.22 on; the inherited default promises nothing:
    #     capabilities = PlatformCapabilities(supports_triton=…, graph_capture=…, piecewise_graph=…)
    # support_cuda_graph() and its siblings are gone, and an override of them is ignored without a word.

{% endif %}
    # --- configuration ---

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Set defaults for this device. {{ cookiecutter.status.apply_server_args_defaults }}

        Only names of existing fields take effect: others are dropped without a message.
        """
        # VENDOR: server_args.page_size = …

    def get_default_attention_backend(self) -> str:
        """Return the attention backend where the user chose none. {{ cookiecutter.status.get_default_attention_backend }}"""
        return "torch_native"  # VENDOR: the backend your kernels provide

    def get_compile_backend(self, mode: str | None = None) -> str:
        """Return the torch.compile backend. {{ cookiecutter.status.get_compile_backend }}"""
        return "eager"  # VENDOR: "inductor" where it generates code for the device

    def get_dispatch_key_name(self) -> str:
        """Return the key that picks fused ops' `forward_<key>()`. {{ cookiecutter.status.get_dispatch_key_name }}"""
        return "native"  # VENDOR: your key, once forwards are registered for it

    # --- the worker ---

    def init_backend(self) -> None:
        """Set the backend up, once, where the model runner is imported. {{ cookiecutter.status.init_backend }}

        Whatever the device cannot do without belongs here: a failure stops the server, instead of serving wrongly.
        """
        # VENDOR: register kernels, start the runtime

{% if "post_load_model" in cookiecutter.status %}
    def post_load_model(self, model: Any) -> None:
        """Change the loaded model in place. {{ cookiecutter.status.post_load_model }}"""
        # VENDOR: move or repack weights

{% endif %}
{% if "get_group_coordinator_device" in cookiecutter.status %}
    def get_group_coordinator_device(self, local_rank: int) -> Any:
        """Return the torch.device of a process group. {{ cookiecutter.status.get_group_coordinator_device }}"""
        import torch

{% if cookiecutter.device_type == "cpu" %}
        return torch.device("cpu")  # VENDOR: torch.device(self.device_type, local_rank)
{% else %}
        return torch.device(self.device_type, local_rank)
{% endif %}

{% endif %}
    # --- SGLang before 0.5.22 has no defaults for these ---

    if not hasattr(SRTPlatform, "get_kv_pool_cls"):

        def get_mha_kv_pool_cls(self) -> type:
            """Return the KV pool for multi-head attention. {{ cookiecutter.status.get_mha_kv_pool_cls }}"""
            from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool

            return MHATokenToKVPool  # type: ignore[no-any-return]

        def get_mla_kv_pool_cls(self) -> type:
            """Return the KV pool for latent attention. {{ cookiecutter.status.get_mla_kv_pool_cls }}"""
            from sglang.srt.mem_cache.memory_pool import MLATokenToKVPool

            return MLATokenToKVPool  # type: ignore[no-any-return]

        def get_paged_allocator_cls(self) -> type:
            """Return the KV cache's allocator."""
            from {{ cookiecutter.package }}.allocator import OneTokenPages

            return OneTokenPages  # VENDOR: an allocator with pages, where the device wants them
{% endif %}
