"""Euler steps along the flow from noise (sigma 1) to an image (sigma 0)."""

from __future__ import annotations

import torch

from ...layers.utils import direct_register_custom_op


def euler_step(latents: torch.Tensor, velocity: torch.Tensor, step: float) -> torch.Tensor:
    """Return `latents + step · velocity`, in float32 and back."""
    return (latents.float() + step * velocity.float()).to(latents.dtype)


def _fake_euler_step(latents: torch.Tensor, velocity: torch.Tensor, step: float) -> torch.Tensor:
    return torch.empty_like(latents)


class FlowMatchEulerDiscreteScheduler:
    """Sigmas from 1 to 0, shifted towards the noisy end: shift · s / (1 + (shift − 1) · s)."""

    def __init__(self, shift: float = 1.0) -> None:
        self.shift = shift
        direct_register_custom_op("diffusion_euler_step", euler_step, mutates_args=[], fake_impl=_fake_euler_step)

    def sigmas(self, steps: int) -> list[float]:
        """Return the `steps` + 1 noise levels of a run."""
        even = [1 - i / steps for i in range(steps + 1)]
        return [self.shift * s / (1 + (self.shift - 1) * s) for s in even]

    def step(self, velocity: torch.Tensor, latents: torch.Tensor, sigma: float, sigma_next: float) -> torch.Tensor:
        """Return the latents at `sigma_next`, through the operator that the platform may have its own kernel for."""
        moved: torch.Tensor = torch.ops.sglang.diffusion_euler_step(latents, velocity, sigma_next - sigma)
        return moved
