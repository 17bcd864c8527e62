"""How a dotted or colon name is read. Owns imports behind names and the look-up along the MRO; changes nothing it finds."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import types
from typing import Any, NamedTuple

from sglang_plug.errors import TargetError

_PART = re.compile(r"(?!\d)\w+")


class View:
    """What a reader of names is shown; a patching session overrides it while bindings are yet to be brought up to date."""

    def before_import(self) -> None:
        """Hear that a module is about to be imported."""

    def read(self, module: types.ModuleType, name: str, value: Any) -> Any:
        """Return what `module.name`, found to hold `value`, stands for."""
        return value


class Place(NamedTuple):
    """Where a name leads.

    Attributes:
        text: the name, dotted.
        parent: the module, class or object that holds the last part.
        attribute: the last part.
        raw: what the parent (or the class it inherits from) holds, descriptors untouched.
        original: the function, class or object to wrap.
        kind: `class`, `classmethod`, `staticmethod`, `function` (anything callable) or `value`.
        own: whether the parent itself holds it, rather than a base class.
    """

    text: str
    parent: Any
    attribute: str
    raw: Any
    original: Any
    kind: str
    own: bool

    def dress(self, function: Any) -> Any:
        """Return `function` as the same kind of attribute as the original."""
        if self.kind == "classmethod":
            return classmethod(function)
        return staticmethod(function) if self.kind == "staticmethod" else function


def dotted(text: str) -> str:
    """Return a target's one spelling: the colon is read as a dot (S9.3)."""
    return text.replace(":", ".", 1)


def locate(text: str, view: View | None = None) -> Place:
    """Find what the target `text` names, importing modules on the way.

    Raises:
        TargetError: it is no name, or leads nowhere; `cause` holds the failing import behind it.
        Exception: whatever else an import on the way raises, unchanged.
    """
    view = view or View()
    name = dotted(text)
    *path, attribute = name.split(".")
    if not path or not all(_PART.fullmatch(part) for part in (*path, attribute)):
        raise TargetError(f"not a target: {text!r}", subject=text, hint='write it like "package.module.function"')
    parent = _walk(path, view, name)
    raw, own = _raw(parent, attribute, view, name)
    if isinstance(raw, (classmethod, staticmethod)):
        return Place(name, parent, attribute, raw, raw.__func__, type(raw).__name__, own)
    if isinstance(raw, types.ClassMethodDescriptorType):  # of a class written in C; takes the class itself when it is called
        return Place(name, parent, attribute, raw, raw, "classmethod", own)
    original = raw if isinstance(parent, types.ModuleType) else getattr(parent, attribute)
    kind = "class" if isinstance(original, type) else "function" if callable(original) else "value"
    return Place(name, parent, attribute, raw, original, kind, own)


def load(qualname: str) -> Any:
    """Return the object that `module.Class` or `module:Class` names.

    Raises:
        TargetError: the module has no such attribute.
        Exception: what the import of the module raises, unchanged: it is the reason worth reading.
    """
    module, colon, attributes = qualname.strip().partition(":")
    if colon:
        found: Any = importlib.import_module(module)
        failed = None
        rest = attributes.split(".") if attributes else []
    else:
        parts = module.split(".")
        found, rest, failed = _import_longest(parts, View())
    for position, part in enumerate(rest):
        try:
            found = getattr(found, part)
        except AttributeError:
            if failed is not None and position == 0:
                raise failed from None
            raise _missing(found, part, qualname) from None
    return found


def _walk(path: list[str], view: View, name: str) -> Any:
    """Return the object that `path` names."""
    try:
        found, rest, failed = _import_longest(path, view)
    except ImportError as error:
        raise _unimportable(name, error) from error
    for position, part in enumerate(rest):
        try:
            found = _of_module(found, part, view) if isinstance(found, types.ModuleType) else getattr(found, part)
        except AttributeError:
            if failed is not None and position == 0:
                raise _unimportable(name, failed) from failed
            raise _missing(found, part, name) from None
    return found


def _import_longest(parts: list[str], view: View) -> tuple[Any, list[str], ImportError | None]:
    """Import as much of `parts` as is a module: (module, remaining parts, the import that failed inside a module)."""
    name = parts[0]
    found = _import(name, view)
    for position, part in enumerate(parts[1:], start=1):
        name = f"{name}.{part}"
        try:
            found = _import(name, view)
        except ImportError as error:
            inside = not (isinstance(error, ModuleNotFoundError) and error.name == name)
            return found, parts[position:], error if inside else None
    return found, [], None


def _import(name: str, view: View) -> types.ModuleType:
    if name not in sys.modules:
        package = name.rpartition(".")[0]
        if package and not hasattr(sys.modules[package], "__path__"):
            raise ModuleNotFoundError(f"No module named {name!r}; {package!r} is not a package", name=name)
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        view.before_import()
    return importlib.import_module(name)


def _of_module(module: types.ModuleType, name: str, view: View) -> Any:
    if name in vars(module):
        return view.read(module, name, vars(module)[name])
    view.before_import()  # a module's own __getattr__ may import
    return getattr(module, name)


def _raw(parent: Any, attribute: str, view: View, name: str) -> tuple[Any, bool]:
    """Return what `parent` holds, descriptors untouched, and whether it holds it itself rather than by a base."""
    try:
        if isinstance(parent, types.ModuleType):
            return _of_module(parent, attribute, view), attribute in vars(parent)
        if isinstance(parent, type):
            for owner in parent.__mro__:
                if attribute in vars(owner):
                    return vars(owner)[attribute], owner is parent
        return getattr(parent, attribute), attribute in getattr(parent, "__dict__", ())
    except AttributeError:
        raise _missing(parent, attribute, name) from None


def _missing(parent: Any, attribute: str, text: str) -> TargetError:
    where = f"module {parent.__name__!r}" if isinstance(parent, types.ModuleType) else f"{parent!r}"
    if isinstance(parent, type):
        where = f"class {parent.__qualname__!r}"
    return TargetError(f"{where} has no attribute {attribute!r}", subject=text, hint=_hint(parent, attribute))


def _hint(parent: Any, attribute: str) -> str | None:
    if isinstance(parent, type) and attribute.startswith("__") and hasattr(parent, f"_{parent.__name__}{attribute}"):
        return f"a private name is mangled: write _{parent.__name__}{attribute}"
    from difflib import get_close_matches

    close = get_close_matches(attribute, vars(parent) if hasattr(parent, "__dict__") else dir(parent), n=1)
    return f"did you mean {close[0]!r}?" if close else None


def _unimportable(text: str, error: ImportError) -> TargetError:
    root: BaseException = error
    while root.__cause__ is not None:
        root = root.__cause__
    cause = f"{type(root).__name__}: {root}"
    hint = f'see the whole failure: python -c "import {error.name or text.split(".", maxsplit=1)[0]}"'
    return TargetError(f"the module behind {text!r} does not import: {cause}", subject=text, cause=cause, hint=hint)
