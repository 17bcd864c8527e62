"""Starts the stand-in's server in its own process, waits until it says that it is ready, and ends it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

_READY = re.compile(r"ready: (http://\S+)")


class Server:
    """A running server. Attributes: url; log: what it has written so far.

    Raises:
        RuntimeError: it ended before it was ready; the log is the message.
    """

    def __init__(self, *arguments: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        command = [sys.executable, "-m", "sglang_plug.standin", "serve", "--model-path", "tiny", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=cwd,
            env={**os.environ, "SGLANG_USE_CPU_ENGINE": "1"} if env is None else env,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(90):
            self.process.kill()
        found = _READY.search(self.log)
        if found is None:
            self.wait()
            self._close()
            raise RuntimeError(self.log)
        self.url = found[1]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if _READY.search(line):
                self._ready.set()
        self._ready.set()

    @property
    def log(self) -> str:
        return "".join(self.lines)

    @property
    def children(self) -> dict[int, str]:
        """The engine's processes: id -> command line."""
        found = {}
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
                with open(f"/proc/{name}/cmdline") as file:
                    command = file.read().replace("\0", " ")
            except (OSError, ValueError):
                continue
            if parent == self.process.pid:
                found[int(name)] = command
        return found

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit status."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        self._reader.join(10)
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.end()
        self._close()

    def _close(self) -> None:
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()


def alive(pids: set[int]) -> set[int]:
    """Return those that still run; a zombie does not."""
    left = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] != "Z":
                    left.add(pid)
        except OSError:
            continue
    return left
