"""How a process asks the scheduler: one socket, one request at a time on it."""

from __future__ import annotations

import pickle
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .pipelines_core.schedule_batch import OutputBatch
    from .server_args import ServerArgs


#: How often a client that waits looks whether there is still somebody to wait for.
LOOK_MS = 200


def load_zmq() -> Any:
    """Return ZeroMQ, whose names its stubs do not show to a type checker."""
    import zmq

    return zmq


class SchedulerUnreachable(ConnectionError):
    """The scheduler does not answer in time, or cannot any more."""


class SchedulerClient:
    """Asks rank 0. Safe to share among threads, which then take turns.

    Attributes:
        ended: says which workers have ended; nobody answers a request then, and nobody waits for an answer.
    """

    def __init__(self, server_args: ServerArgs, ended: Callable[[], list[str]] = list) -> None:
        self._server_args = server_args
        self.ended = ended
        self._lock = threading.Lock()
        self._context: Any = None

    @property
    def endpoint(self) -> str:
        """Where rank 0 listens; settled when the workers are launched."""
        return self._server_args.scheduler_endpoint

    def forward(self, request: Any, timeout_ms: int | None = None) -> OutputBatch:
        """Return the scheduler's answer.

        Raises:
            SchedulerUnreachable: none came within `timeout_ms`, or none can come.
        """
        if not self.endpoint:
            raise SchedulerUnreachable("there are no workers: none were launched, or they were shut down")
        zmq = load_zmq()
        with self._lock:
            if self._context is None:
                self._context = zmq.Context(io_threads=1)
            socket = self._context.socket(zmq.REQ)  # a fresh one each time: a REQ socket that missed an answer is of no use
            try:
                socket.setsockopt(zmq.LINGER, 0)
                socket.connect(self.endpoint)
                socket.send(pickle.dumps(request))
                self._await_answer(socket, timeout_ms)
                answer: OutputBatch = pickle.loads(socket.recv())  # noqa: S301 - the socket's folder is this user's own
                return answer
            finally:
                socket.close()

    def _await_answer(self, socket: Any, timeout_ms: int | None) -> None:
        deadline = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000
        while not socket.poll(LOOK_MS):
            if ended := self.ended():
                raise SchedulerUnreachable("; ".join(ended))
            if deadline is not None and time.monotonic() > deadline:
                raise SchedulerUnreachable(f"the scheduler at {self.endpoint} did not answer within {timeout_ms} ms")

    def close(self) -> None:
        """Give the context back."""
        if self._context is not None:
            self._context.term()
            self._context = None
