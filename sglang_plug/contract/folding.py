"""Constant expressions read without running them: literals, f-strings, tables, comprehensions. Never calls strangers' code."""

from __future__ import annotations

import ast
import operator
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Names = Callable[[str], Any]  # a (dotted) name's value; raises KeyError where it has none that is known
    Calls = Callable[[ast.Call, dict[str, Any]], Any]  # of a call and the loop variables around it; raises KeyError likewise

_WIDE = re.compile(r"\d{5,}")
_LIMIT = 20_000  # values in one comprehension: a table of hooks is far smaller

_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(
        {
            "format",
            "join",
            "split",
            "rsplit",
            "replace",
            "strip",
            "lstrip",
            "rstrip",
            "lower",
            "upper",
            "title",
            "capitalize",
            "startswith",
            "endswith",
            "removeprefix",
            "removesuffix",
            "partition",
            "rpartition",
            "isidentifier",
            "splitlines",
        }
    ),
    dict: frozenset({"items", "keys", "values", "get", "copy"}),
    list: frozenset({"copy", "index", "count"}),
    tuple: frozenset({"index", "count"}),
    set: frozenset({"union", "difference", "intersection", "copy"}),
    frozenset: frozenset({"union", "difference", "intersection", "copy"}),
}
_BUILTINS: dict[str, Callable[..., Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "dict": dict, "sorted": sorted, "range": range,
    "enumerate": enumerate, "zip": zip, "len": len, "str": str, "reversed": reversed, "min": min, "max": max, "any": any, "all": all,
    "int": int, "bool": bool,
}  # fmt: skip
_CONVERSIONS: dict[int, Callable[[Any], Any]] = {-1: lambda value: value, ord("r"): repr, ord("s"): str, ord("a"): ascii}
_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip


class Unfoldable(Exception):
    """The expression's value cannot be known without running it."""


class Record(tuple[Any, ...]):  # noqa: SLOT001 - a tuple's subclass cannot have any that are not empty
    """A value with named parts: a named tuple, a member of an enumeration, a namespace."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, parts: dict[str, Any]) -> Record:
        """Return a record of these parts, in their order."""
        made = cls(parts.values())
        made.names = tuple(parts)
        return made

    def part(self, name: str) -> Any:
        """Return one part.

        Raises:
            ValueError: there is none of that name.
        """
        return self[self.names.index(name)]


def fold(node: ast.expr, names: Names, call: Calls | None = None) -> Any:
    """Return the value of a constant expression.

    Args:
        node: the expression.
        names: gives the value of a name.
        call: gives the value of a call of something else than a builtin or a constant's method.

    Raises:
        Unfoldable: some part of it is not constant.
    """
    try:
        return _Folder(names, call).value(node)
    except Unfoldable:
        raise
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        AttributeError,
        ZeroDivisionError,
        RecursionError,
        OverflowError,
        MemoryError,
    ) as exc:
        raise Unfoldable(str(exc)) from exc


class _Folder:
    def __init__(self, names: Names, call: Calls | None = None) -> None:
        self.names = names
        self.call = call
        self.local: dict[str, Any] = {}

    def value(self, node: ast.expr) -> Any:
        handler = getattr(self, f"_{type(node).__name__.lower()}", None)
        if handler is None:
            raise Unfoldable(type(node).__name__)
        return handler(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        if node.id in self.local:
            return self.local[node.id]
        return self.names(node.id)

    def _attribute(self, node: ast.Attribute) -> Any:
        dotted = dotted_name(node)
        if dotted is not None and dotted.partition(".")[0] not in self.local:
            return self.names(dotted)
        owner = self.value(node.value)
        if not hasattr(owner, "part"):
            raise Unfoldable("attribute")
        return owner.part(node.attr)

    def _namedexpr(self, node: ast.NamedExpr) -> Any:
        return self.value(node.value)

    def _elements(self, nodes: list[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self._soft(node.value)
                yield from [node] if isinstance(inner, ast.AST) else inner
            else:
                yield self._soft(node)

    def _list(self, node: ast.List) -> Any:
        return list(self._elements(node.elts))

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._elements(node.elts))

    def _set(self, node: ast.Set) -> Any:
        return set(self._elements(node.elts))

    def _dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.value(value))
            else:
                found[self.value(key)] = self._soft(value)
        return found

    def _soft(self, node: ast.expr) -> Any:
        """An element that is no constant (a function, a lambda) stays an expression: its neighbours may be all that is wanted."""
        try:
            return self.value(node)
        except (Unfoldable, KeyError):
            return node

    def _joinedstr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.value(part)) for part in node.values)

    def _formattedvalue(self, node: ast.FormattedValue) -> str:
        spec = _sane(self.value(node.format_spec)) if node.format_spec else ""
        value = self.value(node.value)
        if not isinstance(value, (str, int, float)):
            raise Unfoldable("formatted value")
        return format(_CONVERSIONS[node.conversion](value), spec)

    def _binop(self, node: ast.BinOp) -> Any:
        apply = _BINARY.get(type(node.op))
        left, right = self.value(node.left), self.value(node.right)
        if apply is None:
            raise Unfoldable(type(node.op).__name__)
        return _bounded(apply(_sane(left) if isinstance(node.op, ast.Mod) else left, right))

    def _boolop(self, node: ast.BoolOp) -> Any:
        wanted = isinstance(node.op, ast.Or)
        result: Any = None
        for part in node.values:
            result = self.value(part)
            if bool(result) is wanted:
                break
        return result

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.USub):
            return -value
        raise Unfoldable("unary")

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp) -> Any:
        return self.value(node.body if self.value(node.test) else node.orelse)

    def _subscript(self, node: ast.Subscript) -> Any:
        container = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = [self.value(part) if part else None for part in (node.slice.lower, node.slice.upper, node.slice.step)]
            return container[slice(*parts)]
        return container[self.value(node.slice)]

    def _call(self, node: ast.Call) -> Any:
        if any(keyword.arg is None for keyword in node.keywords):
            raise Unfoldable("**")
        function = node.func
        call: Any
        if isinstance(function, ast.Name):
            if function.id in {"globals", "dir", "vars"} and not node.args:
                return self.names("globals()")
            call = _BUILTINS.get(function.id)
            if call is None:
                return self._other_call(node)
        elif isinstance(function, ast.Attribute):
            try:
                owner = self.value(function.value)
            except (Unfoldable, KeyError):
                return self._other_call(node)
            if function.attr not in _METHODS.get(type(owner), ()):
                return self._other_call(node)
            call = getattr(_sane(owner) if function.attr == "format" else owner, function.attr)
        else:
            raise Unfoldable("call")
        arguments = list(self._elements(node.args))
        if any(isinstance(argument, range) and len(argument) > _LIMIT for argument in arguments):
            raise Unfoldable("too many")
        read = self._soft if call is dict else self.value
        return _bounded(call(*arguments, **{keyword.arg: read(keyword.value) for keyword in node.keywords if keyword.arg}))

    def _other_call(self, node: ast.Call) -> Any:
        if self.call is None:
            raise Unfoldable("call")
        return self.call(node, self.local)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> list[Any]:
        return list(self._loop(node.generators, lambda: self._soft(node.elt)))

    def _loop(self, generators: list[ast.comprehension], make: Callable[[], Any]) -> Iterator[Any]:
        first, rest = generators[0], generators[1:]
        before = dict(self.local)
        for count, item in enumerate(self.value(first.iter)):
            if count > _LIMIT:
                raise Unfoldable("too many")
            bind(first.target, item, self.local)
            if all(self.value(test) for test in first.ifs):
                if rest:
                    yield from self._loop(rest, make)
                else:
                    yield make()
        self.local = before

    _listcomp = _comprehension
    _generatorexp = _comprehension

    def _setcomp(self, node: ast.SetComp) -> set[Any]:
        return set(self._comprehension(node))

    def _dictcomp(self, node: ast.DictComp) -> dict[Any, Any]:
        return dict(self._loop(node.generators, lambda: (self.value(node.key), self._soft(node.value))))


def _sane(text: Any) -> Any:
    """Refuse a format that asks for absurd widths."""
    if isinstance(text, str) and _WIDE.search(text):
        raise Unfoldable("too wide")
    return text


def _bounded(value: Any) -> Any:
    if isinstance(value, (str, list, tuple)) and len(value) > 50 * _LIMIT:
        raise Unfoldable("too long")
    return value


def bind(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
    """Assign `value` to a target of plain names and tuples, in `names`.

    Raises:
        Unfoldable: the target has another shape.
    """
    if isinstance(target, ast.Name):
        names[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(part, ast.Starred) for part in target.elts):
        parts = value.elts if isinstance(value, (ast.Tuple, ast.List)) else list(value)
        if len(parts) != len(target.elts):
            raise Unfoldable("unpacking")
        for part, item in zip(target.elts, parts, strict=True):
            bind(part, item, names)
    else:
        raise Unfoldable("target")


def dotted_name(node: ast.AST) -> str | None:
    """Return `a.b.c` for a name or an attribute chain, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
