"""What an attention backend is: a class that names its implementation. Vendors' backends derive from these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from ....platforms import AttentionBackendEnum


@dataclass
class AttentionMetadata:
    """What changes from one denoising step to the next."""

    current_timestep: int


class AttentionBackend(ABC):
    """Names the pieces of one attention backend."""

    accept_output_buffer: bool = False

    @staticmethod
    @abstractmethod
    def get_enum() -> AttentionBackendEnum:
        """Return the name by which the backend can be asked for."""

    @staticmethod
    @abstractmethod
    def get_impl_cls() -> type[AttentionImpl]:
        """Return the class that computes."""

    @staticmethod
    def get_metadata_cls() -> type[AttentionMetadata]:
        return AttentionMetadata


class AttentionImpl(ABC):
    """Computes attention over (batch, sequence, heads, head size)."""

    @abstractmethod
    def __init__(
        self,
        num_heads: int,
        head_size: int,
        softmax_scale: float,
        causal: bool = False,
        num_kv_heads: int | None = None,
        prefix: str = "",
        **extra_impl_args: Any,
    ) -> None: ...

    def preprocess_qkv(self, qkv: torch.Tensor, attn_metadata: AttentionMetadata | None) -> torch.Tensor:
        """Return q, k and v (stacked along the batch) as `forward` wants them; called after the sequence was gathered."""
        return qkv

    def postprocess_output(self, output: torch.Tensor, attn_metadata: AttentionMetadata | None) -> torch.Tensor:
        """Undo `preprocess_qkv`; called before the sequence is scattered again."""
        return output

    @abstractmethod
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_metadata: AttentionMetadata | None) -> torch.Tensor:
        """Return the attended values."""
