"""A plugin's source as one whole: its files' facts, and how a value is followed through constants, loops, parameters and modules."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.source.guards import Tried, reached
from sglang_plug.checks.source.judging import judge
from sglang_plug.checks.source.walk import read_file
from sglang_plug.contract.folding import Unfoldable, dotted_name, fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.facts import Call, FileFacts, Guards
    from sglang_plug.checks.source.project import Project
    from sglang_plug.checks.source.scopes import Bound, Definition, Scope
    from sglang_plug.contract.catalogue import Release

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_DEPTH = 8
_MANY = 400  # values of one expression: more is no table that a person wrote


@dataclass(frozen=True, eq=False)
class Later:
    """An expression that is evaluated in the place where it was written."""

    node: ast.expr
    scope: Scope
    names: dict[str, Any] = field(default_factory=dict)


class Ambiguous(Exception):
    """A name has several values, and no condition chooses."""


class Plugin:
    """A project's facts and the questions that rules ask across files."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.facts = [read_file(file) for file in project.files if file.problem or _is_relevant(file.text)]
        self.by_module = {facts.file.module: facts for facts in self.facts if facts.file.module}
        self._modules = dict(self.by_module)  # those without the word sglang are read when they are asked for
        self._scopes: dict[ast.AST, Scope] = {}
        self._known_calls: dict[ast.AST, list[Call]] = {}
        for facts in self.facts:
            self._scopes |= facts.scopes

    def module(self, name: str) -> FileFacts | None:
        """Return a module of the project, or None."""
        if name not in self._modules and name in self.project.modules:
            self._modules[name] = read_file(self.project.modules[name])
            self._scopes |= self._modules[name].scopes
        return self._modules.get(name)

    def locate(self, dotted: str) -> tuple[FileFacts, str] | None:
        """Return the project's module that a dotted name lies in, and the rest of the name."""
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            facts = self.module(".".join(parts[:length]))
            if facts is not None:
                return facts, ".".join(parts[length:])
        return None

    # Definitions

    def definition(self, node: ast.AST, scope: Scope, depth: int = 0) -> tuple[Definition, Scope] | None:
        """Return the function or class that an expression names, in this file or another of the project."""
        name = dotted_name(node)
        if name is None or depth > _DEPTH:
            return None
        first, _, rest = name.partition(".")
        bounds = scope.lookup(first)
        if len(bounds) != 1:
            bounds = [bound for bound in bounds if bound.what in {"function", "class"}]
        if len(bounds) != 1:
            return None
        bound = bounds[0]
        if bound.what == "import":
            return self.defined(f"{bound.dotted}.{rest}" if rest else bound.dotted, depth + 1)
        found = self._bound_definition(bound, depth)
        return self._member(found, rest) if found and rest else found

    def defined(self, dotted: str, depth: int = 0) -> tuple[Definition, Scope] | None:
        """Return the function or class of the project that a dotted name leads to, through its re-exports."""
        place = self.locate(dotted)
        if place is None or not place[1] or depth > _DEPTH:
            return None
        facts, path = place
        first, _, rest = path.partition(".")
        bounds = facts.scope.names.get(first, [])
        for bound in reversed(bounds):
            found = self.defined(bound.dotted, depth + 1) if bound.what == "import" else self._bound_definition(bound, depth)
            if found:
                return self._member(found, rest) if rest else found
        return None

    def _bound_definition(self, bound: Bound, depth: int) -> tuple[Definition, Scope] | None:
        if isinstance(bound.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and bound.scope is not None:
            return bound.node, bound.scope
        if bound.what == "value" and isinstance(bound.node, (ast.Name, ast.Attribute)) and bound.scope is not None:
            return self.definition(bound.node, bound.scope, depth + 1)
        return None

    def _member(self, found: tuple[Definition, Scope], path: str) -> tuple[Definition, Scope] | None:
        node, _ = found
        inner = self.scope_of(node)
        if not isinstance(node, ast.ClassDef) or inner is None or "." in path:
            return None
        bounds = [bound for bound in inner.names.get(path, []) if bound.what == "function"]
        return self._bound_definition(bounds[-1], 0) if bounds else None

    def scope_of(self, node: ast.AST) -> Scope | None:
        """Return the scope inside a definition."""
        return self._scopes.get(node)

    # Values

    def values(self, node: ast.expr, scope: Scope, release: Release, names: dict[str, Any] | None = None) -> list[Any]:
        """Return the values that an expression may have on a release; empty where it cannot be read.

        Several values come from a name with several bindings between which no condition decides.
        """
        found: list[Any] = []
        for pick in range(4):
            reading = _Reading(self, release, pick)
            try:
                value = reading.value(node, scope, names or {}, 0)
            except Unfoldable:
                value = None
            if value is not None and value not in found:
                found.append(value)
            if not reading.ambiguous:
                break
        return found

    # Where a call's enclosing function is called from

    @cached_property
    def _callers(self) -> dict[str, list[Call]]:
        found: dict[str, list[Call]] = {}
        for facts in self.facts:
            for call in facts.calls:
                found.setdefault(call.name.rpartition(".")[2], []).append(call)
        return found

    def environments(self, scope: Scope, release: Release, depth: int = 0) -> Iterator[dict[str, Any]]:
        """Yield what loop variables and parameters stand for at a place: one dictionary a turn of the loops and a call of the function."""
        outer: list[dict[str, Any]] = [{}]
        function = scope.function
        if function is not None and depth < 3:
            outer = list(self._bindings_of_calls(function, release, depth)) or [{}]
        for names in outer:
            yield from self._turns(list(scope.loops), names, release)

    def runs(self, guards: Guards, scope: Scope, release: Release, depth: int = 0) -> bool:
        """True where a place is meant to run on a release: its own conditions hold, and those around one of its function's calls."""
        if not reached(guards, release):
            return False
        calls = self._calls_of(scope) if depth < 3 else []
        return not calls or any(self.runs(call.guards, call.scope, release, depth + 1) for call in calls)

    def caught(self, guards: Guards, scope: Scope, what: str, depth: int = 0) -> bool:
        """True where a `try` expects that something is not there: around the place, or, by name, around every call of its function.

        Args:
            what: `catches_imports` or `catches_attributes`.
        """
        if any(isinstance(guard, Tried) and getattr(guard, what) and (guard.named or not depth) for guard in guards):
            return True
        calls = self._calls_of(scope) if depth < 3 else []
        return bool(calls) and all(self.caught(call.guards, call.scope, what, depth + 1) for call in calls)

    def _calls_of(self, scope: Scope) -> list[Call]:
        """The calls of the function around a place, from elsewhere than tests and itself; none where it may be called unseen."""
        function = scope.function
        if function is None:
            return []
        if function not in self._known_calls:
            calls = [call for call in self._callers.get(function.name, []) if self._calls_function(call, function)]
            calls = [call for call in calls if call.scope.function is not function and not call.scope.file.is_test]
            self._known_calls[function] = [] if self._is_declared(function.name) else calls
        return self._known_calls[function]

    def _is_declared(self, name: str) -> bool:
        return any(entry.value.strip().endswith(f":{name}") for entry in self.project.declared.entries)

    def _bindings_of_calls(self, function: Function, release: Release, depth: int) -> Iterator[dict[str, Any]]:
        parameters = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        if not [name for name in parameters if name not in {"self", "cls"}]:
            return
        for call in self._callers.get(function.name, []):
            if not self._calls_function(call, function) or not reached(call.guards, release):
                continue
            for names in self.environments(call.scope, release, depth + 1):
                yield _bind_arguments(function, call, names)

    def _calls_function(self, call: Call, function: Function) -> bool:
        found = self.definition(call.node.func, call.scope)
        if found is not None:
            return found[0] is function
        owner = call.name.rpartition(".")[0]
        inner = self.scope_of(function)
        return owner in {"self", "cls"} and inner is not None and inner.file is call.scope.file

    def _turns(self, loops: list[tuple[ast.expr, ast.expr, Scope]], names: dict[str, Any], release: Release) -> Iterator[dict[str, Any]]:
        if not loops:
            yield names
            return
        target, iterable, scope = loops[0]
        items: list[Any] = []
        for part in _summands(iterable):  # `KNOWN + from_environment()`: what can be read is read
            values = self.values(part, scope, release, names)
            listed = _listed(values[0]) if len(values) == 1 else None
            items += [part] if listed is None else listed
        for count, item in enumerate(items):
            if count > _MANY:
                return
            bound = dict(names)
            if _unpack(target, item, bound, scope, names) or isinstance(item, ast.expr):
                yield from self._turns(loops[1:], bound, release)


class _Reading:
    """One attempt to read an expression's value: at an ambiguous name it takes the `pick`-th binding."""

    def __init__(self, plugin: Plugin, release: Release, pick: int) -> None:
        self.plugin = plugin
        self.release = release
        self.pick = pick
        self.ambiguous = False

    def value(self, node: ast.expr, scope: Scope, names: dict[str, Any], depth: int) -> Any:
        if depth > _DEPTH:
            raise Unfoldable("too deep")
        if isinstance(node, ast.IfExp) and (verdict := judge(node.test, scope, self.release)) is not None:
            return self.value(node.body if verdict else node.orelse, scope, names, depth + 1)
        return fold(node, lambda name: self._name(name, scope, names, depth))

    def _name(self, name: str, scope: Scope, names: dict[str, Any], depth: int) -> Any:
        first, _, rest = name.partition(".")
        if first in names:
            found = names[first]
            if isinstance(found, Later):
                return self.value(_join(found.node, rest), found.scope, found.names, depth + 1)
            if rest:
                raise KeyError(name)
            return found
        bounds = [bound for bound in scope.lookup(first) if all(guard.state(self.release) is not False for guard in bound.guards)]
        bound = self._choose(bounds, scope)
        if bound.what == "import":
            return self._imported(f"{bound.dotted}.{rest}" if rest else bound.dotted, depth)
        if bound.what == "class" and rest:
            return self._class_attribute(bound.node, rest, depth)
        if rest or bound.scope is None or not isinstance(bound.node, ast.expr):
            raise KeyError(name)
        if bound.what == "value" or (bound.what == "parameter" and not bound.guards):
            return self.value(bound.node, bound.scope.parent or bound.scope if bound.what == "parameter" else bound.scope, names, depth + 1)
        if bound.what == "unpacked" and bound.target is not None:
            bound_names: dict[str, Any] = {}
            if _unpack(bound.target, self.value(bound.node, bound.scope, names, depth + 1), bound_names, bound.scope, names):
                return bound_names[first]
        raise KeyError(name)

    def _choose(self, bounds: list[Bound], scope: Scope) -> Bound:
        if not bounds:
            raise KeyError("unbound")
        if any(bound.what == "other" for bound in bounds):
            raise KeyError("changed")
        certain = [bound for bound in bounds if all(guard.state(self.release) for guard in bound.guards)]
        if len(bounds) > 1 and len(certain) == len(bounds):
            return bounds[-1]  # assigned again: the last one holds
        if len(bounds) > 1:
            self.ambiguous = True
            return bounds[min(self.pick, len(bounds) - 1)]
        return bounds[0]

    def _imported(self, dotted: str, depth: int) -> Any:
        if dotted.partition(".")[0] == "sglang":
            return self._host_name(dotted)
        place = self.plugin.locate(dotted)
        if place is None or not place[1]:
            raise KeyError(dotted)
        facts, path = place
        return self._name(path, facts.scope, {}, depth + 1)

    def _host_name(self, dotted: str) -> str:
        """`Scheduler.__module__` and its like, of a class or function of the host."""
        owner, _, attribute = dotted.rpartition(".")
        symbol = self.release.find(owner) if attribute in {"__module__", "__name__", "__qualname__"} else None
        if symbol is None:
            raise KeyError(dotted)
        if symbol.kind == "module":
            return symbol.origin
        parts = symbol.origin.split(".")
        split = next(index for index in range(len(parts), 0, -1) if self.release.has_module(".".join(parts[:index])))
        return {"__module__": ".".join(parts[:split]), "__qualname__": ".".join(parts[split:]), "__name__": parts[-1]}[attribute]

    def _class_attribute(self, node: ast.AST | None, path: str, depth: int) -> Any:
        inner = self.plugin.scope_of(node) if node is not None else None
        first = path.partition(".")[0]  # an enumeration's `.value` is the value itself
        if inner is None or path.partition(".")[2] not in {"", "value"} or first not in inner.names:
            raise KeyError(path)
        return self._name(first, inner, {}, depth + 1)


def _listed(value: Any) -> list[Any] | None:
    """The items of something that a loop runs over, or None."""
    if isinstance(value, (str, bytes, ast.AST)) or not hasattr(value, "__iter__"):
        return None
    return list(value)


def _summands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_summands(node.left), *_summands(node.right)]
    return [node]


def _join(node: ast.expr, rest: str) -> ast.expr:
    for name in filter(None, rest.split(".")):
        node = ast.Attribute(value=node, attr=name, ctx=ast.Load())
    return node


def _unpack(target: ast.expr, item: Any, names: dict[str, Any], scope: Scope, outer: dict[str, Any]) -> bool:
    """Bind a loop's target; parts that are still expressions are kept with their place. False where the shapes differ."""
    if isinstance(target, ast.Name):
        names[target.id] = Later(item, scope, outer) if isinstance(item, ast.expr) else item
        return True
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(item, ast.Call):  # a row built by a class: `Row("target", hook)` unpacks as its arguments do
            return False
        parts = item.elts if isinstance(item, (ast.Tuple, ast.List)) else item
        if not isinstance(parts, (list, tuple)) or len(parts) != len(target.elts):
            return False
        return all(_unpack(part, value, names, scope, outer) for part, value in zip(target.elts, parts, strict=True))
    return False


def _bind_arguments(function: Function, call: Call, outer: dict[str, Any]) -> dict[str, Any]:
    parameters = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    if parameters and parameters[0] in {"self", "cls"}:
        parameters = parameters[1:]
    names: dict[str, Any] = {}
    for name, value in zip(parameters, call.node.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        names[name] = Later(value, call.scope, outer)
    for word in call.node.keywords:
        if word.arg:
            names[word.arg] = Later(word.value, call.scope, outer)
    return names


def _is_relevant(text: bytes) -> bool:
    return b"sglang" in text or b"HookRegistry" in text
