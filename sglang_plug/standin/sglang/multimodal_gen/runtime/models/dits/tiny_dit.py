"""A small diffusion transformer: patches in, velocity out. Self-attention may run on a sequence shared out among ranks."""

from __future__ import annotations

import math

import torch
from torch import nn

from ... import platforms
from ...distributed.parallel_state import get_sp_group
from ...layers.activation import SiluAndMul
from ...layers.attention.layer import LocalAttention, UlyssesAttention
from ...layers.layernorm import LayerNormScaleShift, RMSNorm
from ...pipelines_core.schedule_batch import InvalidRequest


def sinusoid(positions: torch.Tensor, width: int) -> torch.Tensor:
    """Return (…, width) sines and cosines of positions, worked out in float64 where the platform has it."""
    wide = torch.float64 if platforms.current_platform.is_float64_supported() else torch.float32
    frequencies = torch.exp(-math.log(10000.0) * torch.arange(width // 2, dtype=wide, device=positions.device) / (width // 2))
    angles = positions.to(wide)[..., None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def grid_positions(rows: int, columns: int, width: int, device: torch.device) -> torch.Tensor:
    """Return (rows · columns, width): half of the width says the row, half the column."""
    row, column = torch.meshgrid(torch.arange(rows, device=device), torch.arange(columns, device=device), indexing="ij")
    return torch.cat([sinusoid(row.flatten(), width // 2), sinusoid(column.flatten(), width // 2)], dim=-1)


class TinyDiTBlock(nn.Module):
    """Self-attention, cross-attention to the text, and a gated MLP; time and prompt modulate the first and the last."""

    def __init__(self, width: int, inner: int, heads: int, text_dim: int, prefix: str) -> None:
        super().__init__()
        self.heads, head = heads, width // heads
        self.modulation = nn.Linear(width, 6 * width)
        self.norm_in = LayerNormScaleShift(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.q_norm, self.k_norm = RMSNorm(head), RMSNorm(head)
        self.attention = UlyssesAttention(heads, head, prefix=f"{prefix}.attention")
        self.attention_out = nn.Linear(width, width)
        self.cross_norm = RMSNorm(width)
        self.cross_q, self.cross_kv = nn.Linear(width, width), nn.Linear(text_dim, 2 * width)
        self.cross_attention = LocalAttention(heads, head, prefix=f"{prefix}.cross_attention")
        self.cross_out = nn.Linear(width, width)
        self.norm_mlp = LayerNormScaleShift(width)
        self.mlp_in, self.act, self.mlp_out = nn.Linear(width, 2 * inner), SiluAndMul(), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor, text: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        shift, scale, gate, shift_mlp, scale_mlp, gate_mlp = self.modulation(condition)[:, None].chunk(6, dim=-1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)) for t in self.qkv(self.norm_in(x, shift, scale)).chunk(3, dim=-1))
        x = x + gate * self.attention_out(self.attention(self.q_norm(q), self.k_norm(k), v).flatten(2))
        k, v = (t.unflatten(-1, (self.heads, -1)) for t in self.cross_kv(text).chunk(2, dim=-1))
        q = self.cross_q(self.cross_norm(x)).unflatten(-1, (self.heads, -1))
        x = x + self.cross_out(self.cross_attention(q, k, v).flatten(2))
        return x + gate_mlp * self.mlp_out(self.act(self.mlp_in(self.norm_mlp(x, shift_mlp, scale_mlp))))


class TinyDiT(nn.Module):
    """Predicts the velocity of flow matching for latents of (batch, channels, height, width)."""

    def __init__(
        self,
        in_channels: int,
        patch_size: int,
        hidden_size: int,
        intermediate_size: int,
        num_attention_heads: int,
        num_layers: int,
        text_dim: int,
    ) -> None:
        super().__init__()
        self.channels, self.patch, self.width = in_channels, patch_size, hidden_size
        self.patch_in = nn.Linear(in_channels * patch_size**2, hidden_size)
        self.time_in, self.time_out = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)
        self.text_in = nn.Linear(text_dim, hidden_size)
        self.blocks = nn.ModuleList(
            TinyDiTBlock(hidden_size, intermediate_size, num_attention_heads, text_dim, f"blocks.{i}") for i in range(num_layers)
        )
        self.norm_out, self.modulation_out = LayerNormScaleShift(hidden_size), nn.Linear(hidden_size, 2 * hidden_size)
        self.patch_out = nn.Linear(hidden_size, in_channels * patch_size**2)
        self.denoise_gain = nn.Parameter(torch.ones(1))

    def forward(self, latents: torch.Tensor, timestep: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """Return the velocity, whole on every rank.

        Raises:
            InvalidRequest: the ranks cannot share the tokens evenly.
        """
        rows, columns = latents.shape[2] // self.patch, latents.shape[3] // self.patch
        time = sinusoid(timestep * 1000, self.width).to(latents.dtype)
        condition = nn.functional.silu(self.time_out(nn.functional.silu(self.time_in(time))) + self.text_in(text.mean(1)))
        tokens = self.patch_in(self.to_tokens(latents, rows, columns))
        tokens = tokens + grid_positions(rows, columns, self.width, latents.device).to(latents.dtype)

        group = get_sp_group()
        if tokens.shape[1] % group.world_size:
            raise InvalidRequest(f"{tokens.shape[1]} image tokens ({rows} × {columns}) cannot be shared among {group.world_size} workers")
        x = tokens.chunk(group.world_size, dim=1)[group.rank_in_group]
        for block in self.blocks:
            x = block(x, text, condition)
        shift, scale = self.modulation_out(condition)[:, None].chunk(2, dim=-1)
        velocity = group.all_gather(self.patch_out(self.norm_out(x, shift, scale)), dim=1)
        return self.denoise_gain * latents + self.to_latents(velocity, rows, columns)

    def to_tokens(self, latents: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        """Return (batch, rows · columns, channels · patch²)."""
        cut = latents.unflatten(3, (columns, self.patch)).unflatten(2, (rows, self.patch))
        return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)

    def to_latents(self, tokens: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
        """Undo `to_tokens`."""
        cut = tokens.unflatten(1, (rows, columns)).unflatten(3, (self.channels, self.patch, self.patch))
        return cut.permute(0, 3, 1, 4, 2, 5).flatten(4, 5).flatten(2, 3)
