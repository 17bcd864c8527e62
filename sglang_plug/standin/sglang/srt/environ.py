"""`envs`: the environment variables of the runtime, read when asked. Standard library only; no other stand-in module reads them.

A variable's older name `SGL_X` wins over `SGLANG_X`, as in SGLang.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class EnvStr:
    """One variable with its default. Must never be used as a truth value: call `.get()`."""

    def __init__(self, default: str) -> None:
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def get(self) -> str:
        """Return the value, or the default."""
        older = "SGL_" + self.name.removeprefix("SGLANG_")
        return os.environ.get(older, os.environ.get(self.name, self.default))

    def is_set(self) -> bool:
        """Tell whether the variable exists, under its present name."""
        return self.name in os.environ

    def set(self, value: object) -> None:
        """Set the variable for this process and its children."""
        os.environ[self.name] = str(value)

    def clear(self) -> None:
        """Remove the variable."""
        os.environ.pop(self.name, None)

    @contextlib.contextmanager
    def override(self, value: object) -> Iterator[None]:
        """Set the variable within a `with` block."""
        before = os.environ.get(self.name)
        self.set(value)
        try:
            yield
        finally:
            self.clear() if before is None else self.set(before)

    def __bool__(self) -> bool:
        raise RuntimeError(f"write envs.{self.name}.get(), not envs.{self.name}")


class Envs:
    """The variables that the stand-in knows."""

    SGLANG_PLATFORM = EnvStr("")
    SGLANG_PLUGINS = EnvStr("")
    SGLANG_USE_CPU_ENGINE = EnvStr("0")
    SGLANG_DIFFUSION_PLATFORM_OVERRIDE = EnvStr("")
    SGLANG_CACHE_DIR = EnvStr("~/.cache/sglang")
    SGLANG_TORCH_PROFILER_DIR = EnvStr("/tmp")  # noqa: S108 - upstream's default


envs = Envs()
