"""Which attention backend a layer uses: the platform answers, told what the user asked for."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

from ... import platforms
from ...platforms.interface import AttentionBackendEnum
from .backends.attention_backend import AttentionBackend

if TYPE_CHECKING:
    import torch

_forced: AttentionBackendEnum | None = None


def backend_name_to_enum(backend_name: str) -> AttentionBackendEnum | None:
    """Return the member of that name, in any case, or None."""
    return AttentionBackendEnum.__members__.get(backend_name.upper())


def global_force_attn_backend(attn_backend: AttentionBackendEnum | None) -> None:
    """Ask for one backend in every layer made from here on; None asks for none."""
    global _forced  # noqa: PLW0603 - one choice a process, as upstream keeps it
    _forced = attn_backend


def get_global_forced_attn_backend() -> AttentionBackendEnum | None:
    """Return what was asked for."""
    return _forced


def get_attn_backend(
    head_size: int, dtype: torch.dtype, supported_attention_backends: set[AttentionBackendEnum] | None = None
) -> type[AttentionBackend]:
    """Return the backend class that the platform names for these heads.

    Raises:
        ValueError: the platform names none, or one that the layer does not support.
        TypeError: the name is not an attention backend.
    """
    platform = platforms.current_platform
    qualname = platform.get_attn_backend_cls_str(_forced, head_size, dtype)
    if not qualname:
        raise ValueError(f"Invalid attention backend for {platform.device_name}: get_attn_backend_cls_str() returned nothing")
    backend = resolve_name(qualname)
    if not isinstance(backend, type) or not issubclass(backend, AttentionBackend):
        raise TypeError(f"Expected an AttentionBackend subclass: {qualname}")
    if supported_attention_backends and backend.get_enum() not in supported_attention_backends:
        raise ValueError(f"Attention backend {backend.get_enum()} is not supported by this layer")
    return backend
