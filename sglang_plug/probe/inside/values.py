"""What a platform answers on the way to the first token: its few cheap value methods, asked in a fork of the fork. Facts only."""

from __future__ import annotations

import contextlib
import inspect
import json
import numbers
import os
import select
import signal
import time
from typing import Any

from . import effects
from .failures import facts_of, safe_repr, short_type

#: What each runtime calls early: method -> its arguments there.
ASKED: dict[str, dict[str, tuple[Any, ...]]] = {
    "srt": {
        "get_device": (None,),
        "get_device_total_memory": (),
        "get_torch_distributed_backend_str": (),
        "get_compile_backend": (),
    },
    "diffusion": {"get_device_total_memory": (), "get_available_gpu_memory": ()},
}
PATIENCE = 2.0


def ask(instance: Any, runtime: str, own: dict[str, Any]) -> dict[str, Any]:
    """Return {method: {"type", "text", "is_text", "number"} or {"error"}} of the plugin's own methods; nothing of what cannot be told.

    A method that hangs or crashes, or that initialises the device, does so in a process that ends here. Nothing is asked where the
    device is initialised already, which a fork must not touch, or where there are no forks.
    """
    wanted = {name: arguments for name, arguments in ASKED[runtime].items() if name in own}
    if not wanted or effects.devices() or not hasattr(os, "fork"):
        return {}
    try:
        reader, writer = os.pipe()
        child = os.fork()
    except OSError:
        return {}
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(reader)
            for name, arguments in wanted.items():
                answer = _answer(instance, name, arguments)
                if answer is not None:
                    os.write(writer, json.dumps([name, answer]).encode() + b"\n")
        os._exit(0)
    os.close(writer)
    try:
        lines = _read(reader).split(b"\n")[:-1]
    finally:
        os.close(reader)
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(child, 0)
    try:
        return dict(json.loads(line) for line in lines)
    except ValueError:
        return {}


def _read(reader: int) -> bytes:
    """Everything that the child writes before its end or the deadline."""
    found, until = b"", time.monotonic() + PATIENCE
    while (left := until - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            break
        found += part
    return found


def _answer(instance: Any, name: str, arguments: tuple[Any, ...]) -> dict[str, Any] | None:
    """Call one method; None where it cannot be called so, which other facts tell."""
    try:
        method = getattr(instance, name)
        inspect.signature(method).bind(*arguments)
    except Exception:
        return None
    try:
        value = method(*arguments)
    except NotImplementedError:
        return None
    except Exception as exc:
        return {"error": facts_of(exc)}
    if inspect.isawaitable(value):
        return None
    number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else None
    return {"type": short_type(type(value)), "text": safe_repr(value)[:80], "is_text": isinstance(value, str), "number": number}
