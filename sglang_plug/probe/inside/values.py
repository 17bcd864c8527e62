"""What a platform answers on the way to the first token: its few cheap value methods, asked in a fork of the fork. Facts only."""

from __future__ import annotations

import contextlib
import inspect
import json
import numbers
import os
import select
import signal
import sys
import time
from typing import Any

from . import effects, source
from .failures import facts_of, safe_repr, short_type

#: What each runtime calls early: method -> its arguments there.
ASKED: dict[str, dict[str, tuple[Any, ...]]] = {
    "srt": {
        "get_device": (None,),
        "get_device_total_memory": (),
        "get_torch_distributed_backend_str": (),
        "get_compile_backend": (),
        "get_default_attention_backend": (),
    },
    "diffusion": {"get_device_total_memory": (), "get_available_gpu_memory": (), "get_attn_backend_cls_str": (None, 128, "bfloat16")},
}
#: A method that names a class, and the arguments that other layers ask it with: only where every answer is bad is one reported.
NAMES_CLASS = {"get_attn_backend_cls_str": ((None, 64, "bfloat16"), (None, 64, "float32"))}
HANGS = "hangs"
PATIENCE = 6.0  # the import of torch, which a method may need, takes half of it


def ask(instance: Any, runtime: str, own: dict[str, Any], timeout: float) -> dict[str, Any]:
    """Return what the plugin's own methods answer, by name; nothing of what cannot be told.

    An answer is {"type", "text", "is_text", "number"}, {"error"}, or {"ended"}: `hangs`, or how the method ended its process, in words.
    A method that hangs or crashes, or that initialises the device, does so in a process that ends here. Nothing is asked where the
    device is initialised already, which a fork must not touch, or where there are no forks.

    Args:
        instance: the platform.
        runtime: whose questions.
        own: the plugin's own members.
        timeout: seconds that the whole trial may take; half of them are for these questions.
    """
    wanted = {name: arguments for name, arguments in ASKED[runtime].items() if name in own}
    answers: dict[str, Any] = {}
    until = time.monotonic() + min(PATIENCE, timeout / 2)
    while wanted and not effects.devices() and hasattr(os, "fork"):
        found, last = _ask_some(instance, wanted, until)
        answers.update({name: answer for name, answer in found.items() if answer is not None})
        if last is None:
            break
        answers[last[0]] = {"ended": last[1]}
        if last[1] == HANGS:
            break
        wanted = {name: wanted[name] for name in wanted if name not in found and name != last[0]}
    return answers


def _ask_some(instance: Any, wanted: dict[str, tuple[Any, ...]], until: float) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """Ask in a fork; return the answers, and which method never answered, with what became of it."""
    try:
        reader, writer = os.pipe()
        child = os.fork()
    except OSError:
        return {}, None
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(reader)
            for name, arguments in wanted.items():
                os.write(writer, json.dumps([name, _answer(instance, name, arguments)]).encode() + b"\n")
        os._exit(0)
    os.close(writer)
    try:
        lines = _read(reader, until).split(b"\n")[:-1]
    finally:
        os.close(reader)
        hanging = time.monotonic() >= until
        status = _bury(child, at_once=hanging)
    try:
        found = dict(json.loads(line) for line in lines)
    except ValueError:
        return {}, None
    left = next((name for name in wanted if name not in found), None)
    return found, None if left is None else (left, HANGS if hanging else _ending(status))


def _bury(child: int, *, at_once: bool) -> int:
    """Wait for a child that has closed its pipe, and end one that goes on all the same; return its wait status."""
    for _ in range(0 if at_once else 50):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"crashes the interpreter ({signal.Signals(-code).name})" if code < 0 else f"ends the process (exit status {code})"


def _read(reader: int, until: float) -> bytes:
    """Everything that the child writes before its end or the deadline."""
    found = b""
    while (left := until - time.monotonic()) > 0 and select.select([reader], [], [], left)[0]:
        part = os.read(reader, 1 << 16)
        if not part:
            break
        found += part
    return found


def _answer(instance: Any, name: str, arguments: tuple[Any, ...]) -> dict[str, Any] | None:
    """Return what one method answers; None where that cannot be told, or where other facts tell it."""
    if name not in NAMES_CLASS:
        return _call(instance, name, arguments)
    for asked in (arguments, *NAMES_CLASS[name]):
        torch = sys.modules.get("torch")
        answer = _call(instance, name, (*asked[:-1], getattr(torch, asked[-1], asked[-1])))
        if answer is None or "error" in answer:
            return None  # it may be right to refuse these arguments, or want a device that is not here
        answer["found"] = source.locate({"qualname": answer["whole"]}) if answer["whole"] else None
        if answer["found"] is not None and answer["found"]["verdict"] not in source.NOWHERE:
            break
    return answer


def _call(instance: Any, name: str, arguments: tuple[Any, ...]) -> dict[str, Any] | None:
    """Call one method; None where it cannot be called so."""
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
    is_text = isinstance(value, str)
    whole = str.__str__(value)[:400] if is_text else ""
    if name == "get_torch_distributed_backend_str" and is_text:
        return {"type": "str", "text": safe_repr(value)[:80], "is_text": True, "whole": whole, "number": None, "known": _collectives()}
    return {"type": short_type(type(value)), "text": safe_repr(value)[:80], "is_text": is_text, "whole": whole, "number": number}


def _collectives() -> list[str]:
    """Return the collective backends that torch knows here; nothing where it is not loaded."""
    backend = getattr(getattr(sys.modules.get("torch"), "distributed", None), "Backend", None)
    return [str(name) for name in getattr(backend, "backend_list", ())]
