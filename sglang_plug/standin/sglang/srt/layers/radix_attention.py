"""The attention layer of a model: hands its tokens to the batch's attention backend."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class RadixAttention(nn.Module):
    """Multi-head attention of one layer; the backend does the work."""

    def __init__(self, num_heads: int, head_dim: int, scaling: float, num_kv_heads: int, layer_id: int) -> None:
        super().__init__()
        self.tp_q_head_num = num_heads
        self.tp_k_head_num = self.tp_v_head_num = num_kv_heads
        self.head_dim = self.qk_head_dim = self.v_head_dim = head_dim
        self.scaling = scaling
        self.layer_id = layer_id

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, forward_batch: Any, save_kv_cache: bool = True) -> torch.Tensor:
        """Return each token's attention over its own sequence."""
        k = k.view(-1, self.tp_k_head_num, self.qk_head_dim)
        v = v.view(-1, self.tp_v_head_num, self.v_head_dim)
        return forward_batch.attn_backend.forward(q, k, v, self, forward_batch, save_kv_cache)
