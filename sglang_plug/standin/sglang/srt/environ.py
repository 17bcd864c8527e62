"""`envs`: the environment variables of the runtime, read when asked. Standard library only; no other stand-in module reads them.

A variable's older name `SGL_X` wins over `SGLANG_X`, as in SGLang.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class EnvField(Generic[T]):
    """One variable with its default. Must never be used as a truth value: call `.get()`."""

    def __init__(self, default: T) -> None:
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def parse(self, value: str) -> T:
        """Turn the variable's text into its value. Raises: ValueError."""
        raise NotImplementedError

    def get(self) -> T:
        """Return the value, or the default (with a warning) where the text cannot be read."""
        older = "SGL_" + self.name.removeprefix("SGLANG_")
        value = os.environ.get(older, os.environ.get(self.name))
        if value is None:
            return self.default
        try:
            return self.parse(value)
        except ValueError as error:
            warnings.warn(f"{self.name}={value!r} cannot be read ({error}); using {self.default!r}", stacklevel=2)
            return self.default

    def is_set(self) -> bool:
        """Tell whether the variable exists, under its present name."""
        return self.name in os.environ

    def set(self, value: Any) -> None:
        """Set the variable for this process and its children."""
        os.environ[self.name] = str(value)

    def clear(self) -> None:
        """Remove the variable."""
        os.environ.pop(self.name, None)

    @contextlib.contextmanager
    def override(self, value: Any) -> Iterator[None]:
        """Set the variable within a `with` block."""
        before = os.environ.get(self.name)
        self.set(value)
        try:
            yield
        finally:
            self.clear() if before is None else self.set(before)

    def __bool__(self) -> bool:
        raise RuntimeError(f"write envs.{self.name}.get(), not envs.{self.name}")


class EnvStr(EnvField[str]):
    """A variable that holds text."""

    def parse(self, value: str) -> str:
        return value


class EnvInt(EnvField[int]):
    """A variable that holds a whole number."""

    def parse(self, value: str) -> int:
        return int(value)


class EnvBool(EnvField[bool]):
    """A variable that holds yes or no."""

    def parse(self, value: str) -> bool:
        text = value.lower()
        if text in {"true", "1", "yes", "y"}:
            return True
        if text in {"false", "0", "no", "n"}:
            return False
        raise ValueError("neither true nor false")


class Envs:
    """The variables that the stand-in knows."""

    SGLANG_PLATFORM = EnvStr("")
    SGLANG_PLUGINS = EnvStr("")
    SGLANG_USE_CPU_ENGINE = EnvStr("0")
    SGLANG_DIFFUSION_PLATFORM_OVERRIDE = EnvStr("")
    SGLANG_CACHE_DIR = EnvStr("~/.cache/sglang")
    SGLANG_TORCH_PROFILER_DIR = EnvStr("/tmp")  # noqa: S108 - upstream's default


envs = Envs()
