"""Attention in plain torch: prompts one by one, decode steps as one padded batch."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from .base_attn_backend import AttentionBackend


class TorchNativeAttnBackend(AttentionBackend):
    """The reference. Decoding gathers each sequence's rows, so a step costs (sequences x longest sequence)."""

    def __init__(self, runner: Any) -> None:
        self.device = runner.device
        self.rows: torch.Tensor | None = None
        self.mask: torch.Tensor | None = None

    def init_forward_metadata(self, forward_batch: Any, max_len: int | None = None) -> None:
        """Look up the rows of each sequence's positions; `max_len` fixes the padded width for graph capture."""
        if not forward_batch.forward_mode.is_decode():
            return
        width = max_len or max(forward_batch.seq_lens_cpu)
        table = forward_batch.req_to_token_pool.req_to_token
        self.rows = table[forward_batch.req_pool_indices, :width]
        self.mask = torch.arange(width, device=self.device)[None, :] < forward_batch.seq_lens[:, None]

    def forward_extend(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: Any, forward_batch: Any, save_kv_cache: bool = True
    ) -> torch.Tensor:
        pool = forward_batch.token_to_kv_pool
        if save_kv_cache:
            pool.set_kv_buffer(layer, forward_batch.out_cache_loc, k, v)
        keys, values = pool.get_kv_buffer(layer.layer_id)
        q = q.view(-1, layer.tp_q_head_num, layer.qk_head_dim)
        out = torch.empty(len(q), layer.tp_q_head_num, layer.v_head_dim, dtype=q.dtype, device=q.device)
        start = 0
        for slot, length, count in zip(
            forward_batch.req_pool_indices.tolist(), forward_batch.seq_lens_cpu, forward_batch.extend_lens, strict=True
        ):
            rows = forward_batch.req_to_token_pool.req_to_token[slot, :length]
            mask = None
            if count != length:  # a prefix is cached: the new tokens see all of it
                mask = torch.ones(count, length, dtype=torch.bool, device=q.device).tril(length - count)
            piece = scaled_dot_product_attention(
                q[start : start + count].transpose(0, 1)[None],
                _heads(keys[rows].transpose(0, 1)[None], layer, q.dtype),
                _heads(values[rows].transpose(0, 1)[None], layer, q.dtype),
                attn_mask=mask,
                is_causal=mask is None,
                scale=layer.scaling,
            )
            out[start : start + count] = piece[0].transpose(0, 1)
            start += count
        return out.view(len(q), -1)

    def forward_decode(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: Any, forward_batch: Any, save_kv_cache: bool = True
    ) -> torch.Tensor:
        assert self.rows is not None
        assert self.mask is not None
        pool = forward_batch.token_to_kv_pool
        if save_kv_cache:
            pool.set_kv_buffer(layer, forward_batch.out_cache_loc, k, v)
        keys, values = pool.get_kv_buffer(layer.layer_id)
        q = q.view(-1, layer.tp_q_head_num, 1, layer.qk_head_dim)
        out = scaled_dot_product_attention(
            q,
            _heads(keys[self.rows].transpose(1, 2), layer, q.dtype),
            _heads(values[self.rows].transpose(1, 2), layer, q.dtype),
            attn_mask=self.mask[:, None, None, :],
            scale=layer.scaling,
        )
        return out.reshape(len(q), -1)


def _heads(x: torch.Tensor, layer: Any, dtype: torch.dtype) -> torch.Tensor:
    """Repeat each key or value head for the query heads that share it."""
    return x.to(dtype).repeat_interleave(layer.tp_q_head_num // layer.tp_k_head_num, dim=1)
