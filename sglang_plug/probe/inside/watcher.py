"""Meets the first read of `current_platform`, and notes what plugins import meanwhile. Owns one `sys.meta_path` entry of the rehearsal."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec
    from types import ModuleType

PLATFORM_MODULES = {"srt": "sglang.srt.platforms", "diffusion": "sglang.multimodal_gen.runtime.platforms"}
_NARROWING = {
    "srt": "SGLANG_PLUGINS",
    "diffusion": "SGLANG_DIFFUSION_PLATFORM_OVERRIDE",
}  # with a name in it the host asks that plugin alone


class Watcher(MetaPathFinder):
    """Wraps `current_platform` of the two platform modules as they load, and notes who imports what while a plugin is on trial."""

    def __init__(self, select: Callable[[str, ModuleType, Callable[[str], Any]], Any], resolving: dict[str, bool]) -> None:
        self._select = select
        self._resolving = resolving
        self.recording: list[dict[str, Any]] | None = None
        self.deciding: tuple[str, str] | None = None  # the platform on trial: its runtime and name
        self.touched: list[dict[str, Any]] = []
        self._acting = True

    def leave(self) -> None:
        """From now on the host acts by itself: this process is given up for a trial."""
        self._acting = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the platform modules' specs with a wrapped loader; None for every other name."""
        if self.recording is not None and fullname.startswith("sglang."):
            self.recording.append({"module": fullname, **asker()})
        for runtime, name in PLATFORM_MODULES.items():
            if fullname == name:
                return self._wrapped(fullname, path, target, runtime)
        return None

    def _wrapped(self, fullname: str, path: Any, target: Any, runtime: str) -> ModuleSpec | None:
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target) if finder is not self and hasattr(finder, "find_spec") else None
            if spec is not None and spec.loader is not None:
                self._follow(spec.loader, runtime)
                return spec
        return None

    def _follow(self, loader: Any, runtime: str) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._wrap(module, runtime)

        loader.exec_module = exec_module

    def _wrap(self, module: ModuleType, runtime: str) -> None:
        """Give the module a class that meets each read of `current_platform`, however the module itself provides it."""
        kind = type(module)

        def read(name: str) -> Any:
            return kind.__getattribute__(module, name)

        def getattribute(this: ModuleType, name: str) -> Any:
            return self._met(runtime, this, read) if name == "current_platform" else kind.__getattribute__(this, name)

        module.__class__ = type("Watched", (kind,), {"__getattribute__": getattribute})

    def _met(self, runtime: str, module: ModuleType, read: Callable[[str], Any]) -> Any:
        if self.deciding is not None and self.deciding[0] == runtime:
            self.touched += [] if self.touched else [asker()]
            with environment(_alone(*self.deciding)):  # the host asks it again, which reads it again: how that ends is the host's
                return read("current_platform")
        if runtime not in self._resolving and self._acting:
            return self._select(runtime, module, read)
        return read("current_platform")


def asker() -> dict[str, Any]:
    """Return file, line and function of the innermost frame outside the import machinery and this folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<frozen", here)) and f"{os.sep}importlib{os.sep}" not in name:
            return {"file": name, "line": frame.f_lineno, "function": frame.f_code.co_name}
        frame = frame.f_back  # type: ignore[assignment]
    return {"file": None, "line": None, "function": None}


def _alone(runtime: str, name: str) -> dict[str, str | None]:
    variable = _NARROWING[runtime]
    return {variable: name, variable.replace("SGLANG_", "SGL_", 1): None}


@contextlib.contextmanager
def environment(changes: dict[str, str | None]) -> Iterator[None]:
    """Hold variables at other values for a moment."""
    before = {name: os.environ.get(name) for name in changes}
    _assign(changes)
    try:
        yield
    finally:
        _assign(before)


def _assign(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
