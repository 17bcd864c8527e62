"""Normalisation."""

from __future__ import annotations

import torch
from torch import nn

from ...kernels.fused_op import BaseFusedOp


class RMSNorm(BaseFusedOp):
    """Scale by the root mean square, computed in float32. With a residual: add it first, and return both."""

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size), requires_grad=False)
        self.variance_epsilon = eps

    def forward_native(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        if residual is not None:
            x = residual = x + residual
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        normed = self.weight * wide.to(x.dtype)
        return normed if residual is None else (normed, residual)
