"""What happens once in a process. Owns the states, re-entrance and final failure of a phase; knows no phase.

The lock spans the action, strangers' code included: that is what makes other threads wait (S6.3). A callback that hands the same
phase to another thread and joins it therefore waits for itself for ever; this is documented, not supported.
"""

from __future__ import annotations

import threading
from enum import Enum
from typing import TYPE_CHECKING

from sglang_plug.errors import PhaseFailed

if TYPE_CHECKING:
    from collections.abc import Callable


class State(Enum):
    """Where a phase stands in this process."""

    NOT_STARTED = "not_started"
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


class Once:
    """A gate that lets one action through.

    Args:
        name: what the action is, for messages.
        final: whether a failure stands for ever; else the next call tries again.
    """

    def __init__(self, name: str, *, final: bool = True) -> None:
        self.name = name
        self.final = final
        self.state = State.NOT_STARTED
        self.error: BaseException | None = None
        self._lock = threading.RLock()

    def run(self, action: Callable[[], object]) -> bool:
        """Run `action` unless it ran; return False only to a call from inside the action itself.

        Raises:
            PhaseFailed: it failed before, and failure is final.
            BaseException: what the action raises, unchanged.
        """
        with self._lock:
            if self.state is State.COMPLETE:
                return True
            if self.state is State.RUNNING:
                return False
            if self.state is State.FAILED and self.final:
                message = f"{self.name} previously failed: {self.error}"
                raise PhaseFailed(message, subject=self.name, cause=repr(self.error), hint="start the process anew") from self.error
            self.state = State.RUNNING
            try:
                action()
            except BaseException as error:
                self.error = error
                self.state = State.FAILED
                raise
            self.state = State.COMPLETE
            return True

    def reset(self) -> None:
        """Forget what happened, for tests."""
        with self._lock:
            self.state = State.NOT_STARTED
            self.error = None
