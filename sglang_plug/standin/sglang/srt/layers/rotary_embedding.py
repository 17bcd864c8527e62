"""Rotary position embedding in the half-split ("neox") style."""

from __future__ import annotations

import math
from typing import Any

import torch

from ...kernels.fused_op import BaseFusedOp


def inverse_frequencies(head_dim: int, base: float, scaling: dict[str, Any] | None) -> torch.Tensor:
    """Return the frequencies of the head's pairs, scaled as the model folder says.

    Raises:
        ValueError: the stand-in does not know this kind of scaling.
    """
    frequencies = 1.0 / (base ** (torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim))
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if scaling is None or kind == "default":
        return frequencies
    if kind == "linear":
        return frequencies / scaling["factor"]
    if kind != "llama3":
        raise ValueError(f"rope_scaling {kind!r}: the stand-in knows default, linear and llama3")
    old = scaling["original_max_position_embeddings"]
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    waves = 2 * math.pi / frequencies
    smooth = (old / waves - low) / (high - low)
    slowed = frequencies / scaling["factor"]
    blended = (1 - smooth) * slowed + smooth * frequencies
    return torch.where(waves > old / low, slowed, torch.where(waves < old / high, frequencies, blended))


class RotaryEmbedding(BaseFusedOp):
    """Turn queries and keys by their positions."""

    def __init__(self, head_dim: int, max_position: int, base: float, scaling: dict[str, Any] | None) -> None:
        super().__init__()
        self.head_dim = head_dim
        angles = torch.outer(torch.arange(max_position).float(), inverse_frequencies(head_dim, base, scaling))
        self.register_buffer("cos_sin", torch.cat((angles.cos(), angles.sin()), dim=-1).to(torch.get_default_dtype()), persistent=False)

    def forward_native(self, positions: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = self.cos_sin[positions].unsqueeze(1).chunk(2, dim=-1)
        return self._turn(query, cos, sin), self._turn(key, cos, sin)

    def _turn(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = x.view(len(x), -1, self.head_dim).chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).view_as(x)
