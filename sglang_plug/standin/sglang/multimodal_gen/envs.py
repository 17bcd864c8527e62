"""The environment variables of the diffusion runtime, read anew at each use. Import-safe: a script's module scope may import it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sglang_plug.core import environ

if TYPE_CHECKING:
    from collections.abc import Callable

    SGLANG_DIFFUSION_PLATFORM_OVERRIDE: str
    LOCAL_RANK: int

#: Each variable with the function that reads it.
environment_variables: dict[str, Callable[[], Any]] = {
    "SGLANG_DIFFUSION_PLATFORM_OVERRIDE": lambda: environ.read().diffusion_platform or "",
    "LOCAL_RANK": lambda: int(os.environ.get("LOCAL_RANK", "0")),
}


def __getattr__(name: str) -> Any:
    if name in environment_variables:
        return environment_variables[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *environment_variables})
