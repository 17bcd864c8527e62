"""Attention through `torch.nn.functional.scaled_dot_product_attention`: runs wherever torch runs."""

from __future__ import annotations

from typing import Any

import torch

from ....platforms import AttentionBackendEnum
from .attention_backend import AttentionBackend, AttentionImpl, AttentionMetadata


class SDPABackend(AttentionBackend):
    """The backend that every built-in platform of the stand-in names."""

    accept_output_buffer = True

    @staticmethod
    def get_enum() -> AttentionBackendEnum:
        return AttentionBackendEnum.TORCH_SDPA

    @staticmethod
    def get_impl_cls() -> type[SDPAImpl]:
        return SDPAImpl


class SDPAImpl(AttentionImpl):
    """Computes with torch's own kernel."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        causal: bool = False,
        softmax_scale: float | None = None,
        num_kv_heads: int | None = None,
        prefix: str = "",
        **extra_impl_args: Any,
    ) -> None:
        self.causal = causal
        self.softmax_scale = softmax_scale
        self.dropout = extra_impl_args.get("dropout_p", 0.0)

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_metadata: AttentionMetadata | None) -> torch.Tensor:
        out = torch.nn.functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            dropout_p=self.dropout,
            is_causal=self.causal,
            scale=self.softmax_scale,
        )
        return out.transpose(1, 2)
