"""The tool's end of the probe: starts a child in the inspected interpreter, asks it, explains how it ended. Runs no stranger's code."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from sglang_plug.errors import ProbeError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from sglang_plug.probe.environment import Environment

CHILD = str(Path(__file__).with_name("child.py"))
START_LIMIT = 30.0  # an interpreter with slow start-up files still answers its first request within this
MARGIN = 10.0  # what a request may take beyond the limits of the forks in it
TAIL = 4000
LONGEST_LINE = 64 << 20


@dataclass(frozen=True)
class Reply:
    """A child's answer to one request.

    Attributes:
        value: the answer, None when there is none.
        ended: `ok`, or how the child itself ended instead of answering: `exit N`, `signal NAME`, `timeout`.
        stderr: the end of what the child's interpreter wrote to stderr (forks have their own output in `value`).
        seconds: how long it took.
    """

    value: Any
    ended: str = "ok"
    stderr: str = ""
    seconds: float = 0.0
    stack: tuple[Mapping[str, Any], ...] = field(default=())


class Probe:
    """One child of an environment, asked any number of times. A context manager: the child and all it left behind are ended at exit.

    Args:
        environment: where to look.

    Raises:
        ProbeError: the interpreter cannot be started.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._channel, far = socket.socketpair()
        self._errors = _scratch_file()
        self._buffer = b""
        self._ended: str | None = None
        self._sent: Mapping[str, Any] | None = None
        command = [environment.python, "-X", "faulthandler", CHILD, str(far.fileno()), environment.launch]
        try:
            self._process = subprocess.Popen(
                command,
                env=dict(environment.env),
                cwd=environment.cwd,
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                pass_fds=(far.fileno(),),
                start_new_session=True,
            )
        except OSError as exc:
            self._channel.close()
            self._errors.close()
            raise ProbeError(
                "the interpreter cannot be started",
                subject=environment.python,
                cause=str(exc),
                hint="check --python and the working directory",
            ) from exc
        finally:
            far.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ask(self, request: Mapping[str, Any], *, timeout: float = START_LIMIT) -> Reply:
        """Send one request and wait for its answer; a child that ends or stays silent is an answer too.

        Raises:
            ProbeError: the child answered, but with a failure of the probe's own.
        """
        started = time.monotonic()
        if self._sent != request:
            self.send(request)
        self._sent = None
        line = None if self._ended is not None else self._read_line(started + timeout)
        seconds = time.monotonic() - started
        if line is None:
            return Reply(None, ended=self._ended or "lost", stderr=self._tail(), seconds=seconds)
        answer = _decode(line, self.environment.python)
        if not answer["ok"]:
            raise ProbeError(
                f"the probe failed at `{request.get('op')}`",
                subject=self.environment.python,
                cause=str(answer["error"]),
                hint="this is a defect of sglang-plug; please report it",
            )
        return Reply(answer["reply"], seconds=seconds)

    def send(self, request: Mapping[str, Any]) -> None:
        """Send a request whose answer the next `ask` of the same request waits for."""
        if self._ended is None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._channel.sendall(json.dumps(request).encode("ascii") + b"\n")
        self._sent = request

    def require(self, request: Mapping[str, Any], *, timeout: float = START_LIMIT) -> Any:
        """Ask, and return the value alone.

        Raises:
            ProbeError: the child did not answer.
        """
        reply = self.ask(request, timeout=timeout)
        if reply.ended != "ok":
            raise ProbeError(
                f"the interpreter ended ({reply.ended}) before it could be inspected",
                subject=self.environment.python,
                cause=reply.stderr.strip() or "it wrote nothing to stderr",
                hint=f"see that it is Python 3.10 or newer, and that `{self.environment.python} -c pass` works (.pth files run then)",
            )
        return reply.value

    def close(self) -> None:
        """End the child; it ends what plugins left behind. Safe to call twice."""
        self._channel.close()
        if self._process.poll() is None:
            try:
                self._process.wait(timeout=2.0)  # it sees the closed socket
            except subprocess.TimeoutExpired:
                self._end()
        self._errors.close()

    def _read_line(self, deadline: float) -> bytes | None:
        self._channel.setblocking(False)
        poller = select.poll()
        poller.register(self._channel, select.POLLIN)
        try:
            while b"\n" not in self._buffer:
                left = deadline - time.monotonic()
                if left <= 0:
                    self._end()
                    self._ended = "timeout"
                    return None
                if not poller.poll(left * 1000):
                    continue
                data = self._receive()
                if not data:
                    self._ended = self._how_it_ended()
                    return None
                self._buffer += data
                if len(self._buffer) > LONGEST_LINE:
                    self._end()
                    self._ended = "flood"
                    return None
        finally:
            self._channel.setblocking(True)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _receive(self) -> bytes:
        try:
            return self._channel.recv(1 << 20)
        except ConnectionResetError:
            return b""

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self._end()
            return "closed its socket"
        return f"signal {_signal_name(-code)}" if code < 0 else f"exit {code}"

    def _end(self) -> None:
        """Ask the child to end its forks, then kill its whole session."""
        self._process.terminate()
        try:
            self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGABRT)  # faulthandler writes the stack
            time.sleep(0.05)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _tail(self) -> str:
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - TAIL))
        return self._errors.read().decode("utf-8", "replace")


def _scratch_file() -> IO[bytes]:
    """Return an unnamed file, closed by the caller."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("sglang-plug-stderr"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def ask(environment: Environment, request: Mapping[str, Any], *, timeout: float = START_LIMIT, memory: int | None = None) -> Reply:
    """Start a child, ask it once, end it.

    Args:
        environment: where to look.
        request: `{"op": …}`; see the operations in `inside/service.py`.
        timeout: the limit of each fork that runs a stranger's code.
        memory: bytes of data that such a fork may allocate.

    Raises:
        ProbeError: the interpreter cannot be started, or the probe itself failed.
    """
    forks = max(1, len(request.get("candidates", ())))
    with Probe(environment) as probe:
        return probe.ask({**request, "timeout": timeout, "memory": memory}, timeout=START_LIMIT + forks * (timeout + MARGIN))


def _decode(line: bytes, subject: str) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError as exc:
        raise ProbeError("the child spoke nonsense", subject=subject, cause=f"{exc}: {line[:200]!r}") from exc
    if not isinstance(answer, dict) or "ok" not in answer:
        raise ProbeError("the child spoke nonsense", subject=subject, cause=repr(line[:200]))
    return answer


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
