"""The image decoder: latents to pixels, eight times as wide and high."""

from __future__ import annotations

import torch
from torch import nn


class UpBlock(nn.Module):
    """Doubles height and width."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(8, channels), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        grown = nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return grown + nn.functional.silu(self.conv(self.norm(grown)))


class TinyDecoder(nn.Module):
    """Latents of (batch, channels, height, width) to colours between 0 and 1."""

    def __init__(self, latent_channels: int, block_channels: int, num_upsamples: int, out_channels: int) -> None:
        super().__init__()
        self.latent_channels, self.scale = latent_channels, 2**num_upsamples
        self.conv_in = nn.Conv2d(latent_channels, block_channels, 3, padding=1)
        self.blocks = nn.ModuleList(UpBlock(block_channels) for _ in range(num_upsamples))
        self.conv_out = nn.Conv2d(block_channels, out_channels, 3, padding=1)

    def decode(self, latents: torch.Tensor) -> torch.Tensor:
        """Return (batch, colours, height · scale, width · scale)."""
        x = self.conv_in(latents)
        for block in self.blocks:
            x = block(x)
        return torch.sigmoid(self.conv_out(x))
