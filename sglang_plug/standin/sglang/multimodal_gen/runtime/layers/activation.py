"""Gated activations, all of them `CustomOp`s with upstream's names."""

from __future__ import annotations

import torch

from .custom_op import CustomOp


@CustomOp.register("silu_and_mul")
class SiluAndMul(CustomOp):
    """silu(first half of the last dimension) · second half."""

    def forward_native(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = x.chunk(2, dim=-1)
        return torch.nn.functional.silu(gate) * value

    def forward_cuda(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward_native(x)


@CustomOp.register("gelu_and_mul")
class GeluAndMul(CustomOp):
    """gelu(first half of the last dimension) · second half.

    Raises:
        ValueError: `approximate` is neither `none` nor `tanh`.
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        if approximate not in ("none", "tanh"):
            raise ValueError(f"Unknown approximate mode: {approximate}")
        self.approximate = approximate

    def forward_native(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = x.chunk(2, dim=-1)
        return torch.nn.functional.gelu(gate, approximate=self.approximate) * value

    def forward_cuda(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward_native(x)
