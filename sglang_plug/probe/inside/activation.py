"""Load and call a plugin's callback in a fork, and report what came of it. Never imports sglang: one that does needs the host's order."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import re
import sys
import time

from . import spawning

TYPE_CHECKING = False  # typing costs more to import than all of this file
if TYPE_CHECKING:
    import mmap
    from types import FrameType
    from typing import Any


RUNTIME = "sglang"
LONG = 4000
VALUE = re.compile(r"(?P<module>[\w.]+)\s*(:\s*(?P<attr>[\w.]+)\s*)?((?P<extras>\[.*\])\s*)?$")


def activate(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Activate each candidate of the request, each in its own fork; return the replies in the same order.

    Args:
        request: {"candidates": [{"name", "value", …}], "timeout": seconds, "memory": bytes | None}.

    Returns:
        A list of {"kind", "stage", "returned", "type", "error", "seconds", "ended", "output", "leftovers", "changed"}, where `kind` is
        `returned` (a text), `none`, `raised`, `wrong_type`, `ended` (the process did) or `needs_host` (it imports sglang), and `changed`
        names what SGLang reads afterwards and finds otherwise than before.
    """
    return [_one(candidate, request.get("timeout", 20.0), request.get("memory")) for candidate in request["candidates"]]


def _one(candidate: dict[str, Any], timeout: float, memory: int | None) -> dict[str, Any]:
    result = spawning.called("activation:enter", candidate["value"], timeout, memory)
    calling = result.pop("note")  # readable after the process's death: was it still loading, or in the call?
    answer = result.pop("value")
    if answer is None:
        answer = {"kind": "ended", "stage": "call" if calling else "load", "returned": None, "type": None, "error": None, "at": None}
    return {**answer, **result, "wall": result["seconds"], "seconds": answer.get("seconds", result["seconds"])}


def enter(value: str, door: Any) -> Any:
    """Load and call one entry point's value."""
    return door.perform(lambda note: _call(value, note))


def _call(value: str, calling: mmap.mmap) -> dict[str, Any]:
    """Load `value` and call it without arguments; return the answer as data, whatever it is."""
    guard = HostGuard()
    sys.meta_path.insert(0, guard)
    variables = read_later()
    started = time.perf_counter()
    answer: dict[str, Any] = {"kind": "raised", "stage": "load", "returned": None, "type": None, "error": None, "at": None}
    try:
        function = load(value)
        answer["load_seconds"] = time.perf_counter() - started
        answer["stage"] = "call"
        calling[0] = 1
        answer["callable"] = describe_callable(function)
        describe_return(function(), answer)
    except NeedsHost as need:
        answer.update(kind="needs_host", at=need.at)
    except BaseException as exc:
        answer["error"] = describe_error(exc)
    if guard.asked and answer["kind"] != "needs_host":  # the plugin swallowed it
        answer.update(kind="needs_host", at=guard.asked)
    answer["seconds"] = time.perf_counter() - started
    answer["changed"] = changed(variables)
    return answer


def read_later() -> dict[str, str]:
    """Return SGLang's variables, which it reads again after the callback."""
    return {name: value for name, value in os.environ.items() if name.startswith(("SGLANG_", "SGL_"))}


def changed(before: dict[str, str]) -> list[str]:
    """Name the variables that differ from `before`, and torch's answers about hardware that are not torch's own."""
    after = read_later()
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    torch = sys.modules.get("torch")
    for device in ("cuda", "npu", "xpu", "mps") if torch is not None else ():
        asked = getattr(getattr(torch, device, None), "is_available", None)
        if asked is not None and not str(getattr(asked, "__module__", None) or "torch").startswith("torch"):
            names.append(f"torch.{device}.is_available")
    return names


class NeedsHost(BaseException):
    """The plugin asked for sglang."""

    def __init__(self, at: dict[str, Any]) -> None:
        super().__init__(at)
        self.at = at


class HostGuard:
    """A finder that stops any import of sglang and remembers who asked."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] | None = None

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == RUNTIME or name.startswith(RUNTIME + "."):
            self.asked = self.asked or {"module": name, **_caller()}
            raise NeedsHost(self.asked)


def _caller() -> dict[str, Any]:
    """The innermost frame outside the import machinery and this file."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<frozen importlib") and os.path.basename(name) != "util.py" and "importlib" not in name:
            return {"file": name, "line": frame.f_lineno, "function": frame.f_code.co_name}
        frame = frame.f_back
    return {"file": None, "line": None, "function": None}


def load(value: str) -> Any:
    """Import what an entry point's value names, as `importlib.metadata` does (whose own import would cost more than most plugins)."""
    match: Any = VALUE.match(value)  # None for a malformed value: the AttributeError below is the host's own
    found = importlib.import_module(match.group("module"))
    for name in filter(None, (match.group("attr") or "").split(".")):
        found = getattr(found, name)
    return found


def describe_return(value: Any, answer: dict[str, Any]) -> None:
    """Fill in what the callback returned; a `str` is the answer, None is "no hardware", the rest is a mistake."""
    answer["type"] = type.__dict__["__name__"].__get__(type(value))  # a metaclass may have a `__name__` of its own
    if value is None:
        answer["kind"] = "none"
    elif isinstance(value, str):
        answer.update(kind="returned", returned=str.__str__(value))  # what SGLang reads, whatever a subclass says of itself
    else:
        answer["kind"] = "wrong_type"
        answer["repr"] = safe_repr(value)
        if answer["type"] == "coroutine":
            value.close()


def describe_callable(function: Any) -> dict[str, Any]:
    """Return {"type", "callable", "file", "line", "parameters"} of what an entry point resolves to."""
    code = getattr(function, "__code__", None)
    return {
        "type": type(function).__name__,
        "callable": callable(function),
        "is_class": isinstance(function, type),
        "file": getattr(code, "co_filename", None),
        "line": getattr(code, "co_firstlineno", None),
    }


def safe_repr(value: object) -> str:
    """A short text for any object, even one whose `__repr__` fails."""
    try:
        return repr(value)[:LONG]
    except Exception:
        return f"<{type(value).__name__} whose repr fails>"


def describe_error(exc: BaseException) -> dict[str, Any]:
    """Return the facts of an exception: {"type", "message", "root": {…}, "where", "frames", "traceback", "chain"}.

    `root` is the innermost exception of the chain (`below`), `where` the innermost frame in a stranger's file.
    """
    import traceback  # only a failure needs it

    chain: list[BaseException] = []
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        chain.append(current)
        current = below(current)
    root = chain[-1]
    return {
        **_head(exc),
        "root": {**_head(root), "where": where(root)},
        "where": where(exc),
        "chain": [_head(link) for link in chain],
        "traceback": "".join(traceback.format_exception(type(exc), exc, exc.__traceback__))[-20000:],
    }


def below(exc: BaseException) -> BaseException | None:
    """Return the exception behind another: its cause, its context, or the first of its group; None at the end of the chain."""
    known = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
    group = any(kind.__name__ == "BaseExceptionGroup" for kind in type(exc).__mro__)  # a name that Python 3.10 does not have
    return known or (next(iter(getattr(exc, "exceptions", ())), None) if group else None)


def _head(exc: BaseException) -> dict[str, Any]:
    kind = type(exc)
    try:
        message = str(exc)
    except Exception:
        message = "<message cannot be shown>"
    mro = [base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"]
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "." + kind.__qualname__
    if kind.__module__.startswith("sglang_plug."):
        name = mro[0]  # the stand-in's own; SGLang raises the built-in one
    head = {"type": name, "message": message[:LONG], "exception": isinstance(exc, Exception)}
    return {**head, "builtin": next((m for m in mro if hasattr(builtins, m)), "BaseException")}


def where(exc: BaseException) -> dict[str, Any] | None:
    """The innermost frame outside the import machinery, the standard library and this probe: {"file", "line", "function"}."""
    import traceback

    if isinstance(exc, SyntaxError) and exc.filename:
        return {"file": exc.filename, "line": exc.lineno, "function": "<module>"}
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # ours, the stand-in included
    stdlib = os.path.dirname(os.__file__)
    best = None
    for frame in traceback.extract_tb(exc.__traceback__):
        name = frame.filename
        inside = name.startswith(("<frozen", here)) or (
            name.startswith(stdlib) and "site-packages" not in name and "dist-packages" not in name
        )
        if not inside:
            best = {"file": name, "line": frame.lineno, "function": frame.name}
    return best


def in_host(request: dict[str, Any]) -> dict[str, Any]:
    """Run the host-order dry run (`stage.py`) and return the whole report of its process; what it starts in turn has limits of its own."""
    asked = request.get("isolation", "auto")
    return spawning.called("stage:play", request, request.get("whole_timeout", 600.0), request.get("whole_memory"), asked=asked)


def call_file(request: dict[str, Any]) -> dict[str, Any]:
    """Load the Python file `path` and call `function(request)` of it in a process of its own; return that process's whole report."""
    return spawning.called("activation:enter_file", request, request.get("whole_timeout", 600.0), request.get("whole_memory"))


def enter_file(request: dict[str, Any], door: Any) -> Any:
    """Load the file and call its function."""

    def task(note: Any) -> Any:
        spec = importlib.util.spec_from_file_location("_sglang_plug_" + os.path.basename(request["path"])[:-3], request["path"])
        if spec is None or spec.loader is None:
            raise ImportError(request["path"] + " cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return getattr(module, request["function"])(request)

    return door.perform(task)
