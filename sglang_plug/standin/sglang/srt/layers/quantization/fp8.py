"""FP8 weights with one scale an output row; activations stay as they are."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from ..linear import LinearBase, UnquantizedLinearMethod
from .base_config import QuantizationConfig


class Fp8Config(QuantizationConfig):
    """FP8 for every linear layer."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Fp8Config:
        return cls()

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> Fp8LinearMethod | None:
        return Fp8LinearMethod() if isinstance(layer, LinearBase) else None


class Fp8LinearMethod(UnquantizedLinearMethod):
    """Loads full weights, keeps them in FP8."""

    def process_weights_after_loading(self, layer: Any) -> None:
        weight = layer.weight.data.float()
        scale = weight.abs().amax(dim=1, keepdim=True).clamp(min=1e-12) / torch.finfo(torch.float8_e4m3fn).max
        layer.weight = torch.nn.Parameter((weight / scale).to(torch.float8_e4m3fn), requires_grad=False)
        layer.weight_scale = torch.nn.Parameter(scale, requires_grad=False)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return F.linear(x, (layer.weight.float() * layer.weight_scale).to(x.dtype), bias)
