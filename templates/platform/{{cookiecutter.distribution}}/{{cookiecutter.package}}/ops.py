{% if cookiecutter.diffusion %}
"""Forwards of SGLang Diffusion's custom ops on this device. init_backend() registers them."""

from __future__ import annotations

from typing import Any

import torch


def rms_norm_forward(
    op: Any, x: torch.Tensor, residual: torch.Tensor | None = None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Return `x` over its root mean square, times `op.weight`; with a residual, that of the sum, and the sum.

    Computes as SGLang's own forward does: in float32, rounding once at the end.
    """
    # VENDOR: one call of your kernel; leave the options that it lacks to the op's own forward.
    if getattr(op, "cast_x_before_out_mul", False) or getattr(op, "variance_size_override", None) is not None:
        return op.forward_native(x, residual)
    wide = x.to(torch.float32)
    if residual is not None:
        wide = wide + residual.to(torch.float32)
        residual = wide.to(x.dtype)
    normalised = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + op.variance_epsilon)
    out = (normalised * op.weight).to(x.dtype)
    return out if residual is None else (out, residual)
{% endif %}
