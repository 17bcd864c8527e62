"""A hook plugin that watches the other hooks of its process: which were registered, applied, failed, and how often each fires at what cost.

It is copied into a temporary distribution for one launch (see `recording.py`) and runs inside the engine's processes: standard library and
Python 3.10 only, needing nothing of sglang-plug. It looks at the registries' public faces and at the loaders' own log, and changes no
hook's behaviour. Counters live in a memory-mapped file, so that they survive a process that is killed; a full disk ends the recording,
never the engine.
"""

from __future__ import annotations

import functools
import importlib
import json
import logging
import mmap
import os
import re
import struct
import sys
import threading
import time
from typing import Any

FOLDER = "SGLANG_PLUG_RECORD"
COUNTING = "SGLANG_PLUG_RECORD_COUNTS"
REGISTRIES = {"srt": "sglang.srt.plugins.hook_registry", "diffusion": "sglang.multimodal_gen.runtime.platforms.plugins"}
PLATFORMS = {"srt": "sglang.srt.platforms", "diffusion": "sglang.multimodal_gen.runtime.platforms"}
LOGGERS = ("sglang.srt.plugins", "sglang.srt.plugins.hook_registry", "sglang.multimodal_gen.runtime.platforms.plugins")

# A hook's block of the counter file, in 64-bit words: what is written when a call begins, when it ends, and a ring of the last calls.
COUNT, LAST, DONE, OWN, SPENT, LONGEST, FIRST, RAISED, RING = range(9)
EVENT_WORDS = 3  # begin, nanoseconds, thread
EVENTS = 256
BLOCK = RING + EVENTS * EVENT_WORDS
BLOCKS_A_FILE = 32
_BEGIN, _END, _EVENT = struct.Struct("=2Q"), struct.Struct("=6Q"), struct.Struct("=3Q")

# Which function a process was started with, and how its caller calls its rank.
ENTRANCES = {
    "run_scheduler_process": "scheduler",
    "run_detokenizer_process": "detokenizer",
    "run_multi_detokenizer_router_process": "detokenizer router",
    "run_data_parallel_controller_process": "data-parallel controller",
    "bootstrap_scheduler_process": "diffusion worker",
    "bootstrap_http_server_process": "diffusion HTTP server",
}
RANKS = ("dp_rank", "pp_rank", "tp_rank", "rank")

clock = time.perf_counter_ns  # one clock for all processes of a Linux machine


def srt() -> None:
    """Entry point of `sglang.srt.plugins`."""
    _watch("srt")


def diffusion() -> None:
    """Entry point of `sglang.multimodal_gen.plugins`."""
    _watch("diffusion")


_records: dict[str, Record] = {}


def _watch(runtime: str) -> None:
    folder = os.environ.get(FOLDER)
    if folder and runtime not in _records:
        record = _records[runtime] = Record(runtime, folder, counting=os.environ.get(COUNTING) == "1")
        record.stand_before_application()


class Ear(logging.Handler):
    """Takes down what the loaders report as failed, which they swallow otherwise; the message's arguments name the subject.

    It listens as soon as this module is imported: all plugins are imported before the first callback runs.

    Attributes:
        targets: target -> why its hooks were not applied.
        plugins: by runtime, plugin -> why it failed.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.targets: dict[str, dict[str, Any]] = {}
        self.plugins: dict[str, dict[str, dict[str, Any]]] = {runtime: {} for runtime in REGISTRIES}

    def emit(self, record: logging.LogRecord) -> None:
        if not record.exc_info or record.exc_info[1] is None or not isinstance(record.args, tuple) or not record.args:
            return
        subject, message = str(record.args[0]), str(record.msg)
        facts = describe(record.exc_info[1], subject)
        if "hooks to" in message:
            self.targets[subject] = facts
        else:
            runtime = "diffusion" if "multimodal_gen" in record.name else "srt"
            phase = "load" if "load" in message else "call"
            self.plugins[runtime][subject] = {"plugin": subject, "phase": phase, **facts}


class Record:
    """What one runtime's hooks do in this process, and where that is written."""

    def __init__(self, runtime: str, folder: str, *, counting: bool) -> None:
        self.runtime, self.folder, self.counting = runtime, folder, counting
        self.role, self.rank = _who()
        self.registry = importlib.import_module(REGISTRIES[runtime]).HookRegistry
        self.hooks: list[dict[str, Any]] = []
        self.stem = f"{self.role.replace(' ', '-')}-{os.getpid()}-{runtime}"
        self._counters: Counters | None = None
        self._broken = False

    def stand_before_application(self) -> None:
        """Have every application of hooks counted and written down. The registry's own method does the work."""
        standin = standin_registry(self.runtime)
        owner, name = (self.registry, "apply_hooks") if standin is None else (standin, "apply")
        apply = getattr(owner, name)

        @functools.wraps(apply)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.prepare()
            try:
                return apply(*args, **kwargs)
            finally:
                self.conclude()

        setattr(owner, name, watched if standin is not None else staticmethod(watched))

    def prepare(self) -> None:
        """Take the rows of all registered hooks down, and put a counter around each function."""
        known = {entry["id"] for entry in self.hooks}
        for target, kind, hook, source, replace in rows(self.registry, self.runtime):
            if id(hook) in known or getattr(hook, "__sglang_plug_counter__", False):
                continue
            entry = {
                "id": id(hook),
                "target": target,
                "type": kind,
                "hook": f"{getattr(hook, '__module__', '?')}.{getattr(hook, '__qualname__', repr(hook))}",
                "plugin": getattr(source, "plugin_name", None),
                "dist": getattr(source, "dist_name", None),
                "is_class": isinstance(hook, type),
                "counter": None,
            }
            self.hooks.append(entry)
            if self.counting and not isinstance(hook, type):
                slot = self._slot()
                if slot is not None:
                    entry["counter"] = slot[1]
                    replace(counted(hook, kind, slot[0]))

    def conclude(self) -> None:
        """Write the record: what is applied by now, what failed and why."""
        standin = standin_registry(self.runtime)
        patched = set(self.registry._patched if standin is None else standin.patched)
        for entry in self.hooks:
            target = entry["target"]
            entry["applied"] = target in patched or target.replace(":", ".", 1) in patched
            entry["failure"] = None if entry["applied"] else ear.targets.get(target) or ear.targets.get(target.replace(":", ".", 1))
        self._write()

    def _slot(self) -> tuple[Any, dict[str, Any]] | None:
        if self._broken:
            return None
        try:
            self._counters = self._counters or Counters(os.path.join(self.folder, self.stem))
            return self._counters.block()
        except OSError as exc:
            self._give_up(exc)
            return None

    def _write(self) -> None:
        if self._broken:
            return
        facts = {
            "schema": 1,
            "runtime": self.runtime,
            "role": self.role,
            "rank": self.rank,
            "pid": os.getpid(),
            "parent": os.getppid(),
            "argv": sys.argv,
            "sglang": getattr(sys.modules.get("sglang"), "__version__", None),
            "platform": platform(self.runtime),
            "clock": clock(),
            "time": time.time(),
            "plugins_failed": list(ear.plugins[self.runtime].values()),
            "hooks": [{key: value for key, value in entry.items() if key != "id"} for entry in self.hooks],
        }
        path = os.path.join(self.folder, self.stem + ".json")
        try:
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump(facts, file, default=repr)
            os.replace(path + ".new", path)
        except OSError as exc:
            self._give_up(exc)

    def _give_up(self, exc: OSError) -> None:
        self._broken = True
        sys.stderr.write(f"sglang-plug: recording ends in this process ({self.role}, pid {os.getpid()}): {exc}. The engine goes on.\n")


def describe(error: BaseException, target: str) -> dict[str, Any]:
    """Return what failed and the root of it; a target's missing attribute often hides an import that failed."""
    root = error
    while root.__cause__ is not None or (root.__context__ is not None and not root.__suppress_context__):
        root = root.__cause__ or root.__context__ or root
    if isinstance(error, AttributeError):
        root = _hidden_import(target) or root
    return {"error": f"{type(error).__name__}: {error}", "cause": f"{type(root).__name__}: {root}"}


def _hidden_import(target: str) -> BaseException | None:
    """Import the target's parents one by one; return the first failure that is not simply the end of the modules."""
    parts = target.replace(":", ".").split(".")
    for end in range(1, len(parts)):
        name = ".".join(parts[:end])
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as exc:
            return None if exc.name == name or "is not a package" in str(exc) else exc
        except BaseException as exc:  # noqa: BLE001 - whatever a stranger's module raises is the answer
            return exc
    return None


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


def rows(registry: Any, runtime: str) -> list[tuple[str, str, Any, Any, Any]]:
    """Return (target, type, hook, source, replace) of every registration; `replace(new)` puts another function in its place."""
    standin = standin_registry(runtime)
    if standin is not None:
        return [
            (target, hook.type.value, hook.function, hook.source, functools.partial(_swap, entries, index))
            for target, entries in standin.hooks.items()
            for index, hook in enumerate(entries)
        ]
    return [
        (target, kind.value, hook, source, functools.partial(_put, entries, index))
        for target, entries in registry._hooks.items()
        for index, (kind, hook, source) in enumerate(entries)
    ]


def _put(entries: list[Any], index: int, function: Any) -> None:
    kind, _, source = entries[index]
    entries[index] = (kind, function, source)


def _swap(entries: list[Any], index: int, function: Any) -> None:
    entries[index] = entries[index]._replace(function=function)


def standin_registry(runtime: str) -> Any:
    """Return the stand-in's own registry of a runtime; None on real SGLang."""
    core = sys.modules.get("sglang_plug.core.process")
    version = str(getattr(sys.modules.get("sglang"), "__version__", ""))
    return getattr(core, runtime).hooks if core is not None and version.endswith("standin") else None


def platform(runtime: str) -> dict[str, Any] | None:
    """Return the platform that this process uses, where it is decided already. Decides nothing."""
    core = sys.modules.get("sglang_plug.core.process")
    current = vars(sys.modules.get(PLATFORMS[runtime]) or object).get("_current_platform")
    if current is None and core is not None:
        current = getattr(core, runtime)._platform
    if current is None:
        return None
    kind = type(current)
    return {
        "qualname": f"{kind.__module__}.{kind.__qualname__}",
        "device_name": str(getattr(current, "device_name", "")),
        "device_type": str(getattr(current, "device_type", "")),
    }


def _who() -> tuple[str, dict[str, int]]:
    """Return this process's role and ranks: from the function that it was started with, else from its own name (`scheduler_TP0`)."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        role = ENTRANCES.get(frame.f_code.co_name)
        if role is not None:
            ranks = {name: frame.f_locals[name] for name in RANKS if isinstance(frame.f_locals.get(name), int)}
            return role, ranks
        frame = frame.f_back
    process = sys.modules.get("multiprocessing.process")
    name = "MainProcess" if process is None else process.current_process().name
    ranks = {f"{kind.lower()}_rank": int(number) for kind, number in re.findall(r"(DP|PP|TP)(\d+)", name)}
    return ("main" if name == "MainProcess" else re.split(r"_(?:DP|PP|TP)\d", name)[0]), ranks


ear = Ear()
for _name in LOGGERS if os.environ.get(FOLDER) else ():
    logging.getLogger(_name).addHandler(ear)
