"""Attention layers over (batch, sequence, heads, head size); `UlyssesAttention` runs on a sequence shared out among ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ...distributed.parallel_state import get_sp_group
from .selector import get_attn_backend


class LocalAttention(nn.Module):
    """Attention within this rank: cross-attention to a prompt that every rank holds whole."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        num_kv_heads: int | None = None,
        softmax_scale: float | None = None,
        causal: bool = False,
        prefix: str = "",
        **extra_impl_args: Any,
    ) -> None:
        super().__init__()
        self.num_heads, self.head_size = num_heads, head_size
        backend = get_attn_backend(head_size, torch.get_default_dtype())
        self.backend = backend.get_enum()
        self.attn_impl = backend.get_impl_cls()(
            num_heads=num_heads,
            head_size=head_size,
            causal=causal,
            softmax_scale=head_size**-0.5 if softmax_scale is None else softmax_scale,
            num_kv_heads=num_kv_heads or num_heads,
            prefix=f"{prefix}.impl",
            **extra_impl_args,
        )

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.attn_impl.forward(q, k, v, None)


class UlyssesAttention(LocalAttention):
    """Self-attention over the whole sequence when each rank holds a part of it.

    `all_to_all_4D` trades sequence for heads, each rank attends with its heads over all tokens, and a second exchange trades back.
    """

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        group = get_sp_group()
        if self.num_heads % group.world_size:
            raise ValueError(f"{self.num_heads} attention heads cannot be shared among {group.world_size} ranks")
        qkv = group.all_to_all_4D(torch.cat([q, k, v], dim=0), scatter_dim=2, gather_dim=1)
        q, k, v = self.attn_impl.preprocess_qkv(qkv, None).chunk(3, dim=0)
        out = self.attn_impl.postprocess_output(self.attn_impl.forward(q, k, v, None), None)
        return group.all_to_all_4D(out, scatter_dim=1, gather_dim=2)


USPAttention = UlyssesAttention
