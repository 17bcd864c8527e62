"""Who still holds the original of a patched target: containers, default arguments, partials, class attributes, closures. Facts only."""

from __future__ import annotations

import functools
import gc
import inspect
import sys
import types
from typing import Any

LIMIT = 12
COMPILED = "_torchdynamo_orig_callable"  # where torch.compile keeps the function that it compiles


def bindings(originals: dict[str, Any]) -> dict[str, list[str]]:
    """Return, by target, where the original is still referenced, in words; only places that SGLang's propagation cannot reach."""
    if not originals:
        return {}
    gc.collect()
    modules = {id(vars(module)): name for name, module in list(sys.modules.items()) if isinstance(module, types.ModuleType)}
    found: dict[str, list[str]] = {}
    for target, original in originals.items():
        if isinstance(original, type):
            continue  # what a replaced class leaves behind are its subclasses, told on their own
        places: list[str] = []
        for holder in gc.get_referrers(original):
            places += _place(holder, original, modules)
        unique = sorted(set(places))
        if unique:
            found[target] = unique[:LIMIT]
    return found


def _place(holder: Any, original: Any, modules: dict[int, str]) -> list[str]:
    """Name one referrer, or nothing where it is ours, the wrapper's or the interpreter's."""
    if isinstance(holder, dict):
        return _in_dict(holder, original, modules)
    if isinstance(holder, functools.partial):
        return [f"functools.partial {_held_as(holder, modules)}".strip()]
    if isinstance(holder, (classmethod, staticmethod)):
        return _class_attribute(holder)
    if isinstance(holder, tuple):
        return [f"default argument of {name}" for name in _defaults_of(holder)] or _container(holder, modules)
    if isinstance(holder, (list, set, frozenset)):
        return _container(holder, modules)
    if inspect.ismethod(holder):
        return []
    return []


def _in_dict(holder: dict[Any, Any], original: Any, modules: dict[int, str]) -> list[str]:
    keys = [key for key, value in list(holder.items()) if value is original]
    module = modules.get(id(holder))
    if module is not None:
        return [f"{module}.{key}" for key in keys if not _is_ours(module)]
    if COMPILED in keys:
        held = [_held_as(owner, modules) for owner in gc.get_referrers(holder) if inspect.isfunction(owner)]
        return [f"{name} (made by torch.compile)" for name in held if name]
    if "__wrapped__" in keys:
        return []
    for owner in gc.get_referrers(holder):
        if isinstance(owner, type) and keys and owner.__dict__.get(str(keys[0])) is original:
            return [f"{owner.__module__}.{owner.__qualname__}.{key} (class attribute)" for key in keys]
        if inspect.isfunction(owner) and owner.__kwdefaults__ is holder:
            return [f"default argument of {owner.__module__}.{owner.__qualname__}"]
    name = _held_as(holder, modules)
    return [f"{name}[{key!r}]" for key in keys if isinstance(key, (str, int))] if name else []


def _class_attribute(holder: Any) -> list[str]:
    found = []
    for table in gc.get_referrers(holder):
        if isinstance(table, dict):
            for owner in gc.get_referrers(table):
                if isinstance(owner, type):
                    found += [
                        f"{owner.__module__}.{owner.__qualname__}.{key} (class attribute)"
                        for key, value in vars(owner).items()
                        if value is holder
                    ]
    return found


def _defaults_of(holder: tuple[Any, ...]) -> list[str]:
    return [
        f"{owner.__module__}.{owner.__qualname__}"
        for owner in gc.get_referrers(holder)
        if inspect.isfunction(owner) and owner.__defaults__ is holder and not _is_ours(owner.__module__)
    ]


def _container(holder: Any, modules: dict[int, str]) -> list[str]:
    name = _held_as(holder, modules)
    return [f"{name} ({type(holder).__name__})"] if name else []


def _held_as(holder: Any, modules: dict[int, str]) -> str:
    """Return the module-level name of a container, looking through one container around it; empty where it has none."""
    for owner in gc.get_referrers(holder):
        if isinstance(owner, dict) and id(owner) in modules and not _is_ours(modules[id(owner)]):
            for key, value in list(owner.items()):
                if value is holder:
                    return f"{modules[id(owner)]}.{key}"
    return ""


def _is_ours(module: str | None) -> bool:
    return module is None or module.startswith(("_sglang_plug", "sglang_plug.", "__main__"))


def subclasses(kind: type) -> list[type]:
    """Return every living subclass, direct or not."""
    found: list[type] = []
    queue: list[type] = list(type.__subclasses__(kind))
    while queue:
        child = queue.pop()
        if child not in found:
            found.append(child)
            queue += type.__subclasses__(child)
    return found
