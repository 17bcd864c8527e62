"""What a stranger's code changed in its process: a snapshot before, one after, and the difference. Owns the list of things looked at."""

from __future__ import annotations

import _locale
import contextlib
import ctypes
import gc
import logging
import os
import resource
import signal
import sys
import threading
import warnings
from typing import Any

#: Environment that the interpreter, the terminal or we ourselves change.
_QUIET = {"LINES", "COLUMNS"}
#: torch's device modules with `is_initialized`, which is true once a context lives on the device.
_DEVICES = ("cuda", "xpu", "npu", "musa", "hpu", "mlu", "mtia")
_DEVICE_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/davinci", "/dev/mtgpu", "/dev/accel", "/dev/cambricon", "/dev/habanalabs")

#: Numbers of the system, kept from now: a hook on a constant replaces every equal small number that any module holds.
_NUMBERS = {
    "timer": signal.ITIMER_REAL,
    "process": os.PRIO_PROCESS,
    "letters": _locale.LC_CTYPE,
    "numbers": _locale.LC_NUMERIC,
    **{name: getattr(resource, name) for name in ("RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_STACK", "RLIMIT_CPU")},
}


def flush() -> None:
    """Push what the process holds back in Python's and C's buffers to its descriptors."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):  # a stranger may have closed or replaced it: `streams` reports that
            stream.flush()  # type: ignore[union-attr]
    with contextlib.suppress(Exception):  # no C library under this name: nothing to flush
        ctypes.CDLL(None).fflush(None)


class Setters:
    """Notes who changes environment variables from now on: the innermost frame outside the standard library and this folder."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, Any]] = {}
        kind: Any = type(os.environ)
        put, drop = kind.__setitem__, kind.__delitem__

        def setitem(this: Any, key: Any, value: Any) -> None:
            self._note(key)
            put(this, key, value)

        def delitem(this: Any, key: Any) -> None:
            self._note(key)
            drop(this, key)

        kind.__setitem__, kind.__delitem__ = setitem, delitem

    def _note(self, key: Any) -> None:
        here, stdlib = os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.__file__) + os.sep
        frame: Any = sys._getframe(2)
        while frame is not None:
            name = frame.f_code.co_filename
            library = name.startswith(stdlib) and "-packages" not in name
            if not (name.startswith(("<frozen", here)) or library):
                self.seen[str(key)] = {"file": name, "line": frame.f_lineno}
                return
            frame = frame.f_back

    def owners(self, module_file: str | None) -> dict[str, dict[str, Any]]:
        """Return file, line and owner (`plugin`, `sglang` or `library`) by variable."""
        host = getattr(sys.modules.get("sglang"), "__file__", None) or os.devnull
        own = os.path.dirname(module_file) if module_file and os.path.basename(module_file) == "__init__.py" else module_file
        for found in self.seen.values():
            if found["file"].startswith(os.path.dirname(host) + os.sep):
                found["owner"] = "sglang"
            elif own and found["file"].startswith(own):
                found["owner"] = "plugin"
            else:
                found["owner"] = "library" if "-packages" + os.sep in found["file"] else "plugin"
        return self.seen


def snapshot() -> dict[str, Any]:
    """Return everything that is compared, as JSON values."""
    flush()
    return {
        "environ": {key: value for key, value in os.environ.items() if key not in _QUIET},
        "cwd": _cwd(),
        "umask": _umask(),
        "path": [str(entry) for entry in sys.path],
        "meta_path": [_named(finder) for finder in sys.meta_path],
        "signals": _signals(),
        "mask": sorted(int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "tasks": _count("/proc/self/task"),
        "start_method": _start_method(),
        "logging": _logging(),
        "streams": [id(sys.stdout), id(sys.stderr)],
        "descriptors": [_size(1), _size(2)],
        "devices": devices(),
        "device_files": device_files(),
        "settings": _settings(),
        "excepthook": sys.excepthook is sys.__excepthook__,
        "torch_defaults": _torch_defaults(),
        # last: the questions above may make torch import something
        "modules": sorted(name for name in tuple(sys.modules) if name.partition(".")[0] in ("sglang", "torch")),
    }


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return what changed between two snapshots; an empty dict when nothing did."""
    found: dict[str, Any] = {}
    env = _environ_difference(before["environ"], after["environ"])
    if env:
        found["environ"] = env
    for key in ("cwd", "umask", "start_method", "excepthook", "torch_defaults"):
        if before[key] != after[key]:
            found[key] = {"before": before[key], "after": after[key]}
    for key in ("path", "meta_path", "threads", "devices", "device_files", "modules"):
        new = _added(before[key], after[key])
        if new:
            found[key] = new
    for key in ("path", "meta_path"):
        gone = _added(after[key], before[key])
        if gone:
            found[key + "_gone"] = gone
    settings = {key: {"before": before["settings"].get(key), "after": now} for key, now in after["settings"].items()}
    settings = {key: change for key, change in settings.items() if change["before"] != change["after"]}
    if settings:
        found["settings"] = settings
    signals = {
        name: {"before": before["signals"].get(name), "after": state}
        for name, state in after["signals"].items()
        if before["signals"].get(name) != state
    }
    if signals:
        found["signals"] = signals
    if before["mask"] != after["mask"]:
        found["mask"] = [_signal_name(number) for number in _added(before["mask"], after["mask"])]
    if before["logging"] != after["logging"]:
        found["logging"] = {
            key: {"before": before["logging"][key], "after": after["logging"][key]}
            for key in after["logging"]
            if before["logging"][key] != after["logging"][key]
        }
    if after["tasks"] > before["tasks"] and "threads" not in found:
        found["native_threads"] = after["tasks"] - before["tasks"]
    _streams_difference(before, after, found)
    return found


def _streams_difference(before: dict[str, Any], after: dict[str, Any], found: dict[str, Any]) -> None:
    for index, name in enumerate(("stdout", "stderr")):
        old, new = before["descriptors"][index], after["descriptors"][index]
        if new is None and old is not None:
            found[name + "_closed"] = True
        elif old is not None and new is not None and new > old:
            found[name] = new - old
        if before["streams"][index] != after["streams"][index]:
            found[name + "_replaced"] = True


def _environ_difference(before: dict[str, str], after: dict[str, str]) -> dict[str, list[str | None]]:
    keys = before.keys() | after.keys()
    return {key: [before.get(key), after.get(key)] for key in sorted(keys) if before.get(key) != after.get(key)}


def _added(before: list[Any], after: list[Any]) -> list[Any]:
    left = list(before)
    new = []
    for item in after:
        if item in left:
            left.remove(item)
        else:
            new.append(item)
    return new


def _named(thing: object) -> str:
    kind = thing if isinstance(thing, type) else type(thing)
    return f"{kind.__module__}.{kind.__qualname__}"


def _cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _signals() -> dict[str, str]:
    states = {}
    for number in sorted(signal.valid_signals()):
        try:
            handler = signal.getsignal(number)
        except ValueError:
            continue
        if handler is None:
            states[_signal_name(number)] = "installed outside Python"
        elif isinstance(handler, signal.Handlers):
            states[_signal_name(number)] = {"SIG_DFL": "default", "SIG_IGN": "ignored"}.get(handler.name, handler.name)
        else:
            states[_signal_name(number)] = _named_handler(handler)
    return states


def _named_handler(handler: object) -> str:
    return f"{getattr(handler, '__module__', '?')}.{getattr(handler, '__qualname__', type(handler).__name__)}"


def _settings() -> dict[str, str]:
    """Return what else the whole process shares, by its name, as texts."""
    facts = {"the limit of recursion": str(sys.getrecursionlimit())}
    facts["a timer"] = "set" if signal.getitimer(_NUMBERS["timer"])[0] else "none"
    facts["garbage collection"] = "on" if gc.isenabled() else "off"
    for name in (name for name in _NUMBERS if name.startswith("RLIMIT_")):
        facts[name] = str(resource.getrlimit(_NUMBERS[name])[0])
    with contextlib.suppress(AttributeError, OSError):  # Linux alone
        facts["the CPU affinity"] = f"{len(os.sched_getaffinity(0))} CPUs"
    facts["the priority"] = str(os.getpriority(_NUMBERS["process"], 0))
    wide = [rule for rule in warnings.filters if rule[1] is None and rule[2] in (Warning, UserWarning) and rule[3] is None]
    facts["the warnings filters"] = ", ".join(rule[0] for rule in wide) or "none for all warnings"
    facts["the locale"] = f"{_locale.setlocale(_NUMBERS['letters'])}, numbers {_locale.setlocale(_NUMBERS['numbers'])}"
    return facts


def _count(folder: str) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0


def _start_method() -> str | None:
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is None:
        return None
    return multiprocessing.get_start_method(allow_none=True)  # type: ignore[no-any-return]


def _logging() -> dict[str, Any]:
    root = logging.getLogger()
    return {
        "level": logging.getLevelName(root.level),
        "handlers": sorted(type(handler).__name__ for handler in root.handlers if not getattr(handler, "sglang_plug", False)),
        "filters": len(root.filters),
        "disabled": logging.root.manager.disable,
        "logger class": logging.getLoggerClass().__name__,
        "sglang's level": logging.getLevelName(logging.getLogger("sglang").level),
    }


def _size(descriptor: int) -> int | None:
    """Return how many bytes were written: both streams go to files of ours. None where it was closed."""
    try:
        return os.fstat(descriptor).st_size
    except OSError:
        return None


def other_threads() -> list[str]:
    """Return the names of Python's threads but the main one."""
    return sorted(thread.name for thread in threading.enumerate() if thread is not threading.main_thread())


def devices() -> list[str]:
    """Return the device modules of torch whose context is alive."""
    torch = sys.modules.get("torch")
    found = []
    for name in _DEVICES:
        asked = getattr(getattr(torch, name, None), "is_initialized", None)
        if asked is None:
            continue
        with contextlib.suppress(Exception):  # a build without this device may refuse the question
            if asked():
                found.append(name)
    return found


def device_files() -> list[str]:
    """Return the files of accelerators that this process holds open."""
    found = set()
    with contextlib.suppress(OSError):  # no /proc: nothing to see
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # the listing's own descriptor is closed by now
                target = os.readlink("/proc/self/fd/" + name)
                if target.startswith(_DEVICE_FILES):
                    found.add(target)
    return sorted(found)


def _torch_defaults() -> list[str] | None:
    torch = sys.modules.get("torch")
    ask = getattr(torch, "get_default_dtype", None)
    if ask is None:
        return None
    facts = [str(ask())]
    device = getattr(torch, "get_default_device", None)
    if device is not None:
        facts.append(str(device()))
    return facts
