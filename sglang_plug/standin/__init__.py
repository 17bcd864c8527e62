"""A miniature of SGLang for laptops and CI: plugin interfaces and a small engine, importable as `sglang` where no real one is installed."""

from __future__ import annotations

import os
from pathlib import Path

SITE = Path(__file__).resolve().parent / "site"
COMMAND = SITE / "sglang"


def environment(base: dict[str, str] | None = None) -> dict[str, str]:
    """Return `base` (this process's variables) with which any Python child finds the stand-in.

    `python -I`, `-E` and `-S` ignore PYTHONPATH or sitecustomize, and so find none.
    """
    env = dict(os.environ if base is None else base)
    others = [place for place in env.get("PYTHONPATH", "").split(os.pathsep) if place and Path(place) != SITE]
    env["PYTHONPATH"] = os.pathsep.join([str(SITE), *others])
    return env
