"""An exception as plain facts, with the place in the plugin's own code. Adds to `activation.describe_error` what a rehearsal needs."""

from __future__ import annotations

import os
import pkgutil
import re
import sys
import traceback
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .activation import below, describe_error, safe_repr, where

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["facts_of", "place_of", "safe_repr", "short_type"]


def short_type(kind: type) -> str:
    """Return `OSError` for a built-in type, `pkg.mod.Name` for others."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def place_of(exc: BaseException) -> dict[str, Any] | None:
    """Return {"file", "line", "function"} of the innermost frame in a plugin's file; in SGLang's where there is none; or None."""
    if isinstance(exc, SyntaxError):
        return where(exc)
    host = os.path.dirname(getattr(sys.modules.get("sglang"), "__file__", None) or "/nowhere/at/all") + os.sep
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep  # the stand-in's machinery included
    stdlib = os.path.dirname(os.__file__) + os.sep
    best = None
    for frame in traceback.extract_tb(exc.__traceback__):
        name = frame.filename
        library = name.startswith(stdlib) and "site-packages" not in name and "dist-packages" not in name
        if not (name.startswith(("<frozen", here, host)) or library):
            best = {"file": name, "line": frame.lineno, "function": frame.name}
    return best or where(exc)


def facts_of(exc: BaseException) -> dict[str, Any]:
    """Return the exception, its root cause, its traceback and its place as JSON values."""
    facts: dict[str, Any] = describe_error(exc)
    facts["place"] = place_of(exc)
    root, seen = exc, {id(exc)}
    while (inner := below(root)) is not None and id(inner) not in seen:
        seen.add(id(inner))
        root = inner
    facts["root"]["place"] = place_of(root) or facts["place"]
    if isinstance(root, ImportError) and root.name:
        facts["root"]["module"] = root.name
        if isinstance(root, ModuleNotFoundError):
            facts["root"]["near"] = _near(root.name)
        else:
            facts["root"].update(_not_given(root))
    if isinstance(root, (AttributeError, NameError)):
        facts["root"]["meant"] = _meant(root)
    if isinstance(root, KeyError) and _innermost(root) in {os.__file__, "<frozen os>"}:
        facts["root"]["variable"] = safe_repr(root.args[0]).strip("'") if root.args else ""
    if isinstance(exc, SystemExit):
        facts["code"] = exc.code if isinstance(exc.code, int) or exc.code is None else safe_repr(exc.code)
    if not isinstance(exc, Exception):
        facts["not_an_exception"] = True
    return facts


def _not_given(exc: ImportError) -> dict[str, Any]:
    """Return what a module that is there does not give: {"wanted", "meant", "cycle", "library"}, as far as they apply."""
    path = str(exc.path or "")
    if path.endswith((".so", ".pyd", ".dylib")):
        return {"library": path}
    found = re.match(r"cannot import name '(\w+)' from ", str(exc))
    if found is None:
        return {}
    name, scope = found[1], [frame for frame, _ in traceback.walk_tb(exc.__traceback__)][-1].f_globals
    own = scope.get("__name__") == exc.name  # `from . import x`, by the module itself: Python speaks of a circular import then, too
    choices = {name for name in (scope if own else vars(sys.modules.get(str(exc.name), ModuleType("none")))) if type(name) is str}
    folder = os.path.dirname(path) if os.path.basename(path) == "__init__.py" else None
    choices.update(module.name for module in pkgutil.iter_modules([folder] if folder else []))
    try:
        files = os.listdir(folder) if folder else []
        with open(path, encoding="utf-8", errors="replace") as file:
            told = re.search(rf"\b{name}\b", file.read(1 << 20))
    except OSError:
        files, told = [], None
    built = next((file for file in files if file.startswith(name + ".") and file.endswith((".so", ".pyd"))), None)
    facts = {"wanted": name, "meant": close_names(name, choices, 0.6), "cycle": bool(told) and not own and "partially" in str(exc)}
    return {**facts, "library": os.path.join(str(folder), built)} if built else facts


def _innermost(exc: BaseException) -> str | None:
    """Return the file in which an exception was raised."""
    frames = traceback.extract_tb(exc.__traceback__)
    return frames[-1].filename if frames else None


def _meant(exc: AttributeError | NameError) -> list[str]:
    """Return the name that resembles the one which a module, a class or a scope does not have; runs no code of theirs."""
    choices: set[str] = set()
    if isinstance(exc, NameError):
        frames = [frame for frame, _ in traceback.walk_tb(exc.__traceback__)]
        for scope in [frames[-1].f_locals, frames[-1].f_globals, frames[-1].f_builtins] if frames else []:
            choices.update(name for name in scope if type(name) is str)
    elif isinstance(exc.obj, (type, ModuleType)):
        for bearer in type.mro(exc.obj) if isinstance(exc.obj, type) else [exc.obj]:
            choices.update(name for name in vars(bearer) if type(name) is str)
        choices.update(found.name for found in pkgutil.iter_modules(getattr(exc.obj, "__path__", None) or []))
    return close_names(str(exc.name), choices, 0.6)


def close_names(name: str, choices: Iterable[str], cutoff: float) -> list[str]:
    """Return the choice that resembles a name most, whatever the case; an empty list where none does."""
    import difflib

    folded = {choice.lower(): choice for choice in choices if not choice.startswith("__")}
    return [folded[found] for found in difflib.get_close_matches(name.lower(), folded, n=1, cutoff=cutoff)]


def _near(module: str) -> list[str]:
    """Return the modules beside a missing one whose names resemble it; imports nothing."""
    from importlib.machinery import PathFinder

    *parents, last = module.split(".")
    try:
        folders = list(getattr(PathFinder.find_spec(parents[0]), "submodule_search_locations", None) or ()) if parents else None
        if folders is not None:
            folders = [os.path.join(folder, *parents[1:]) for folder in folders]
        names = {found.name for found in pkgutil.iter_modules(folders) if found.name.isidentifier() and found.name != "sglang_plug"}
    except Exception:  # a finder of somebody else: then there is no suggestion
        return []
    return [".".join((*parents, name)) for name in close_names(last, names, 0.6 if parents else 0.8)]
