"""The stand-in for SGLang: plugin interfaces and a small engine at upstream's paths. Importing it resolves the platform, as SGLang does."""

from __future__ import annotations

if __name__ != "sglang":  # two copies of one registry would each see half of the hooks
    raise ImportError(
        f"the stand-in can only be imported as 'sglang', not as {__name__!r}; run `python -m sglang_plug.standin SCRIPT` "
        f"or call sglang_plug.standin.finder.install() first",
        name=__name__,
    )

from typing import TYPE_CHECKING, Any

from .srt.utils import common as _common  # noqa: F401 - resolves the platform, here and now
from .version import __version__

if TYPE_CHECKING:
    from .srt.entrypoints.engine import Engine

__all__ = ["Engine", "__version__"]


def __getattr__(name: str) -> Any:
    """Offer the offline engine without importing it before it is used."""
    if name == "Engine":
        from .srt.entrypoints.engine import Engine

        return Engine
    raise AttributeError(f"module 'sglang' has no attribute {name!r}")
