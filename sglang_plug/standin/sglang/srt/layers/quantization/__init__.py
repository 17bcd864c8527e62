"""Quantization methods by name: the platform's own first, then the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...platforms import current_platform
from ...utils import optional_class

if TYPE_CHECKING:
    from .base_config import QuantizationConfig


def get_quantization_config(quantization: str) -> type[QuantizationConfig]:
    """Return the configuration class of `quantization` on this platform.

    Raises:
        ValueError: neither platform nor engine has it.
        Exception: what the platform raises for a method that it does not support.
    """
    own = optional_class(current_platform.get_quantization_config, quantization)
    if own is not None:
        return own
    if quantization != "fp8":
        raise ValueError(f"--quantization {quantization}: {current_platform!r} has no such method; the stand-in itself has fp8")
    if not current_platform.supports_fp8():
        raise ValueError("--quantization fp8: the platform says supports_fp8() is False")
    from .fp8 import Fp8Config

    return Fp8Config
