"""Several strangers' calls side by side: a few lanes, each a fork that takes the next task and runs it in isolation. Owns their number."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from typing import TYPE_CHECKING, Any

from . import isolation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Task = Callable[[], Any]


MOST = 256  # tasks at a time: the queue holds a byte for each


def run_all(tasks: Sequence[Task], *, timeout: float, memory: int | None, jobs: int) -> list[dict[str, Any]]:
    """Run each task isolated, at most `jobs` at a time, and return their replies in the order of the tasks.

    A task that kills its lane, and so the process above it, gets a reply that says so; the others go on.
    """
    if len(tasks) > MOST:
        halves = tasks[:MOST], tasks[MOST:]
        return [reply for part in halves for reply in run_all(part, timeout=timeout, memory=memory, jobs=jobs)]
    with tempfile.TemporaryDirectory(prefix="sglang-plug-") as folder:
        queue_read, queue_write = os.pipe()
        os.write(queue_write, bytes(range(len(tasks))))
        os.close(queue_write)
        before = 0
        while before != (left := sum(not os.path.exists(os.path.join(folder, f"{index}.begun")) for index in range(len(tasks)))):
            before, lanes = left, []
            for _ in range(min(max(1, jobs), left)):
                pid = os.fork()
                if pid == 0:
                    _drive(tasks, queue_read, folder, timeout, memory)
                lanes.append(pid)
            for pid in lanes:
                os.waitpid(pid, 0)
        os.close(queue_read)
        return [_read(folder, index) for index in range(len(tasks))]


def _drive(tasks: Sequence[Task], queue: int, folder: str, timeout: float, memory: int | None) -> None:
    """Take tasks until the queue is empty, then end. Runs in the lane; never returns."""
    status = 1
    try:
        isolation.prctl(isolation.PR_SET_PDEATHSIG, signal.SIGKILL)
        isolation.adopt_orphans()
        while token := os.read(queue, 1):
            path = os.path.join(folder, str(token[0]))
            open(path + ".begun", "wb").close()
            reply = isolation.isolated(tasks[token[0]], timeout, memory)
            with open(path + ".part", "w", encoding="ascii") as file:
                json.dump(reply, file, default=repr)
            os.replace(path + ".part", path)
        status = 0
    finally:
        os._exit(status)


def _read(folder: str, index: int) -> dict[str, Any]:
    try:
        with open(os.path.join(folder, str(index)), encoding="ascii") as file:
            reply: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return isolation.lost()
    return reply
