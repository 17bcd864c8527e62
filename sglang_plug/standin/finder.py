"""Makes `import sglang` find the stand-in, only where no real SGLang is installed. Owns one `sys.meta_path` entry; imports nothing else.

Standard library and Python 3.10 only, and loadable by file path: it runs in interpreters where sglang-plug is not installed, and then lets
them find `sglang_plug` too, on which the stand-in stands.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))
_PLACES = {"sglang": os.path.join(_HERE, "sglang"), "sglang_plug": os.path.dirname(_HERE)}


class StandinFinder(MetaPathFinder):
    """Answers the top-level names `sglang` and `sglang_plug` when nobody else does."""

    def __init__(self) -> None:
        self._asking = False

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the stand-in's spec, or None for other names and where the real package is installed."""
        if path is not None or fullname not in _PLACES or self._asking:
            return None
        self._asking = True  # a finder that asks `importlib.util.find_spec` in turn must not meet us again
        try:
            if elsewhere(fullname) is not None:
                return None
        finally:
            self._asking = False
        place = _PLACES[fullname]
        return importlib.util.spec_from_file_location(fullname, os.path.join(place, "__init__.py"), submodule_search_locations=[place])


def elsewhere(name: str = "sglang") -> ModuleSpec | None:
    """Return the spec that the other finders give for top-level `name`, or None.

    A directory without `__init__.py` that carries the name is no installation, though Python would import it as a namespace package.
    """
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is None or _is_ours(finder):
            continue
        spec: ModuleSpec | None = find(name, None, None)
        if spec is not None and spec.origin is not None:  # a namespace package has no origin
            return spec
    return None


def bare_directories(name: str = "sglang") -> list[str]:
    """Return the directories on `sys.path` that carry `name` without being a package: they are no installation."""
    spec = importlib.machinery.PathFinder.find_spec(name)
    if spec is None or spec.origin is not None:
        return []
    return [place for place in spec.submodule_search_locations or () if place not in _PLACES.values()]


def install() -> StandinFinder:
    """Put the finder first on `sys.meta_path`, once, and return it.

    First, because the path finder behind it would answer a bare directory with a namespace package.
    """
    for finder in sys.meta_path:
        if _is_ours(finder):
            return finder  # type: ignore[return-value]
    ours = StandinFinder()
    sys.meta_path.insert(0, ours)
    return ours


def installed() -> bool:
    """Tell whether this process has the finder."""
    return any(_is_ours(finder) for finder in sys.meta_path)


def _is_ours(finder: object) -> bool:
    """Tell by name and file: a copy loaded by path has another module name, hence another class."""
    kind = type(finder)
    module = sys.modules.get(kind.__module__)
    return kind.__name__ == "StandinFinder" and (kind is StandinFinder or _same_file(getattr(module, "__file__", None)))


def _same_file(path: str | None) -> bool:
    return path is not None and os.path.realpath(path) == os.path.realpath(__file__)
