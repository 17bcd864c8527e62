"""The stand-in for SGLang: plugin interfaces and a small engine at upstream's paths. Importing it resolves the platform, as SGLang does."""

from __future__ import annotations

if __name__ != "sglang":  # two copies of one registry would each see half of the hooks
    raise ImportError(
        f"the stand-in can only be imported as 'sglang', not as {__name__!r}; run `python -m sglang_plug.standin SCRIPT` "
        f"or call sglang_plug.standin.finder.install() first",
        name=__name__,
    )

from .version import __version__

__all__ = ["__version__"]
