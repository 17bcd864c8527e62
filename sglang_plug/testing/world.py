"""A clean plugin world: what a plugin changes in this process, put back. Knows the state of SGLang and of the stand-in by name."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from sglang_plug.core import entrypoints, objects, process
from sglang_plug.core.patching import Patch
from sglang_plug.core.policy import REGISTRIES
from sglang_plug.testing import engine

if TYPE_CHECKING:
    from collections.abc import Iterator

# Real SGLang's marks of what happens once in a process, with the value that a fresh one has.
_ONCE: dict[str, dict[str, object]] = {
    "sglang.srt.plugins": {"_plugins_loaded": False},
    "sglang.srt.platforms": {"_current_platform": None},
    "sglang.multimodal_gen.runtime.platforms": {
        "_current_platform": None,
        "_current_platform_selection": None,
        "_backend_init_done": False,
        "_backend_init_error": None,
    },
}
_DIFFUSION = REGISTRIES["diffusion"]


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Prepare the engine, and put the plugin world back when the block ends, whatever happened in it."""
    engine.prepare()
    environ, path, modules = dict(os.environ), list(sys.path), set(sys.modules)
    try:
        with _real() if engine.is_real() else _standin():
            yield
    finally:
        new = _of_plugins(set(sys.modules) - modules, set(sys.path) - set(path))
        os.environ.clear()
        os.environ.update(environ)
        sys.path[:] = path
        for name in new:
            del sys.modules[name]


def _of_plugins(names: set[str], places: set[str]) -> set[str]:
    """Of newly imported modules, those of plugins, or from places that were not on the path before: the next test imports them anew.

    SGLang's own stay: they cannot be imported twice.
    """
    candidates = (candidate for group in entrypoints.GROUPS for candidate in entrypoints.installed(group))
    packages = {candidate.value.partition(":")[0].partition(".")[0].strip() for candidate in candidates}
    return {name for name in names if name.partition(".")[0] in packages or _lies_in(places, sys.modules[name])}


def _lies_in(places: set[str], module: object) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and any(file.startswith(os.path.join(place, "")) for place in places if place)


@contextlib.contextmanager
def _standin() -> Iterator[None]:
    try:
        yield
    finally:
        for runtime in (process.diffusion, process.srt):
            runtime.hooks.revert()
            runtime.reset()


@contextlib.contextmanager
def _real() -> Iterator[None]:
    """Follow what the registry patches, which it cannot take back itself, and save the marks."""
    base: Any = importlib.import_module(REGISTRIES["srt"]).HookRegistry
    apply = vars(base)["_apply_target"]
    patched: list[objects.Place] = []

    def follow(cls: Any, target: str, hooks: Any) -> None:
        place = objects.locate(target)
        apply.__func__(cls, target, hooks)
        patched.append(place)

    hooks, done = _registry_state(base)
    marks = {(name, mark): vars(sys.modules[name])[mark] for name, values in _ONCE.items() if name in sys.modules for mark in values}
    base._apply_target = classmethod(follow)
    try:
        yield
    finally:
        base._apply_target = apply
        for place in reversed(patched):
            _take_back(place)
        base._hooks.clear()
        base._hooks.update(hooks)
        base._patched.clear()
        base._patched.update(done)
        _forget_diffusion()
        for name, values in _ONCE.items():
            for mark, fresh in values.items():
                if name in sys.modules:
                    setattr(sys.modules[name], mark, marks.get((name, mark), fresh))


def _registry_state(registry: Any) -> tuple[dict[str, Any], set[str]]:
    return {target: list(hooks) for target, hooks in registry._hooks.items()}, set(registry._patched)


def _forget_diffusion() -> None:
    module = sys.modules.get(_DIFFUSION)
    if module is not None:
        module.HookRegistry.reset()
        module._reset_lifecycle_for_tests()


def _take_back(place: objects.Place) -> None:
    """Put the original where the registry put its wrapper, in the parent and in every module that holds it."""
    raw = vars(place.parent).get(place.attribute)
    alias = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
    bindings = [
        (module, name)
        for module in list(sys.modules.values())
        if isinstance(module, type(sys)) and module is not place.parent
        for name, value in list(vars(module).items())
        if value is alias
    ]
    Patch(place, raw, alias, bindings).revert()
