"""Gated activation."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ...kernels.fused_op import BaseFusedOp


class SiluAndMul(BaseFusedOp):
    """Split in half: the SiLU of the first gates the second."""

    def forward_native(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up
