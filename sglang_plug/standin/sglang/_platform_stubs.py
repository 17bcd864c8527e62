"""What `torch.cuda` tells of a device and `torch.mps` does not, at SGLang's place for it."""

from __future__ import annotations

from typing import NamedTuple


class _Properties(NamedTuple):
    name: str
    total_memory: int


_cached_props: _Properties | None = None  # SGLang's tests clear it


def get_device_properties(device: object = 0) -> _Properties:
    """Return name and memory of the one Apple GPU. Raises: RuntimeError: there is none."""
    global _cached_props  # noqa: PLW0603 - as above
    if _cached_props is None:
        from .srt.platforms.mps import MpsDeviceMixin

        _cached_props = _Properties("Apple MPS", MpsDeviceMixin().get_device_total_memory())
    return _cached_props
