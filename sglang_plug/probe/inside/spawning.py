"""One call of a stranger's code in an interpreter of its own, for where no fork is possible: same limits, same reply as in a fork.

    child.py subject FOLDER      the interpreter that is given up for the call
    child.py supervise FOLDER    the one that watches it, ends what it leaves behind, and writes the reply: several run side by side

Request and answers lie in a folder: `order`, `room` (the answer, and when the subject began), `note` (how far it came), `stack`, `reply`.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import signal
import struct
import sys
import time

from . import forking, isolation

TYPE_CHECKING = False  # typing costs more to import than all of this file
if TYPE_CHECKING:
    import subprocess
    import tempfile
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    Facts = dict[str, Any]

NOTE = 64
BEGUN = struct.Struct("=d")  # behind the answer: the monotonic clock when the subject began, 0 before
PACE = 0.02  # seconds between two looks at the supervisors
START_LIMIT = 60.0  # until an interpreter without SGLang begins


class Setting:
    """What an interpreter of its own starts with: taken before strangers' code could change it."""

    def __init__(self) -> None:
        self.facts: Facts = {"env": dict(os.environ), "cwd": os.getcwd(), "path": list(sys.path)}

    def order(self, call: str, argument: Any, *, timeout: float, memory: int | None, start_limit: float = START_LIMIT) -> Facts:
        """Return the order to call `module:function` of this folder as `function(argument, door)`.

        Args:
            call: the function; it ends by `door.perform`.
            argument: a JSON value.
            timeout: seconds for what `door.perform` is given.
            memory: bytes that it may hold on top of what the process holds when it begins.
            start_limit: seconds until it begins.
        """
        limits = {"timeout": timeout, "memory": memory, "start_limit": start_limit}
        return {**self.facts, "call": call, "argument": argument, **limits}


class Door:
    """The subject's way out: the call is given what to perform, and the process ends with it."""

    def __init__(self, folder: str, order: Facts) -> None:
        self.order = order
        self._room = _mapped(folder, "room")
        self._note = _mapped(folder, "note")
        self._dump = open(os.path.join(folder, "stack"), "r+b")  # noqa: SIM115 - open until the process ends
        self._output = os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):  # what SGLang's import prints is not the plugin's
            os.dup2(null, descriptor)
        os.close(null)

    def perform(self, task: Callable[[mmap.mmap], Any]) -> NoReturn:
        """Run `task(note)` within the order's limits, write its answer and end."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        isolation.point_streams(self._output)
        memory = self.order["memory"]
        limit = None if memory is None else int(memory) + isolation.data_size()
        BEGUN.pack_into(self._room, isolation.ROOM, time.monotonic())
        isolation.perform(lambda: task(self._note), self._room, self._dump, (self.order["timeout"], limit))


def main(role: str, folder: str) -> None:
    """Be the subject or the supervisor of a folder."""
    isolation.prctl(isolation.PR_SET_PDEATHSIG, signal.SIGKILL)
    with open(os.path.join(folder, "order"), encoding="ascii") as file:
        order = json.load(file)
    if role == "supervise":
        isolation.adopt_orphans()
        _write(folder, "reply", _watch(folder, order))
        return
    sys.path[:] = order["path"]
    module, name = order["call"].split(":")
    getattr(importlib.import_module("." + module, __package__), name)(order["argument"], Door(folder, order))


def called(call: str, argument: Any, timeout: float, memory: int | None = None, *, asked: str = "auto") -> Facts:
    """Call `module:function` of this folder as `function(argument, door)` in a fork, or where that cannot be in an interpreter of its own.

    Returns:
        The reply of `isolation.isolated`, and `note`.
    """
    if forking.absent(asked) is not None:
        import tempfile  # dear to import: only where it is needed

        with tempfile.TemporaryDirectory(prefix="sglang-plug-") as folder:
            _lay(folder, Setting().order(call, argument, timeout=timeout, memory=memory))
            return _watch(folder, json.loads(_read(folder, "order")))
    module, name = call.split(":")
    function = getattr(importlib.import_module("." + module, __package__), name)
    note = mmap.mmap(-1, NOTE)
    reply: Facts = isolation.isolated(lambda: function(argument, Fork(note)), timeout, memory)
    return {**reply, "note": _text(note)}


class Fork:
    """A door where the process is a fork already."""

    def __init__(self, note: mmap.mmap) -> None:
        self._note = note

    def perform(self, task: Callable[[mmap.mmap], Any]) -> Any:
        """Return what `task(note)` returns."""
        return task(self._note)


def run_all(orders: Sequence[Facts], jobs: int) -> list[Facts]:
    """Carry out each order under a supervisor of its own, at most `jobs` at a time; return the replies in the orders' order."""
    import subprocess
    import tempfile

    waiting = list(enumerate(orders))
    running: dict[int, tuple[subprocess.Popen[bytes], tempfile.TemporaryDirectory[str]]] = {}
    replies: dict[int, Facts] = {}
    while waiting or running:
        while waiting and len(running) < max(1, jobs):
            index, order = waiting.pop(0)
            folder = tempfile.TemporaryDirectory(prefix="sglang-plug-")
            _lay(folder.name, order)
            running[index] = _start("supervise", folder.name, order, subprocess.DEVNULL), folder
        time.sleep(PACE)
        for index, (process, folder) in list(running.items()):
            if process.poll() is not None:
                replies[index] = _reply(folder.name)
                folder.cleanup()
                del running[index]
    return [replies[index] for index in range(len(orders))]


def _watch(folder: str, order: Facts) -> Facts:
    """Start the subject, drain and time it, and return the reply."""
    room, note = _mapped(folder, "room"), _mapped(folder, "note")
    dump = open(os.path.join(folder, "stack"), "r+b")  # noqa: SIM115 - `conclude` closes it
    read, write = os.pipe()
    timeout: float = order["timeout"]
    latest: float = time.monotonic() + order["start_limit"]

    def begun() -> float:
        moment: float = BEGUN.unpack_from(room, isolation.ROOM)[0]
        return moment

    def deadline() -> float:
        return begun() + timeout + isolation.GRACE if begun() else latest

    try:
        process = _start("subject", folder, order, write)
        os.close(write)
        status, timed_out, output = isolation.supervise(process.pid, read, deadline)
    finally:
        os.close(read)
    process.returncode = os.waitstatus_to_exitcode(status)  # buried already
    started = begun()
    seconds = time.monotonic() - started if started else 0.0
    facts = isolation.conclude(process.pid, status, room, dump, timeout if timed_out else None)
    if not started and facts["ended"]["kind"] != "signal":
        facts["ended"] = {"kind": "lost"}  # SGLang's own import ended it: the interpreter that imports nothing else says why
    return {**facts, "output": output, "seconds": seconds, "note": _text(note)}


def _start(role: str, folder: str, order: Facts, output: int) -> subprocess.Popen[bytes]:
    import subprocess

    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", isolation.CHILD, role, folder],
        env=order["env"],
        cwd=order["cwd"],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def _lay(folder: str, order: Facts) -> None:
    _write(folder, "order", order)
    for name, size in (("room", isolation.ROOM + BEGUN.size), ("note", NOTE), ("stack", 0)):
        with open(os.path.join(folder, name), "wb") as file:
            file.truncate(size)


def _write(folder: str, name: str, value: Facts) -> None:
    path = os.path.join(folder, name)
    with open(path + ".part", "w", encoding="ascii") as file:
        json.dump(value, file, default=repr)
    os.replace(path + ".part", path)


def _read(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="ascii") as file:
        return file.read()


def _reply(folder: str) -> Facts:
    try:
        reply: Facts = json.loads(_read(folder, "reply"))
    except FileNotFoundError:  # the supervisor was killed from outside
        return {**isolation.lost(), "note": _text(_mapped(folder, "note"))}
    return reply


def _mapped(folder: str, name: str) -> mmap.mmap:
    with open(os.path.join(folder, name), "r+b") as file:
        return mmap.mmap(file.fileno(), 0)


def _text(note: mmap.mmap) -> str:
    return bytes(note[:NOTE]).rstrip(b"\0").decode("utf-8", "replace")
