"""The processes of one launch: found by kinship and by a mark in their environment, ended together. Reads /proc; never prints.

Kinship is lost when a process in the middle dies, the mark when somebody runs a program with a fresh environment. Together they find all.
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


def snapshot() -> dict[int, Process]:
    """Return every process of the machine that can be read."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := _read(int(name))) is not None:
            found[process.pid] = process
    return found


def members(root: int, mark: str) -> list[Process]:
    """Return the living processes of a launch: `root`, its descendants, and whoever carries `mark`. Never the caller."""
    everybody = snapshot()
    children: dict[int, list[int]] = {}
    for process in everybody.values():
        children.setdefault(process.parent, []).append(process.pid)
    kin, todo = set(), [root]
    while todo:
        pid = todo.pop()
        if pid not in kin:
            kin.add(pid)
            todo += children.get(pid, [])
    kin |= {pid for pid in everybody if pid not in kin and _carries(pid, mark)}
    return [p for pid in sorted(kin - {os.getpid()}) if (p := everybody.get(pid)) is not None and p.state not in "ZX"]


def is_alive(process: Process) -> bool:
    """Tell whether a process that was seen before still runs; another one that has got its number does not count."""
    now = _read(process.pid)
    return now is not None and now.state not in "ZX" and now.parent == process.parent


def end(root: int, mark: str, *, grace: float) -> list[Process]:
    """End a launch's processes: SIGTERM, `grace` seconds, SIGKILL until none is left. Return those that had to be killed."""
    for process in members(root, mark):
        send(process.pid, signal.SIGTERM)
    left = _wait_for_none(root, mark, grace)
    killed = left
    deadline = time.monotonic() + 5
    while left and time.monotonic() < deadline:
        for process in left:
            send(process.pid, signal.SIGKILL)
        left = _wait_for_none(root, mark, 0.2)
    return killed


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


def _wait_for_none(root: int, mark: str, seconds: float) -> list[Process]:
    deadline = time.monotonic() + seconds
    while (left := members(root, mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


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
    return Process(pid, int(fields[1]), fields[0], title)


def _carries(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            return f"{MARK}={mark}".encode() in environ.read().split(b"\0")
    except OSError:
        return False  # gone, or somebody else's
