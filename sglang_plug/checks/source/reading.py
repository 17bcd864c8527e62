"""How an expression of a plugin is read: through names, modules, tables, records, instances and its own plain functions. Runs nothing."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sglang_plug.checks.source.judging import judge
from sglang_plug.contract.folding import Record, Unfoldable, dotted_name, fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sglang_plug.checks.source.facts import FileFacts
    from sglang_plug.checks.source.scopes import Bound, Definition, Scope
    from sglang_plug.contract.catalogue import Release

MANY = 12_000  # values of one expression, turns of one loop: more is no table that a person wrote
_DEPTH = 12
_ENUMS = frozenset({"Enum", "StrEnum", "IntEnum", "Flag"})
_PASSING: dict[str, Callable[..., Any]] = {
    "types.MappingProxyType": dict,
    "collections.OrderedDict": dict,
    "copy.copy": lambda value: value,
    "copy.deepcopy": lambda value: value,
    "textwrap.dedent": textwrap.dedent,
    "inspect.cleandoc": inspect.cleandoc,
    "json.loads": json.loads,
    "itertools.chain": lambda *parts: [item for part in parts for item in part],
    "itertools.chain.from_iterable": lambda parts: [item for part in parts for item in part],
    "itertools.product": lambda *parts: list(itertools.product(*parts)),
}


class Source(Protocol):
    """What reading asks of the plugin's source as a whole."""

    def module(self, name: str) -> FileFacts | None: ...
    def locate(self, dotted: str) -> tuple[FileFacts, str] | None: ...
    def definition(self, node: ast.AST, scope: Scope) -> tuple[Definition, Scope] | None: ...
    def scope_of(self, node: ast.AST) -> Scope | None: ...
    def environments(self, scope: Scope, release: Release, depth: int = 0) -> Iterator[dict[str, Any]]: ...
    def lineage(self, cls: ast.ClassDef) -> list[ast.ClassDef]: ...
    def assigned_to_self(self, cls: ast.ClassDef, name: str) -> list[tuple[ast.AST, ast.expr]]: ...
    def fields(self, cls: ast.ClassDef) -> tuple[str, ...]: ...
    def constructed(self, cls: ast.ClassDef, node: ast.Call, scope: Scope, names: dict[str, Any]) -> dict[str, Any]: ...
    def is_method(self, function: Any) -> bool: ...


@dataclass(frozen=True, eq=False)
class Later:
    """An expression that is evaluated in the place where it was written."""

    node: ast.expr
    scope: Scope
    names: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Instance:
    """An object of a class of the plugin.

    Attributes:
        cls: the class.
        names: what its constructor's parameters stand for.
    """

    plugin: Source
    release: Release
    cls: ast.ClassDef
    names: dict[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> Any:
        """Return an attribute: set in a method, else on the class, else on a base.

        Raises:
            KeyError: it cannot be read.
        """
        for cls in self.plugin.lineage(self.cls):
            scope = self.plugin.scope_of(cls)
            assigned = [found for found in self.plugin.assigned_to_self(cls, name) if not _is_none(found[1])]
            if len(assigned) > 1:
                raise KeyError(name)  # set again somewhere: nobody can tell when
            for method, value in assigned:
                inner = self.plugin.scope_of(method)
                if inner is not None:
                    return Reading(self.plugin, self.release).value(value, inner, {**self.names, _self_name(method): self}, 1)
            if name in self.names and scope is not None and name in self.plugin.fields(cls):
                return Reading(self.plugin, self.release).settle(self.names[name])
            if scope is not None and any(bound.what == "value" for bound in scope.names.get(name, ())):
                return Reading(self.plugin, self.release).value(ast.Name(name, ast.Load()), scope, {}, 1)
        getter = self.method(name)
        if getter is None or not any((dotted_name(mark) or "").endswith("property") for mark in getter.decorator_list):
            raise KeyError(name)
        return Reading(self.plugin, self.release).returned(getter, {_self_name(getter): self}, 1)

    def method(self, name: str) -> ast.FunctionDef | None:
        """Return a method of its class, or of a base."""
        for cls in self.plugin.lineage(self.cls):
            for node in cls.body:
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    return node
        return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _self_name(method: ast.AST) -> str:
    args = getattr(method, "args", None)
    first = [*args.posonlyargs, *args.args][:1] if args is not None else []
    return first[0].arg if first else "self"


class Reading:
    """One attempt to read an expression's value: at an ambiguous name it takes the `pick`-th binding."""

    def __init__(self, plugin: Source, release: Release, pick: int = 0) -> None:
        self.plugin = plugin
        self.release = release
        self.pick = pick
        self.ambiguous = False

    def value(self, node: ast.expr, scope: Scope, names: dict[str, Any], depth: int) -> Any:
        """Return an expression's value.

        Raises:
            Unfoldable: it cannot be read.
        """
        if depth > _DEPTH:
            raise Unfoldable("too deep")
        if isinstance(node, ast.IfExp) and (verdict := judge(node.test, scope, self.release)) is not None:
            return self.value(node.body if verdict else node.orelse, scope, names, depth + 1)
        if isinstance(node, ast.Compare) and (verdict := judge(node, scope, self.release)) is not None:
            return verdict
        line = getattr(node, "lineno", 0)
        return fold(
            node,
            lambda name: self._name(name, scope, names, depth, line),
            lambda call, local: self._call(call, scope, {**names, **local}, depth),
        )

    def settle(self, item: Any) -> Any:
        """Return what an item of an environment stands for."""
        return self.value(item.node, item.scope, item.names, 1) if isinstance(item, Later) else item

    def _name(self, name: str, scope: Scope, names: dict[str, Any], depth: int, line: int) -> Any:
        first, _, rest = name.partition(".")
        if first in names:
            found = names[first]
            if isinstance(found, Later):
                return self.value(_join(found.node, rest), found.scope, found.names, depth + 1)
            if isinstance(found, ast.expr):
                return self.value(_join(found, rest), scope, {key: item for key, item in names.items() if key != first}, depth + 1)
            for part in filter(None, rest.split(".")):
                if not hasattr(found, "part"):
                    raise KeyError(name)
                found = found.part(part)
            return found
        bounds = [bound for bound in scope.lookup(first) if all(guard.state(self.release) is not False for guard in bound.guards)]
        if not bounds:
            return self._starred(name, scope, depth)
        bound = self._choose(bounds, scope, line)
        if bound.what == "import":
            return self._imported(f"{bound.dotted}.{rest}" if rest else bound.dotted, depth)
        if bound.what == "class" and isinstance(bound.node, ast.ClassDef):
            return self._class_attribute(bound.node, rest, depth) if rest else self._members(bound.node, depth)
        if bound.scope is None or not isinstance(bound.node, ast.expr):
            raise KeyError(name)
        if bound.what == "value" or (bound.what == "parameter" and not bound.guards):
            place = bound.scope.parent or bound.scope if bound.what == "parameter" else bound.scope
            inner = names if bound.what == "value" else {}
            if rest:
                return self.value(_join(bound.node, rest), place, inner, depth + 1)
            return self._changed(first, self.value(bound.node, place, inner, depth + 1), scope, bound, line)
        if bound.what == "unpacked" and bound.target is not None and not rest:
            bound_names: dict[str, Any] = {}
            if unpack(bound.target, self.value(bound.node, bound.scope, names, depth + 1), bound_names, bound.scope, names):
                return bound_names[first]
        raise KeyError(name)

    def _choose(self, bounds: list[Bound], scope: Scope, line: int) -> Bound:
        if any(bound.what == "other" for bound in bounds):
            raise KeyError("changed")
        certain = [bound for bound in bounds if all(guard.state(self.release) for guard in bound.guards)]
        if len(bounds) > 1 and len(certain) == len(bounds):
            before = [bound for bound in bounds if bound.scope is scope and line and getattr(bound.node, "lineno", 0) < line]
            return (before or bounds)[-1]  # assigned again: the last one holds
        if len(bounds) > 1:
            self.ambiguous = True
            return bounds[min(self.pick, len(bounds) - 1)]
        return bounds[0]

    def _changed(self, name: str, value: Any, scope: Scope, bound: Bound, line: int) -> Any:
        """A table after what was appended to it, and a text after what was added to it above this line."""
        changes = bound.scope.changes_of(name) if bound.scope is not None else ()
        for change in changes:
            if change.how == "-":
                raise KeyError("taken away")
            if isinstance(value, (list, dict, set)):
                if change.place is not scope or change.line < line or scope.parent is None:
                    value = self._apply(value, change)
            elif change.place is not scope or change.in_loop:
                raise KeyError("changed")
            elif change.line < line and change.line > getattr(bound.node, "lineno", 0):
                value = value + self.value(change.value, change.place, {}, 1)
        return value

    def _apply(self, value: Any, change: Any) -> Any:
        value = value.copy()
        if any(guard.state(self.release) is False for guard in change.guards):
            return value
        for names in self.plugin.environments(change.place, self.release, 1):
            added = self._part(change.value, change.place, names, 1)
            if change.how == "[]=":
                value[self.value(change.key, change.place, names, 1)] = added
            elif change.how in {"append", "insert", "add"}:
                value.add(added) if isinstance(value, set) else value.append(added)
            elif isinstance(value, list):
                value.extend(added)
            else:
                value.update(added)
        return value

    def _starred(self, name: str, scope: Scope, depth: int) -> Any:
        """A name that came with `from .constants import *`."""
        for module in scope.module.stars:
            place = self.plugin.module(module)
            if place is not None and name.partition(".")[0] in place.scope.names:
                return self._name(name, place.scope, {}, depth + 1, 0)
        raise KeyError(name)

    def _imported(self, dotted: str, depth: int) -> Any:
        if dotted.partition(".")[0] == "sglang":
            return self._host_name(dotted)
        place = self.plugin.locate(dotted)
        if place is None or not place[1]:
            raise KeyError(dotted)
        facts, path = place
        return self._name(path, facts.scope, {}, depth + 1, 0)

    def _host_name(self, dotted: str) -> str:
        """`sglang.__version__`, `Scheduler.__module__` and its like, of a class or function of the host."""
        if dotted in {"sglang.__version__", "sglang.version.__version__"}:
            return self.release.version
        owner, _, attribute = dotted.rpartition(".")
        symbol = self.release.find(owner) if attribute in {"__module__", "__name__", "__qualname__"} else None
        if symbol is None:
            raise KeyError(dotted)
        if symbol.kind == "module":
            return symbol.origin
        parts = symbol.origin.split(".")
        split = next(index for index in range(len(parts), 0, -1) if self.release.has_module(".".join(parts[:index])))
        return {"__module__": ".".join(parts[:split]), "__qualname__": ".".join(parts[split:]), "__name__": parts[-1]}[attribute]

    # Classes and functions of the plugin

    def _class_attribute(self, node: ast.ClassDef, path: str, depth: int) -> Any:
        inner = self.plugin.scope_of(node)
        first, _, rest = path.partition(".")  # an enumeration's `.value` is the value itself
        if inner is None or rest not in {"", "value"} or first not in inner.names:
            raise KeyError(path)
        return self._name(first, inner, {}, depth + 1, 0)

    def _members(self, node: ast.ClassDef, depth: int) -> list[Record]:
        """The members of an enumeration, as a loop over the class yields them."""
        inner = self.plugin.scope_of(node)
        if inner is None or not any((dotted_name(base) or "").rpartition(".")[2] in _ENUMS for base in node.bases):
            raise KeyError(node.name)
        named = [name for name, bounds in inner.names.items() if not name.startswith("_") and bounds[-1].what == "value"]
        return [Record.of({"value": self._name(name, inner, {}, depth + 1, 0), "name": name}) for name in named]

    def _call(self, node: ast.Call, scope: Scope, names: dict[str, Any], depth: int) -> Any:
        """A call of a known function of the standard library, a record's class, or a function that only returns."""
        if depth > _DEPTH:
            raise Unfoldable("too deep")
        dotted = next(iter(scope.candidates(node.func)), None) or dotted_name(node.func) or ""
        if dotted == "typing.cast" and len(node.args) == 2:
            return self.value(node.args[1], scope, names, depth + 1)
        if dotted in _PASSING and not node.keywords:
            return _PASSING[dotted](*(self.value(argument, scope, names, depth + 1) for argument in node.args))
        if dotted == "types.SimpleNamespace" and not node.args:
            return Record.of({word.arg: self._part(word.value, scope, names, depth) for word in node.keywords if word.arg})
        fields = self._named_tuple(node.func, scope, depth)
        if fields:
            return self._record(fields, node, scope, names, depth)
        owner = self._owner(node.func, scope, names, depth)
        method = owner.method(node.func.attr) if owner is not None and isinstance(node.func, ast.Attribute) else None
        if method is not None and self.plugin.is_method(method):
            return self.returned(method, {**bind_arguments(method, node, scope, names, method=True), _self_name(method): owner}, depth)
        found = self.plugin.definition(node.func, scope)
        if found is None:
            raise KeyError(dotted)
        definition = found[0]
        if isinstance(definition, ast.ClassDef):
            return self._made(definition, node, scope, names, depth)
        bound = bind_arguments(definition, node, scope, names, method=self.plugin.is_method(definition))
        return self.returned(definition, bound, depth)

    def _owner(self, node: ast.expr, scope: Scope, names: dict[str, Any], depth: int) -> Instance | None:
        """The object of the plugin's own that a method is called on."""
        try:
            owner = self.value(node.value, scope, names, depth + 1) if isinstance(node, ast.Attribute) else None
        except Unfoldable:
            return None
        return owner if isinstance(owner, Instance) else None

    def _part(self, node: ast.expr, scope: Scope, names: dict[str, Any], depth: int) -> Any:
        try:
            return self.value(node, scope, names, depth + 1)
        except Unfoldable:
            return Later(node, scope, names)

    def _named_tuple(self, node: ast.expr, scope: Scope, depth: int) -> tuple[str, ...]:
        """The fields of `Row = namedtuple("Row", "target hook")`."""
        bounds = scope.lookup(node.id) if isinstance(node, ast.Name) else []
        made = bounds[0].node if len(bounds) == 1 and bounds[0].what == "value" else None
        if not isinstance(made, ast.Call) or (dotted_name(made.func) or "").rpartition(".")[2] != "namedtuple" or len(made.args) < 2:
            return ()
        fields = self.value(made.args[1], bounds[0].scope or scope, {}, depth + 1)
        return tuple(fields.replace(",", " ").split() if isinstance(fields, str) else fields)

    def _record(self, fields: tuple[str, ...], node: ast.Call, scope: Scope, names: dict[str, Any], depth: int) -> Record:
        given = dict(zip(fields, node.args, strict=False)) | {word.arg: word.value for word in node.keywords if word.arg}
        return Record.of({name: self._part(given[name], scope, names, depth) for name in fields if name in given})

    def _made(self, cls: ast.ClassDef, node: ast.Call, scope: Scope, names: dict[str, Any], depth: int) -> Any:
        if any((dotted_name(base) or "").rpartition(".")[2] == "NamedTuple" for base in cls.bases):
            return self._record(tuple(self.plugin.fields(cls)), node, scope, names, depth)
        return Instance(self.plugin, self.release, cls, self.plugin.constructed(cls, node, scope, names))

    def _answer(self, body: list[ast.stmt], scope: Scope) -> ast.expr | None:
        """What a body returns on this release, where its conditions can be judged.

        Raises:
            KeyError: they cannot, or a loop or a `try` stands before the answer.
        """
        for node in body:
            if isinstance(node, ast.Return):
                return node.value
            if isinstance(node, ast.If):
                verdict = judge(node.test, scope, self.release)
                if verdict is None:
                    raise KeyError("condition")
                found = self._answer(node.body if verdict else node.orelse, scope)
                if found is not None:
                    return found
            elif any(isinstance(part, ast.Return) for part in ast.walk(node)) and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                raise KeyError("loop")
        return None

    def returned(self, function: ast.FunctionDef | ast.AsyncFunctionDef, names: dict[str, Any], depth: int) -> Any:
        """Return what a function gives whose way to its answer can be judged, or that has nothing but plain yields.

        Raises:
            Unfoldable: it cannot be read.
        """
        inner = self.plugin.scope_of(function)
        returns, yields = _own_results(function)
        if inner is None or isinstance(function, ast.AsyncFunctionDef):
            raise KeyError(function.name)
        answer = self._answer(function.body, inner) if returns and not yields else None
        if answer is not None:
            return self.value(answer, inner, names, depth + 1)
        plain = [node.value.value for node in function.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield)]
        if yields and len(plain) == len(yields) and not returns and None not in plain:
            return [self._part(value, inner, names, depth) for value in plain if value is not None]
        raise KeyError(function.name)


def _own_results(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[list[ast.Return], list[ast.Yield | ast.YieldFrom]]:
    returns: list[ast.Return] = []
    yields: list[ast.Yield | ast.YieldFrom] = []
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return):
            returns.append(node)
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            yields.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo.extend(ast.iter_child_nodes(node))
    return returns, yields


def listed(value: Any) -> list[Any] | None:
    """Return the items of something that a loop runs over, or None."""
    if isinstance(value, (str, bytes, ast.AST)) or not hasattr(value, "__iter__") or (isinstance(value, range) and len(value) > MANY):
        return None
    return list(value)


def _join(node: ast.expr, rest: str) -> ast.expr:
    for name in filter(None, rest.split(".")):
        node = ast.copy_location(ast.Attribute(value=node, attr=name, ctx=ast.Load()), node)
    return node


def unpack(target: ast.expr, item: Any, names: dict[str, Any], scope: Scope, outer: dict[str, Any]) -> bool:
    """Bind a loop's target; parts that are still expressions are kept with their place. False where the shapes differ."""
    if isinstance(target, ast.Name):
        names[target.id] = Later(item, scope, outer) if isinstance(item, ast.expr) else item
        return True
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = item.elts if isinstance(item, (ast.Tuple, ast.List)) else item
        if not isinstance(parts, (list, tuple)) or len(parts) != len(target.elts):
            return False
        return all(unpack(part, value, names, scope, outer) for part, value in zip(target.elts, parts, strict=True))
    return False


def bind_arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    call: ast.Call,
    scope: Scope,
    outer: dict[str, Any],
    *,
    method: bool = False,
) -> dict[str, Any]:
    """Return what a call's arguments make of a function's parameters; `method` leaves out the first one."""
    parameters = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    parameters = parameters[1:] if method else parameters
    names: dict[str, Any] = {}
    given = list(itertools.takewhile(lambda value: not isinstance(value, ast.Starred), call.args))
    for name, value in zip(parameters, given, strict=False):
        names[name] = Later(value, scope, outer)
    keywords = {word.arg: Later(word.value, scope, outer) for word in call.keywords if word.arg}
    known = {*parameters, *(arg.arg for arg in function.args.kwonlyargs)}
    names |= {name: value for name, value in keywords.items() if name in known or not function.args.kwarg}
    if function.args.vararg and len(given) == len(call.args):
        names[function.args.vararg.arg] = [Later(value, scope, outer) for value in given[len(parameters) :]]
    if function.args.kwarg and len(call.keywords) == len(keywords):
        names[function.args.kwarg.arg] = {name: value for name, value in keywords.items() if name not in known}
    return names
