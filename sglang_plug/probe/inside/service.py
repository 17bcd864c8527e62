"""The loop of the child: one JSON request a line, one JSON reply a line. Owns the socket and the table of operations."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import sys
import time

from . import isolation

TYPE_CHECKING = False  # typing costs more to import than all of this file
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any


LINE = b"\n"
HIGH = 128  # above the descriptors that a plugin closes or counts upon
OPERATIONS = {
    "environment": "metadata:environment",
    "activate": "activation:activate",
    "host": "activation:in_host",
    "hardware": "hardware:examine",
    "locate": "source:locate",
    "call": "activation:call_file",
}


def serve(fd: int, launch: str) -> None:
    """Answer requests on `fd` until it is closed; `launch` (`script` or `module`) says what stands first on sys.path."""
    channel = _raise_descriptor(fd)
    isolation.adopt_orphans()
    isolation.WATCHED.append(channel)
    signal.signal(signal.SIGTERM, _leave)
    _place_launch_folder(launch)
    buffer = b""
    while True:
        data = os.read(channel, 1 << 16)
        if not data:
            break
        buffer += data
        while LINE in buffer:
            line, buffer = buffer.split(LINE, 1)
            _send(channel, _encode(_answer(json.loads(line))) + LINE)
    isolation.end_descendants()


def _send(channel: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(channel, view) :]


def _leave(signum: int, frame: FrameType | None) -> None:
    isolation.end_descendants()
    os._exit(128 + signum)


def _raise_descriptor(fd: int) -> int:
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH)
    os.close(fd)
    return high


def _place_launch_folder(launch: str) -> None:
    """Put first on sys.path what the launch puts there: the console script's folder, or the working directory (`python -m`, `-c`)."""
    if getattr(sys.flags, "safe_path", False):
        return
    sys.path.insert(0, os.getcwd() if launch == "module" else os.path.dirname(sys.executable))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        module, name = OPERATIONS[request["op"]].split(":")
        operation = getattr(importlib.import_module("." + module, __package__), name)
        reply = {"ok": True, "reply": operation(request)}
    except Exception:
        import traceback

        reply = {"ok": False, "error": traceback.format_exc()}
    reply["seconds"] = time.perf_counter() - started
    return reply


def _encode(value: object) -> bytes:
    return json.dumps(value, default=repr).encode("ascii")  # escapes only: no text of a stranger can break a line
