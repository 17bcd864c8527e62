"""The processes of one launch: found by kinship, by a mark in their environment, and remembered; ended together. Reads /proc; never prints.

Kinship is lost when a process in the middle dies; the mark when a program is run with a fresh environment, or renames itself (setproctitle
writes its title over the environment). Who was seen once is therefore remembered, with the time of its start: numbers are used again.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass

MARK = "SGLANG_PLUG_LAUNCH"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Process:
    """One process as /proc shows it; `title` is what it calls itself, e.g. `sglang::scheduler_TP0`."""

    pid: int
    parent: int
    state: str
    title: str
    started: int = 0


def snapshot() -> dict[int, Process]:
    """Return every process of the machine that can be read."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := _read(int(name))) is not None:
            found[process.pid] = process
    return found


class Family:
    """The processes of a launch.

    Args:
        root: the first of them.
        mark: the value of `MARK` in their environment.
        known: pid -> start time of others that were seen before.
    """

    def __init__(self, root: int, mark: str, known: dict[int, int] | None = None) -> None:
        self._mark = mark
        self.known: dict[int, int] = dict(known or {})
        process = _read(root)
        if process is not None:
            self.known.setdefault(root, process.started)

    def look(self) -> list[Process]:
        """Return those that live now, and remember them. Never the caller."""
        everybody = snapshot()
        children: dict[int, list[int]] = {}
        for process in everybody.values():
            children.setdefault(process.parent, []).append(process.pid)
        todo = [pid for pid, started in self.known.items() if (seen := everybody.get(pid)) is not None and seen.started == started]
        todo += [pid for pid in everybody if pid not in self.known and _carries(pid, self._mark)]
        found: set[int] = set()
        while todo:
            pid = todo.pop()
            if pid not in found:
                found.add(pid)
                todo += children.get(pid, [])
        alive = [process for pid in sorted(found - {os.getpid()}) if (process := everybody[pid]).state not in "ZX"]
        self.known.update({process.pid: process.started for process in alive})
        return alive

    def end(self, *, grace: float) -> list[Process]:
        """End them all: SIGTERM, `grace` seconds, SIGKILL until none is left. Return those that had to be killed."""
        for process in self.look():
            send(process.pid, signal.SIGTERM)
        killed = left = self._wait_for_none(grace)
        deadline = time.monotonic() + 5
        while left and time.monotonic() < deadline:
            for process in left:
                send(process.pid, signal.SIGKILL)
            left = self._wait_for_none(0.2)
        return killed

    def _wait_for_none(self, seconds: float) -> list[Process]:
        deadline = time.monotonic() + seconds
        while (left := self.look()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return left


def is_alive(process: Process) -> bool:
    """Tell whether a process that was seen before still runs; another one that has got its number does not count."""
    now = _read(process.pid)
    return now is not None and now.state not in "ZX" and now.started == process.started


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies, so that kinship is not lost."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel end this process when the thread that started it ends. Safe between fork and exec."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


_LIBC = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    _LIBC.prctl(option, value, 0, 0, 0)


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            head, _, tail = stat.read().rpartition(")")
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            words = line.read().split(b"\0")
    except OSError:
        return None  # it ended while we looked
    fields = tail.split()
    title = words[0].decode(errors="replace").strip() or head.partition("(")[2]
    return Process(pid, int(fields[1]), fields[0], title, int(fields[19]))


def _carries(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return f"{MARK}={mark}".encode() in environ.read().split(b"\0")
    except OSError:
        return False  # gone, or somebody else's
