"""An exception as plain facts, with the place in the plugin's own code. Adds to `activation.describe_error` what a rehearsal needs."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from .activation import describe_error, safe_repr, where

__all__ = ["facts_of", "place_of", "safe_repr", "short_type"]


def short_type(kind: type) -> str:
    """Return `OSError` for a built-in type, `pkg.mod.Name` for others."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def place_of(exc: BaseException) -> dict[str, Any] | None:
    """Return {"file", "line", "function"} of the innermost frame in a plugin's file; in SGLang's where there is none; or None."""
    if isinstance(exc, SyntaxError):
        return where(exc)
    host = os.path.dirname(getattr(sys.modules.get("sglang"), "__file__", None) or "/nowhere/at/all") + os.sep
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
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
    while True:
        below = root.__cause__ or (None if root.__suppress_context__ else root.__context__)
        if below is None or id(below) in seen:
            break
        seen.add(id(below))
        root = below
    facts["root"]["place"] = place_of(root) or facts["place"]
    if isinstance(root, ImportError) and root.name:
        facts["root"]["module"] = root.name
        if isinstance(root, ModuleNotFoundError):
            facts["root"]["near"] = _near(root.name)
    if isinstance(exc, SystemExit):
        facts["code"] = exc.code if isinstance(exc.code, int) or exc.code is None else safe_repr(exc.code)
    if not isinstance(exc, Exception):
        facts["not_an_exception"] = True
    return facts


def _near(module: str) -> list[str]:
    """Return the modules beside a missing one whose names resemble it; imports nothing."""
    import difflib
    import pkgutil
    from importlib.machinery import PathFinder

    *parents, last = module.split(".")
    try:
        folders = list(getattr(PathFinder.find_spec(parents[0]), "submodule_search_locations", None) or ()) if parents else None
        if folders is not None:
            folders = [os.path.join(folder, *parents[1:]) for folder in folders]
        names = {found.name for found in pkgutil.iter_modules(folders)}
    except Exception:  # a finder of somebody else: then there is no suggestion
        return []
    near = difflib.get_close_matches(last, names, n=1, cutoff=0.6 if parents else 0.8)
    return [".".join((*parents, name)) for name in near]
