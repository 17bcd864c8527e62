"""`SRTPlatform`: what a language-model engine asks of a platform, with the documented defaults. No torch at module scope.

Two generations of the interface live side by side, and an override of either takes effect: the document's `support_cuda_graph()`,
`get_mha_kv_pool_cls()`, …, and the releases' `capabilities`, `get_kv_pool_cls(kind=…)`, … (since 0.5.22).

Source: rule S8, the tables "Capability flags", "Subsystem factory methods" and "Lifecycle hooks".
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from .device_mixin import DeviceMixin, PlatformEnum

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["KVPoolKind", "PlatformCapabilities", "PlatformEnum", "SRTPlatform", "reject_out_of_tree_path", "require_out_of_tree_impl"]

logger = logging.getLogger(__name__)

KVPoolKind = Literal["mha", "mla", "dsa"]
_KV_POOL_FACTORIES = {
    "mha": ("get_mha_kv_pool_cls",),
    "mla": ("get_mla_kv_pool_cls",),
    "dsa": ("get_dsa_kv_pool_cls", "get_nsa_kv_pool_cls"),
}
_told: set[tuple[type, str]] = set()


@dataclass(frozen=True, kw_only=True)
class PlatformCapabilities:
    """What the engine may count on; each default is the cautious answer.

    Attributes:
        supports_triton: Triton kernels run on the device.
        graph_capture: the decode graph runner may be used.
        piecewise_graph: the piecewise compilation backend may be used for prefill.
        hicache_device_kernels: the kernels of the hierarchical cache exist.
        supports_pynccl: model-parallel groups may create a PyNccl communicator.
    """

    supports_triton: bool = False
    graph_capture: bool = False
    piecewise_graph: bool = False
    hicache_device_kernels: bool = False
    supports_pynccl: bool = False


class SRTPlatform(DeviceMixin):
    """The base class of all SRT platforms, and the fallback where nothing else is found."""

    supported_quantization: ClassVar[list[str]] = []
    capabilities: PlatformCapabilities = PlatformCapabilities()

    def support_cuda_graph(self) -> bool:
        """Tell whether decode steps may be captured as a device graph (until 0.5.21; then `capabilities.graph_capture`)."""
        return self.capabilities.graph_capture

    def support_piecewise_cuda_graph(self) -> bool:
        """Tell whether prefill may be compiled in pieces (until 0.5.21; then `capabilities.piecewise_graph`)."""
        return self.capabilities.piecewise_graph

    def supports_fp8(self) -> bool:
        """Tell whether weights may be quantized to FP8 (until 0.5.21)."""
        return False

    def get_default_attention_backend(self) -> str:
        """Return the name of the attention backend to use when none is asked for."""
        raise NotImplementedError

    def get_graph_runner_cls(self) -> type | None:
        """Return the class that captures and replays decode steps."""
        raise NotImplementedError

    def get_mha_kv_pool_cls(self) -> type:
        """Return the KV cache pool of multi-head attention (until 0.5.21; then `get_kv_pool_cls`)."""
        raise NotImplementedError

    def get_mla_kv_pool_cls(self) -> type:
        """Return the KV cache pool of latent attention (until 0.5.21; then `get_kv_pool_cls`)."""
        raise NotImplementedError

    def get_dsa_kv_pool_cls(self) -> type:
        """Return the KV cache pool of sparse attention (until 0.5.21; then `get_kv_pool_cls`)."""
        raise NotImplementedError

    def get_kv_pool_cls(self, *, kind: KVPoolKind) -> type | None:
        """Return the KV cache pool for `kind`, or None for the engine's own (since 0.5.22).

        The default serves an override of the older factory, and says once that it is deprecated.
        """
        for name in _KV_POOL_FACTORIES[kind]:
            override = getattr(type(self), name, None)
            if override is None or override is getattr(SRTPlatform, name, None):
                continue
            if (type(self), name) not in _told:
                _told.add((type(self), name))
                logger.warning("%s.%s() is deprecated since 0.5.22: override get_kv_pool_cls(kind=%r)", type(self).__name__, name, kind)
            return getattr(self, name)()
        return None

    def get_paged_allocator_cls(self) -> type | None:
        """Return the class that hands out pages of the KV cache."""
        raise NotImplementedError

    def get_quantization_config(self, quantization: str) -> type | None:
        """Return the device's configuration class for `quantization`, or None for the engine's own; raise where it is unsupported."""
        raise NotImplementedError

    def get_piecewise_backend_cls(self) -> type | None:
        """Return the class that compiles prefill in pieces."""
        raise NotImplementedError

    def get_compile_backend(self, mode: str | None = None) -> str:
        """Return the torch.compile backend; `mode` is a hint such as "npugraph_ex"."""
        return "inductor"

    def get_dispatch_key_name(self) -> str:
        """Return the key under which fused operations look for this platform's implementation."""
        return "native"

    def get_full_graph_backend_cls(self) -> type | None:
        """Return the class that captures whole decode graphs, or None for the engine's own (since 0.5.21)."""
        return None

    def get_default_speculative_draft_attention_backend(self, algorithm: str) -> str:
        """Return the attention backend of `algorithm`'s draft model (since 0.5.21)."""
        raise NotImplementedError

    def get_speculative_cache_locs_fn(self) -> Callable[..., Any] | None:
        """Return the function that places draft tokens in the KV cache, or None (since 0.5.21)."""
        return None

    def get_speculative_worker_cls(self, algorithm: str) -> type | None:
        """Return the worker class for `algorithm`, or None for the engine's own (since 0.5.23)."""
        return None

    def get_speculative_graph_runner_cls(self, algorithm: str, phase: str) -> type | None:
        """Return the graph runner for `phase` of `algorithm`, or None to run it eagerly (since 0.5.23)."""
        return None

    def supports_speculative_algorithm(self, algorithm: str) -> bool:
        """Tell whether speculative decoding by `algorithm` works here (since 0.5.21)."""
        return False

    def supports_speculative_draft_attention_backend(self, algorithm: str, backend: str) -> bool:
        """Tell whether `algorithm`'s draft model may use attention `backend` (since 0.5.21)."""
        return False

    def support_mamba_cache_extra_buffer(self) -> bool:
        """Tell whether snapshots of state-space caches work here (since 0.5.22)."""
        return False

    def get_group_coordinator_device(self, local_rank: int) -> Any:
        """Return the device to which this rank's communication is bound (since 0.5.23)."""
        import torch

        return torch.device("cpu")

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Set this platform's defaults on the parsed arguments."""

    def init_backend(self) -> None:
        """Prepare the backend; called once in each worker before the model is built."""

    def post_load_model(self, model: Any) -> None:
        """Change the loaded model in place (since 0.5.22)."""


def require_out_of_tree_impl(platform: SRTPlatform, *, hook: str, subsystem: str) -> None:
    """Refuse an out-of-tree platform that leaves `subsystem` to the engine where the engine's own is made for another device.

    Raises:
        NotImplementedError: naming the method to override.
    """
    if platform.is_out_of_tree():
        raise NotImplementedError(f"{platform!r} provides no {subsystem}; override {hook} on {type(platform).__name__}")


def reject_out_of_tree_path(platform: SRTPlatform, *, subsystem: str) -> None:
    """Refuse an out-of-tree platform where `subsystem` has no place for one.

    Raises:
        NotImplementedError: naming the subsystem.
    """
    if platform.is_out_of_tree():
        raise NotImplementedError(f"{platform!r} reached {subsystem}, which out-of-tree platforms cannot replace")
