"""Sampling parameters."""

from .sampling_params import SamplingParams

__all__ = ["SamplingParams"]
