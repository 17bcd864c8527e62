"""Normalisation layers, all of them `CustomOp`s with upstream's names and arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .custom_op import CustomOp


@CustomOp.register("rms_norm")
class RMSNorm(CustomOp):
    """x / sqrt(mean(x²) + eps) · weight, computed in float32; with `residual`, of their sum, which is returned as well."""

    def __init__(self, hidden_size: int, eps: float = 1e-6, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.variance_epsilon = eps
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=dtype))

    def forward_native(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        summed = x if residual is None else x + residual
        wide = summed.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        out = (scaled * self.weight.float()).to(x.dtype)
        return out if residual is None else (out, summed)

    def forward_cuda(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        if residual is None and x.dtype == self.weight.dtype:
            return torch.nn.functional.rms_norm(x, (self.hidden_size,), self.weight, self.variance_epsilon)
        return self.forward_native(x, residual)


@CustomOp.register("layer_norm")
class LayerNorm(CustomOp):
    """(x − mean) / sqrt(variance + eps), with weight and bias where `elementwise_affine`."""

    def __init__(self, hidden_size: int, eps: float = 1e-5, bias: bool = True, elementwise_affine: bool = True) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size)) if elementwise_affine else None
        self.bias = nn.Parameter(torch.zeros(hidden_size)) if elementwise_affine and bias else None

    def forward_native(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x.float(), (self.hidden_size,), self.weight, self.bias, self.eps).to(x.dtype)

    def forward_cuda(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward_native(x)


class _NormScaleShift(CustomOp):
    """norm(x) · (1 + scale) + shift: how a diffusion transformer is told the time and the prompt."""

    norm: CustomOp

    def forward_native(self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.norm(x) * (1 + scale) + shift
        return out.to(x.dtype)

    def forward_cuda(self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return self.forward_native(x, shift, scale)


@CustomOp.register("layer_norm_scale_shift")
class LayerNormScaleShift(_NormScaleShift):
    """`_NormScaleShift` over LayerNorm."""

    def __init__(self, hidden_size: int, eps: float = 1e-6, elementwise_affine: bool = False) -> None:
        super().__init__()
        self.eps = eps
        self.norm = LayerNorm(hidden_size, eps=eps, elementwise_affine=elementwise_affine)


@CustomOp.register("rms_norm_scale_shift")
class RMSNormScaleShift(_NormScaleShift):
    """`_NormScaleShift` over RMSNorm."""

    def __init__(self, hidden_size: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.norm = RMSNorm(hidden_size, eps=eps)
