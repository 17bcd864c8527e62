"""One plugin on trial in a fork of its own: phases in order, each timed, with its failure and its side effects. Owns the fork's streams."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import resource
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from . import effects, failures

if TYPE_CHECKING:
    from collections.abc import Callable

HEAD = 4 << 10
HIGH = 180  # above the descriptors that a plugin closes or counts upon
#: A file that a stranger writes, its output included, ends here: an endless flood must not fill the disk.
FILE_LIMIT = 512 << 20


class Note:
    """The name of the phase that a process is in, readable after its death: a shared map, made before it starts."""

    def __init__(self, shared: mmap.mmap | None = None) -> None:
        self._map = shared if shared is not None else mmap.mmap(-1, 64)

    def write(self, phase: str) -> None:
        """Remember `phase`."""
        self._map[:64] = phase.encode()[:64].ljust(64, b"\0")

    def read(self) -> str | None:
        """Return the last phase, or None before the first."""
        return bytes(self._map[:64]).rstrip(b"\0").decode("utf-8", "replace") or None


class Subject:
    """What runs inside the fork. `report` is its answer: {"phases": {name: {"seconds", "error", "effects"}}, …}."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.report: dict[str, Any] = {"phases": {}}
        self._streams = [_redirect(1), _redirect(2)]
        _limit_files()
        self._setters = effects.Setters()
        self._before = effects.snapshot()

    def phase(self, name: str, action: Callable[[], Any]) -> tuple[bool, Any]:
        """Run one phase and record it; return (went well, its value)."""
        self.note.write(name)
        record: dict[str, Any] = {}
        value: Any = None
        started = time.perf_counter()
        try:
            value = action()
        except BaseException as exc:
            sys.settrace(None)  # a stranger's would run in all that follows
            record["error"] = failures.facts_of(exc)
        tracers = [sys.gettrace(), sys.getprofile()]
        sys.settrace(None)
        sys.setprofile(None)
        record["seconds"] = time.perf_counter() - started
        after = effects.snapshot()
        record["effects"] = effects.difference(self._before, after)
        if any(tracers):
            record["effects"]["tracer"] = True
        self._before = after
        self.report["phases"][name] = record
        return "error" not in record, value

    def finish(self) -> dict[str, Any]:
        """Return the report, with the head of what was printed."""
        effects.flush()
        self.report["environ_by"] = self._setters.owners(self.report.get("module_file"))
        self.report["printed"] = [_head(stream) for stream in self._streams]
        return self.report


def _redirect(descriptor: int) -> int:
    """Point a stream at a file of its own, whose size tells how much was written; return a high descriptor of that file."""
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), descriptor)
        return fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, HIGH)


def _limit_files() -> None:
    for kind, limit in ((resource.RLIMIT_FSIZE, FILE_LIMIT), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        with contextlib.suppress(ValueError, OSError):  # a stricter limit stands already
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _head(descriptor: int) -> str:
    try:
        return os.pread(descriptor, HEAD, 0).decode("utf-8", "replace")
    except OSError:  # the plugin closed every descriptor it found
        return ""


def load(value: str) -> Any:
    """Load an entry point's value by this interpreter's own rules.

    Raises:
        BaseException: whatever the stranger's module raises.
    """
    from importlib.metadata import EntryPoint

    return EntryPoint(name="rehearsed", value=value, group="rehearsed").load()


def refresh_streams() -> None:
    """Drop what the fork inherited in Python's buffers, so that it is not written twice."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # replaced or closed by SGLang's own start-up
            stream.flush()
