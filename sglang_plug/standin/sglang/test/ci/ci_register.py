"""The marks by which a test file says on which machines it runs. SGLang's runner reads them in the source; a call does nothing."""

from __future__ import annotations

_MACHINES = ("cpu", "cuda", "amd", "musa", "npu", "xpu", "mlx", "mps", "ppu")

__all__ = [f"register_{machine}_ci" for machine in _MACHINES]


def _mark(*_args: object, **_words: object) -> None:
    """Take the mark and do nothing."""


globals().update(dict.fromkeys(__all__, _mark))
