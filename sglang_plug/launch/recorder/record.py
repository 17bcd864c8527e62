"""One runtime's hooks in this process, observed and written down. Standard library and Python 3.10 only."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from .counters import Counters, clock, counted
from .host import REGISTRIES, platform, rows, standin_registry, who

if TYPE_CHECKING:
    from collections.abc import Callable

    from .failures import Ear


class Record:
    """What one runtime's hooks do in this process, and where that is written."""

    def __init__(self, runtime: str, folder: str, ear: Ear, *, counting: bool) -> None:
        self.runtime, self.folder, self.counting, self._ear = runtime, folder, counting, ear
        self.role, self.rank = who()
        self.registry = importlib.import_module(REGISTRIES[runtime]).HookRegistry
        self.hooks: list[dict[str, Any]] = []
        self.stem = f"{self.role.replace(' ', '-')}-{os.getpid()}-{runtime}"
        self._counters: Counters | None = None
        self._broken = False

    def stand_before_application(self) -> None:
        """Have every application of hooks counted and written down. The registry's own method does the work."""
        standin = standin_registry(self.runtime)
        if standin is not None:
            standin.apply = self._watched(standin.apply)
            return
        # A class method, and the raw one beneath: SGLang's diffusion registry inherits the method from SRT's, which may be watched, too.
        raw = inspect.getattr_static(self.registry, "apply_hooks")

        def apply_hooks(registry: type[Any], *args: Any, **kwargs: Any) -> Any:
            apply = raw.__get__(None, registry)
            return (self._watched(apply) if registry is self.registry else apply)(*args, **kwargs)

        self.registry.apply_hooks = classmethod(functools.wraps(raw.__func__)(apply_hooks))

    def _watched(self, apply: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(apply)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.prepare()
            try:
                return apply(*args, **kwargs)
            finally:
                self.conclude()

        return watched

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
            entry["failure"] = (
                None if entry["applied"] else self._ear.targets.get(target) or self._ear.targets.get(target.replace(":", ".", 1))
            )
        self._write()

    def _slot(self) -> tuple[Any, dict[str, Any]] | None:
        try:
            self._counters = self._counters or Counters(os.path.join(self.folder, self.stem))
            return self._counters.block()
        except OSError as exc:
            self.counting = False  # the record itself is small, and may still fit
            self._tell("calls are not counted", exc)
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
            "plugins_failed": list(self._ear.plugins[self.runtime].values()),
            "hooks": [{key: value for key, value in entry.items() if key != "id"} for entry in self.hooks],
        }
        path = os.path.join(self.folder, self.stem + ".json")
        try:
            with open(path + ".new", "w", encoding="utf-8") as file:
                json.dump(facts, file, default=repr)
            os.replace(path + ".new", path)
        except OSError as exc:
            self._broken = True
            self._tell("recording ends", exc)

    def _tell(self, what: str, exc: OSError) -> None:
        sys.stderr.write(f"sglang-plug: {what} in this process ({self.role}, pid {os.getpid()}): {exc}. The engine goes on.\n")
