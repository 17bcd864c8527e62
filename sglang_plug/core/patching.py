"""The only setattr on other people's modules. Owns patches, their propagation and their way back; knows nothing of registries.

A `Session` applies patches one after the other and brings the bindings that `from x import y` left in other modules up to date in one
walk over `sys.modules`, instead of one walk a patch. The walk comes early only where somebody could see the difference: before a
module is imported, and where a name is read that waits for it.
"""

from __future__ import annotations

import logging
import sys
import types
from typing import Any

from sglang_plug.core.objects import Place, View

_log = logging.getLogger(__name__)
# Equal values of these types are one object in many modules, none of which imported it from another.
_SHARED = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset, type(Ellipsis), type(NotImplemented))
_ABSENT = object()


class Patch:
    """One changed attribute, with every binding that was brought in line.

    Attributes:
        place: what was changed.
        new: what the attribute holds since.
        alias: what modules that had imported the original hold since (a function, where `new` is a class or static method).
        bindings: (module, name) of each.
    """

    def __init__(self, place: Place, new: Any, alias: Any, bindings: list[tuple[types.ModuleType, str]] | None = None) -> None:
        self.place = place
        self.new = new
        self.alias = alias
        self.bindings = [] if bindings is None else bindings
        self.reverted = False

    def revert(self) -> bool:
        """Put the original back wherever the patch still stands; what somebody else changed since is left alone.

        Returns:
            Whether the changed attribute holds the original again.
        """
        if self.reverted:
            return False
        self.reverted = True
        for module, name in reversed(self.bindings):
            if vars(module).get(name, _ABSENT) is self.alias:
                _set(module, name, self.place.original)
        place = self.place
        holder = getattr(place.parent, "__dict__", {})
        if holder.get(place.attribute, _ABSENT) is not self.new:
            return False
        if place.own:
            setattr(place.parent, place.attribute, place.raw)
        else:
            delattr(place.parent, place.attribute)
        return True


class Session(View):
    """Patches applied together. Call `finish` at the end, whatever happened."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[tuple[int, Patch]]] = {}
        self._count = 0

    def patch(self, place: Place, function: Any) -> Patch:
        """Put `function` where `place` is, dressed as the kind of attribute that the original is.

        Raises:
            Exception: the parent refuses the attribute; nothing has changed then.
        """
        new = place.dress(function)
        setattr(place.parent, place.attribute, new)
        patch = Patch(place, new, function)
        if function is not place.original and not isinstance(place.original, _SHARED):
            self._count += 1
            self._waiting.setdefault(id(place.original), []).append((self._count, patch))
        return patch

    def before_import(self) -> None:
        """Bring all bindings up to date: the imported module may read any of them."""
        self.finish()

    def read(self, module: types.ModuleType, name: str, value: Any) -> Any:
        """Return what `module.name` holds once it is up to date, and bring it there."""
        return self._update(module, name, value) if id(value) in self._waiting else value

    def finish(self) -> None:
        """Bring every binding of every module up to date, in one walk."""
        if not self._waiting:
            return
        ids = set(self._waiting)
        for module in list(sys.modules.values()):
            try:
                if not isinstance(module, types.ModuleType):
                    continue
                names = vars(module).copy()
            except Exception as error:  # noqa: BLE001 -- anything may stand in sys.modules; the others must still be reached
                _log.debug("passing over %s in sys.modules: %s", type(module), error)
                continue
            # Nearly all of the time is spent on these two lines, which run in C.
            held = list(map(id, names.values()))
            found = ids.intersection(held)
            if found:
                for identity, (name, value) in zip(held, names.items()):  # noqa: B905 -- as long as each other
                    if identity in found:
                        self._update(module, name, value)
        self._waiting = {}

    def _update(self, module: types.ModuleType, name: str, value: Any) -> Any:
        """Follow the patches of `value` in the order in which they were applied, passing over those made on `module` itself."""
        last = 0
        while True:
            for count, patch in self._waiting.get(id(value), ()):
                if count > last and patch.place.parent is not module:
                    break
            else:
                return value
            if not _set(module, name, patch.alias):
                return value
            patch.bindings.append((module, name))
            last, value = count, patch.alias


def _set(module: types.ModuleType, name: str, value: Any) -> bool:
    try:
        setattr(module, name, value)
    except Exception as error:  # noqa: BLE001 -- a module may refuse; its binding stays what it was
        _log.debug("%s.%s keeps its value: %s", module.__name__, name, error)
        return False
    return True
