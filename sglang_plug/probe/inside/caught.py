"""What a callback catches of its own: the exception behind a quiet None. Owns `sys.settrace` while the callback runs."""

from __future__ import annotations

import inspect
import os
import sys
from typing import TYPE_CHECKING, Any

from . import failures

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_ENDS = (StopIteration, StopAsyncIteration, GeneratorExit)


class Catching:
    """Calls a callback and keeps the last exception that came through the code of its package, raised there or below."""

    def __init__(self, callback: Callable[[], Any]) -> None:
        self._callback = callback
        self._last: BaseException | None = None
        file = getattr(getattr(inspect.unwrap(callback), "__code__", None), "co_filename", None)
        package = os.path.dirname(str(file)) + os.sep
        has_folder = file is not None and os.path.exists(package + "__init__.py")
        self._own = package if has_folder else file

    def __call__(self) -> Any:
        """Call it.

        Raises:
            BaseException: whatever it lets through.
        """
        if self._own is None or sys.gettrace() is not None:
            return self._callback()
        tracer = self._enter
        sys.settrace(tracer)
        try:
            return self._callback()
        finally:
            if sys.gettrace() == tracer:  # another one is the plugin's
                sys.settrace(None)

    def facts(self) -> dict[str, Any] | None:
        """Return the facts of what was caught last; None where nothing was."""
        return failures.facts_of(self._last) if self._last is not None else None

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(str(self._own)):
            return None
        frame.f_trace_lines = False
        return self._inside

    def _inside(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception" and isinstance(arg[1], BaseException) and not isinstance(arg[1], _ENDS):
            self._last = arg[1]
        return self._inside
