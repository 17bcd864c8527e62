"""The host's hook registries as data: what is registered, by whom, and what the host patches. Adapts to real SGLang and the stand-in."""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import TYPE_CHECKING, Any

from . import functions
from .targets import Targets

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = {"srt": "sglang.srt.plugins.hook_registry", "diffusion": "sglang.multimodal_gen.runtime.platforms.plugins"}
LOADERS = {"srt": "sglang.srt.plugins", "diffusion": "sglang.multimodal_gen.runtime.platforms.plugins"}


def registry(runtime: str) -> Any:
    """Return the runtime's `HookRegistry`, or None where its module is not loaded."""
    return getattr(sys.modules.get(MODULES[runtime]), "HookRegistry", None)


def entries(runtime: str) -> list[tuple[str, str, Any, Any]]:
    """Return (target, type, hook, source) of every registration, in order within a target."""
    found = registry(runtime)
    hooks = getattr(found, "_hooks", None) or {}
    return [
        (target, str(getattr(kind, "value", kind)), hook, source)
        for target, rows in list(hooks.items())
        for kind, hook, source in list(rows)
    ]


class Recorder:
    """Tells what was registered since it was made, in either registry, and how each target was spelled."""

    def __init__(self) -> None:
        self._before = {runtime: {id(hook) for _, _, hook, _ in entries(runtime)} for runtime in MODULES}
        self._spelled: dict[int, str] = {}
        self._applied: set[int] = set()
        for runtime in MODULES:
            self._follow(runtime)
        core: Any = getattr(sys.modules.get("sglang_plug.core.hooks"), "HookRegistry", None)
        if core is not None:  # the stand-in's registry reads the colon as a dot at once
            register = core.register

            def noting(this: Any, target: Any, hook: Any, *rest: Any, **more: Any) -> Any:
                self._spelled[id(hook)] = str(target)
                return register(this, target, hook, *rest, **more)

            core.register = noting

    def _follow(self, runtime: str) -> None:
        """Note what is registered whenever hooks are applied, as a plugin may do itself: SGLang patches a target once."""
        hooks = registry(runtime)
        apply: Any = getattr(hooks, "apply_hooks", None)

        def applying(*args: Any, **options: Any) -> Any:
            self._applied |= {id(hook) for _, _, hook, _ in entries(runtime)}
            return apply(*args, **options)

        if apply is not None:
            setattr(hooks, "apply_hooks", staticmethod(applying))  # noqa: B010 - a class that only the child knows

    def _is_late(self, runtime: str, row: tuple[str, str, Any, Any]) -> bool:
        return bool(self._applied) and row[0] in patched(runtime) and id(row[2]) not in self._applied

    def _added(self) -> list[tuple[str, tuple[str, str, Any, Any]]]:
        return [(runtime, row) for runtime in MODULES for row in entries(runtime) if id(row[2]) not in self._before[runtime]]

    def count(self) -> int:
        """Return how many were added so far."""
        return len(self._added())

    def new(self) -> list[dict[str, Any]]:
        """Return the facts of every registration that was added."""
        return [
            {"registry": runtime, "raw": self._spelled.get(id(row[2]), row[0]), "late": self._is_late(runtime, row), **describe(*row)}
            for runtime, row in self._added()
        ]


def describe(target: Any, kind: str, hook: Any, source: Any) -> dict[str, Any]:
    """Return the facts of one registration."""
    return {
        "target": str(target),
        "type": kind,
        "hook": functions.describe(hook),
        "returns": functions.returns_of(hook),
        "gives_nothing": functions.gives_nothing(hook),
        "first_use": functions.first_use(hook),
        "unawaited": functions.unawaited(hook),
        "iterates": functions.iterates(hook),
        "source": {"plugin": getattr(source, "plugin_name", None), "dist": getattr(source, "dist_name", None)} if source else None,
    }


@contextlib.contextmanager
def source(candidate: dict[str, Any], *, enabled: bool = True) -> Iterator[None]:
    """Name the plugin as the source of what it registers, as the host does around a callback."""
    module = sys.modules.get(MODULES["srt"])
    variable = getattr(module, "_current_plugin_source", None)
    kind = getattr(module, "HookSource", None)
    if not enabled or variable is None or kind is None:
        yield
        return
    token = variable.set(kind(plugin_name=candidate["name"], dist_name=candidate.get("dist")))
    try:
        yield
    finally:
        variable.reset(token)


class Host:
    """The loader of one runtime, run as the host runs it."""

    def __init__(self, runtime: str) -> None:
        self.runtime = runtime
        self.module = importlib.import_module(LOADERS[runtime])

    def load_and_apply(self) -> None:
        """Load the plugins and apply their hooks.

        Raises:
            BaseException: whatever the host lets through.
        """
        self.module.load_plugins()
        apply = getattr(self.module, "apply_plugin_hooks", None)
        if apply is not None:
            apply()

    @contextlib.contextmanager
    def watch_targets(self) -> Iterator[Targets]:
        """Look at every target just before the host patches it, and at what is left of it afterwards."""
        hooks = registry(self.runtime)
        targets = Targets(lambda: entries(self.runtime), lambda: patched(self.runtime))
        single: Any = getattr(hooks, "_apply_target", None)
        every: Any = getattr(hooks, "apply_hooks", None)

        def apply_target(target: str, rows: Any) -> Any:
            targets.look(target)
            return single(target, rows)

        def apply_hooks() -> Any:
            for target in dict.fromkeys(target for target, _, _, _ in entries(self.runtime)):
                targets.look(target)
            return every()

        name, watched = ("_apply_target", apply_target) if single is not None else ("apply_hooks", apply_hooks)
        original = vars(hooks).get(name)
        setattr(hooks, name, staticmethod(watched))
        try:
            yield targets
        finally:
            if original is not None:
                setattr(hooks, name, original)
            else:
                delattr(hooks, name)


def patched(runtime: str) -> set[str]:
    """Return the targets that the host has patched."""
    return set(getattr(registry(runtime), "_patched", None) or ())
