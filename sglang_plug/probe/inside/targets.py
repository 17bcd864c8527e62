"""What a hook target is before the host patches it, and what still points at the original afterwards. Facts only."""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import inspect
import pkgutil
import sys
import types
from typing import TYPE_CHECKING, Any

from . import failures, functions, stale

if TYPE_CHECKING:
    from collections.abc import Callable

#: Attributes that a wrapper made by functools.wraps does not have.
_LOST = (
    "cache_clear",
    "cache_info",
    "cache_parameters",
    "__getitem__",
    "run",
    "warmup",
    "fn",
    "register",
    "dispatch",
    "_torchdynamo_orig_callable",
)
_SIMPLE = (int, float, complex, str, bytes, bool, type(None), tuple, list, dict, set, frozenset)


class Targets:
    """The targets of one application: `look` before each patch, `report` at the end."""

    def __init__(self, entries: Callable[[], list[tuple[str, str, Any, Any]]], patched: Callable[[], set[str]]) -> None:
        self._entries = entries
        self._patched = patched
        self._seen: dict[str, dict[str, Any]] = {}
        self._originals: dict[str, Any] = {}

    def look(self, target: str) -> None:
        """Take the facts of one target, as the host is about to resolve it."""
        if target in self._seen:
            return
        rows = [row for row in self._entries() if row[0] == target]
        facts, original = examine(target)
        if facts.get("subclasses"):
            new = {failures.short_type(hook) for _, _, hook, _ in rows if isinstance(hook, type)}
            facts["subclasses"] = [name for name in facts["subclasses"] if name not in new]
        facts["recursive"] = [name for _, kind, hook, _ in rows if kind == "replace" for name in _rebound(hook, original)]
        self._seen[target] = facts
        if original is not None and not isinstance(original, _SIMPLE):
            self._originals[target] = original

    def report(self) -> dict[str, Any]:
        """Return the facts of every registered target: what it is, whether it was patched, and what still holds the original."""
        for target, _, _, _ in self._entries():
            self.look(target)  # registered and never reached by the host
        done = self._patched()
        left = stale.bindings({name: original for name, original in self._originals.items() if name in done})
        result = {}
        for target, facts in self._seen.items():
            hooks = [self._row(kind, hook, source) for name, kind, hook, source in self._entries() if name == target]
            result[target] = {**facts, "patched": target in done, "stale": left.get(target, []), "hooks": hooks}
        return result

    @staticmethod
    def _row(kind: str, hook: Any, source: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "name": getattr(hook, "__qualname__", None) or failures.safe_repr(hook)[:120],
            "module": getattr(hook, "__module__", None),
            "is_class": isinstance(hook, type),
            "source": getattr(source, "plugin_name", None),
            "dist": getattr(source, "dist_name", None),
        }


def _rebound(hook: Any, original: Any) -> list[str]:
    """Return global names that a replacement uses and that hold the original: the host will make them point at the replacement."""
    if original is None or isinstance(original, _SIMPLE):
        return []
    members = vars(hook).values() if isinstance(hook, type) else [hook]
    found = set()
    for member in members:
        function = inspect.unwrap(getattr(member, "__func__", member)) if callable(getattr(member, "__func__", member)) else None
        scope = getattr(function, "__globals__", None)
        if scope is not None:
            used = functions.names_used(function)
            found |= {name for name in used if scope.get(name) is original}
            found |= {
                path for name in used for path in _paths(scope.get(name), original, used, name) if path in functions.source_of(function)
            }
    if isinstance(hook, type) and found:
        found = {name for name in found if _called_on_class(hook, name)}
    return sorted(found)


def _paths(holder: Any, original: Any, used: set[str], path: str) -> list[str]:
    """Return the dotted names by which code that reads the names `used` may reach the original through a module."""
    if not isinstance(holder, types.ModuleType):
        return []
    inner = [(name, vars(holder).get(name)) for name in used if path.count(".") < 8]
    direct = [f"{path}.{name}" for name, value in inner if value is original]
    return direct + [deep for name, value in inner if value is not holder for deep in _paths(value, original, used, f"{path}.{name}")]


def _called_on_class(hook: type, name: str) -> bool:
    """True where a method of `hook` calls a method of the class `name` by that name (`Base.m(self)`) instead of by `super()`."""
    import ast
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(hook)))
    except (OSError, SyntaxError, TypeError):
        return False
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
        for node in ast.walk(tree)
    )


def examine(target: str) -> tuple[dict[str, Any], Any]:
    """Resolve a target the way SGLang does and return its facts and the original object; None where it does not resolve."""
    facts: dict[str, Any] = {"target": target}
    path, dot, attribute = target.rpartition(".")
    try:
        if not dot:
            message = f"Invalid target path (need at least module.attr): {target}"
            raise ValueError(message)
        parent = pkgutil.resolve_name(path)
        value = getattr(parent, attribute)
    except BaseException as exc:
        facts["error"] = {**failures.facts_of(exc), **explain(target)}
        return facts, None
    raw = inspect.getattr_static(parent, attribute, value)
    facts["parent"] = "module" if isinstance(parent, types.ModuleType) else "class" if isinstance(parent, type) else type(parent).__name__
    facts["kind"] = kind_of(raw, value)
    if isinstance(parent, type):
        _class_facts(facts, parent, attribute, raw)
    original = getattr(vars(parent).get(attribute), "__func__", value) if isinstance(parent, type) else value
    _origin_facts(facts, parent, original)
    if callable(original):
        facts.update(functions.signature_of(original))
        facts["gives"] = inspect.isfunction(original) and functions.answering(original, None)["mute"] is False
        facts["lost"] = [name for name in _LOST if _has(original, name) and not isinstance(original, type)]
        code = getattr(inspect.unwrap(original) if inspect.isroutine(original) else original, "__code__", None)
        facts["file"], facts["line"] = getattr(code, "co_filename", None), getattr(code, "co_firstlineno", None)
    else:
        facts["value"] = failures.safe_repr(value)[:80]
    if isinstance(original, type):
        facts["subclasses"] = sorted(failures.short_type(kind) for kind in stale.subclasses(original))[:10]
    return facts, original


def _has(original: Any, name: str) -> bool:
    try:
        inspect.getattr_static(type(original) if name.startswith("__") else original, name)
    except AttributeError:
        return False
    return not (inspect.isfunction(original) and name in ("run", "fn", "register", "dispatch") and name not in vars(original))


def kind_of(raw: Any, value: Any) -> str:
    """Return the target's kind in words."""
    if isinstance(raw, property):
        return "property"
    if isinstance(raw, functools.cached_property) or (type(raw).__name__ == "cached_property"):
        return "cached property"
    if isinstance(raw, (classmethod, staticmethod)):
        inner = functions.kind_of(raw.__func__)
        return type(raw).__name__ if inner == "function" else f"{inner} {type(raw).__name__}"
    if isinstance(value, type):
        return "class"
    if not callable(value):
        return "constant"
    return functions.kind_of(value)


def _class_facts(facts: dict[str, Any], parent: type, attribute: str, raw: Any) -> None:
    if attribute not in vars(parent):
        owner = next((kind for kind in parent.__mro__ if attribute in vars(kind)), None)
        facts["inherited_from"] = failures.short_type(owner) if owner else None
    facts["overridden_by"] = sorted(failures.short_type(kind) for kind in stale.subclasses(parent) if attribute in vars(kind))[:10]
    facts["struct"] = any(kind.__module__.partition(".")[0] == "msgspec" for kind in parent.__mro__)
    facts["immutable"] = not parent.__flags__ & (1 << 9)  # no Py_TPFLAGS_HEAPTYPE: setattr is refused
    del raw


def _origin_facts(facts: dict[str, Any], parent: Any, original: Any) -> None:
    """Tell where the object is defined when that is not where the target says."""
    module = getattr(original, "__module__", None)
    if not isinstance(parent, types.ModuleType) or not isinstance(module, str) or module == parent.__name__:
        return
    facts["defined_in"] = module
    holders = [
        name
        for name, other in list(sys.modules.items())
        if isinstance(other, types.ModuleType) and other is not parent and any(held is original for held in list(vars(other).values()))
    ]
    facts["held_by"] = len(holders)
    facts["held_outside"] = sorted({name.partition(".")[0] for name in holders} - {parent.__name__.partition(".")[0]})[:10]
    facts["stdlib"] = module.partition(".")[0] in getattr(sys, "stdlib_module_names", ()) or module == "builtins"


def explain(target: str) -> dict[str, Any]:
    """Return why a target does not resolve: {"reason", "at", "behind", "near"}.

    `reason` is no_dot, colon, bad_name, no_module, import_fails or no_attribute; `behind` is the failure that the host's message hides.
    """
    dotted = target.replace(":", ".", 1)
    if "." not in target:
        return {"reason": "colon" if ":" in target else "no_dot", "at": target, "behind": None, "near": []}
    parts = dotted.split(".")
    if not all(part.isidentifier() for part in parts):
        return {"reason": "bad_name", "at": target, "behind": None, "near": []}
    found: Any = None
    for index, part in enumerate(parts):
        name = ".".join(parts[: index + 1])
        if found is None or isinstance(found, types.ModuleType):
            try:
                found = importlib.import_module(name)
                continue
            except ModuleNotFoundError as exc:
                if not _is_missing(exc, name):
                    return {"reason": "import_fails", "at": name, "behind": failures.facts_of(exc), "near": []}
            except BaseException as exc:
                return {"reason": "import_fails", "at": name, "behind": failures.facts_of(exc), "near": []}
        if found is None:
            return {"reason": "no_module", "at": name, "behind": None, "near": []}
        try:
            found = getattr(found, part)
        except AttributeError:
            last = index + 1 < len(parts) and isinstance(found, types.ModuleType) and hasattr(found, "__path__")
            return {"reason": "no_module" if last else "no_attribute", "at": name, "behind": None, "near": near(found, part)}
        except BaseException as exc:
            return {"reason": "import_fails", "at": name, "behind": failures.facts_of(exc), "near": []}
    if isinstance(found, types.ModuleType):
        _forget(parts)
        return {"reason": "module", "at": target, "behind": None, "near": [f"{dotted}.{name}" for name in _callables(found)[:3]]}
    return {"reason": "colon" if ":" in target else "import_fails", "at": target, "behind": None, "near": []}


def _forget(parts: list[str]) -> None:
    """Undo the import of a submodule: SGLang does not import it, and fails."""
    sys.modules.pop(".".join(parts), None)
    with contextlib.suppress(AttributeError):
        delattr(sys.modules[".".join(parts[:-1])], parts[-1])


def _callables(module: types.ModuleType) -> list[str]:
    """Return the names of a module's own functions and classes."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__ and callable(value)]
    return [name for name in own if not name.startswith("_")]


def _is_missing(exc: ModuleNotFoundError, name: str) -> bool:
    """True where `name` itself, or a parent that is no package, is what was not found."""
    return exc.name is not None and (name == exc.name or name.startswith(exc.name + "."))


def near(holder: Any, name: str) -> list[str]:
    """Return names of `holder` that resemble `name`."""
    names: list[str] = []
    with contextlib.suppress(Exception):  # a stranger's __dir__
        names = [str(entry) for entry in dir(holder) if not str(entry).startswith("__")]
    lower = {entry.lower(): entry for entry in names}
    close = [lower[entry] for entry in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
    words = [entry for entry in names if name.lower() in entry.lower().split("_")]
    return list(dict.fromkeys(close + sorted(words, key=len)))[:3]
