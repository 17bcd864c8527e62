"""Counters around hooks, in memory-mapped files: they survive a process that is killed. Standard library and Python 3.10 only."""

from __future__ import annotations

import functools
import mmap
import os
import struct
import threading
import time
from typing import Any

# A hook's block of the counter file, in 64-bit words: what is written when a call begins, when it ends, and a ring of the last calls.
COUNT, LAST, DONE, OWN, SPENT, LONGEST, FIRST, RAISED, RING = range(9)
EVENT_WORDS = 3  # begin, nanoseconds, thread
EVENTS = 256
BLOCK = RING + EVENTS * EVENT_WORDS
BLOCKS_A_FILE = 32
_BEGIN, _END, _EVENT = struct.Struct("=2Q"), struct.Struct("=6Q"), struct.Struct("=3Q")

clock = time.perf_counter_ns  # one clock for all processes of a Linux machine


class Counters:
    """Memory-mapped blocks of counters. Space is taken on disk beforehand: touching a page can then never fail.

    Raises:
        OSError: there is no space.
    """

    def __init__(self, stem: str) -> None:
        self._stem = stem
        self._used = 0
        self._bytes: Any = None

    def block(self) -> tuple[Any, dict[str, Any]]:
        """Return the next block and where it is: file name and offset in words."""
        index = self._used % BLOCKS_A_FILE
        path = f"{self._stem}.{self._used // BLOCKS_A_FILE}.bin"
        if index == 0:
            self._bytes = self._map(path)
        self._used += 1
        start = index * BLOCK
        return self._bytes[start * 8 : (start + BLOCK) * 8], {"file": os.path.basename(path), "word": start}

    @staticmethod
    def _map(path: str) -> Any:
        size = BLOCK * BLOCKS_A_FILE * 8
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.posix_fallocate(descriptor, 0, size)
            return memoryview(mmap.mmap(descriptor, size))
        except OSError:
            os.unlink(path)
            raise
        finally:
            os.close(descriptor)


class _Inner(threading.local):
    """`spent`: nanoseconds that originals took inside the AROUND hook that runs in this thread."""

    spent = 0


_inner = _Inner()


def counted(hook: Any, kind: str, block: Any) -> Any:
    """Return `hook` with a counter around it. What it takes, returns and raises stays the same.

    Its own cost is what it spends outside the original. Calls in two threads at once may share one count. The call's way is written out
    and not divided into functions: each would cost as much as a counter.
    """
    begun, ended, event, thread = _BEGIN.pack_into, _END.pack_into, _EVENT.pack_into, threading.get_ident
    count = done = own = spent = longest = first = raised = 0

    @functools.wraps(hook)
    def plain(*args: Any, **kwargs: Any) -> Any:
        nonlocal count, done, own, longest, first, raised
        begin = clock()
        first = first or begin
        count += 1
        begun(block, 0, count, begin)  # at the start: a loop that runs for ever has been called too
        good = 0
        try:
            result = hook(*args, **kwargs)
            good = 1
            return result
        finally:
            took = clock() - begin
            own += took
            longest = max(longest, took)
            raised += 1 - good
            event(block, (RING + done % EVENTS * EVENT_WORDS) * 8, begin, took, thread())
            done += 1
            ended(block, DONE * 8, done, own, own, longest, first, raised)

    last = timed = None  # the original and its timed twin: one pair for a patched target

    @functools.wraps(hook)
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal count, done, own, spent, longest, first, raised, last, timed
        if last is not original:
            last, timed = original, _timed(original)
        outer, _inner.spent = _inner.spent, 0
        begin = clock()
        first = first or begin
        count += 1
        begun(block, 0, count, begin)
        good = 0
        try:
            result = hook(timed, *args, **kwargs)
            good = 1
            return result
        finally:
            took = clock() - begin
            mine = max(0, took - _inner.spent)
            _inner.spent = outer
            own += mine
            spent += took
            longest = max(longest, mine)
            raised += 1 - good
            event(block, (RING + done % EVENTS * EVENT_WORDS) * 8, begin, took, thread())
            done += 1
            ended(block, DONE * 8, done, own, spent, longest, first, raised)

    wrapper = around if kind == "around" else plain
    wrapper.__sglang_plug_counter__ = True  # type: ignore[attr-defined]
    return wrapper


def _timed(original: Any) -> Any:
    @functools.wraps(original)
    def timed(*args: Any, **kwargs: Any) -> Any:
        begin = clock()
        try:
            return original(*args, **kwargs)
        finally:
            _inner.spent += clock() - begin

    return timed
