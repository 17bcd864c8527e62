"""A test judged for one release: version checks, `hasattr`, `find_spec`, flags that follow from them: true, false, or nobody can tell."""

from __future__ import annotations

import ast
import operator as operators
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from packaging.version import InvalidVersion, Version

from sglang_plug.checks.source.guards import Fallback, Tried, fails
from sglang_plug.checks.source.scopes import Bound, Scope
from sglang_plug.contract.folding import dotted_name
from sglang_plug.contract.model import Kind, Presence

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.checks.source.scopes import Guard
    from sglang_plug.contract.catalogue import Release

_VERSION_MAKERS = frozenset({"Version", "parse", "parse_version", "LooseVersion", "tuple", "_parse_version", "version_tuple"})
_PROBES = re.compile(
    r"version|hasattr|find_spec|supports?_|has_|is_available|available|compat|exists|resolves?|_HAS|HAVE_|_ok$|missing"
    r"|signature|argspec|parameters|annotations|_fields",
    re.IGNORECASE,
)
_VERSION = re.compile(r"v?\d+\.\d+(\.\d+|$)")
_COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operators.lt,
    ast.LtE: operators.le,
    ast.Gt: operators.gt,
    ast.GtE: operators.ge,
    ast.Eq: operators.eq,
    ast.NotEq: operators.ne,
}
_DEPTH = 6


@dataclass(frozen=True, eq=False)
class Test:
    """`if test:` (or its `else`, negated)."""

    test: ast.expr
    scope: Scope
    negated: bool = False

    @cached_property
    def probes(self) -> bool:
        return looks_like_probe(self.test, self.scope)

    @cached_property
    def _judged(self) -> dict[str, bool | None]:
        return {}

    def state(self, release: Release) -> bool | None:
        if release.version not in self._judged:
            self._judged[release.version] = None  # a flag that depends on itself: nobody can tell
            self._judged[release.version] = judge(self.test, self.scope, release)
        verdict = self._judged[release.version]
        return None if verdict is None else verdict is not self.negated


def judge(node: ast.expr, scope: Scope, release: Release, depth: int = 0) -> bool | None:
    """Return a test's value on a release, or None."""
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = judge(node.operand, scope, release, depth + 1)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        return _judge_bool(node, scope, release, depth)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _judge_compare(node, scope, release, depth)
    if isinstance(node, ast.Call):
        return _judge_call(node, scope, release, depth)
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Name):
        return _judge_name(node.id, scope, release, depth)
    return None


def _judge_bool(node: ast.BoolOp, scope: Scope, release: Release, depth: int) -> bool | None:
    wanted = isinstance(node.op, ast.Or)
    values = [judge(part, scope, release, depth + 1) for part in node.values]
    if wanted in values:
        return wanted
    return None if None in values else not wanted


def _judge_compare(node: ast.Compare, scope: Scope, release: Release, depth: int) -> bool | None:
    left, operator, right = node.left, node.ops[0], node.comparators[0]
    if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        present = _judge_presence(left, scope, release, depth)
        return None if present is None else present is isinstance(operator, ast.IsNot)
    one, other = _version(left, scope, release), _version(right, scope, release)
    if one is None or other is None or (one[0] == other[0] == "constant"):
        return None
    compare = _COMPARED.get(type(operator))
    if compare is None:
        return None
    if isinstance(one[1], tuple) or isinstance(other[1], tuple):
        return bool(compare(_release_tuple(one[1]), _release_tuple(other[1])))
    return bool(compare(one[1], other[1]))


def _release_tuple(value: Version | tuple[int, ...]) -> tuple[int, ...]:
    return value.release if isinstance(value, Version) else value


def _judge_presence(node: ast.expr, scope: Scope, release: Release, depth: int) -> bool | None:
    """Whether a value is not None: an optional import, or `find_spec("sglang.x")`."""
    if isinstance(node, ast.Call):
        return _judge_call(node, scope, release)
    if not isinstance(node, ast.Name):
        return None
    bounds = scope.lookup(node.id)
    imports = [bound for bound in bounds if bound.what == "import"]
    values = [bound for bound in bounds if bound.what == "value"]
    if len(imports) == 1 and len(values) == 1 and isinstance(values[0].node, ast.Constant) and values[0].node.value is None:
        missing = fails((imports[0].dotted,), release, pure=True) if imports[0].dotted.startswith("sglang") else None
        return None if missing is None else not missing
    return None if depth else _judge_name(node.id, scope, release, depth + 1)


def _judge_call(node: ast.Call, scope: Scope, release: Release, depth: int = 0) -> bool | None:
    name = (dotted_name(node.func) or "").rpartition(".")[2]
    if name in {"hasattr", "getattr"} and len(node.args) >= 2 and isinstance(node.args[1], ast.Constant):
        owner = scope.dotted(node.args[0])
        if owner is None or not owner.startswith("sglang") or not isinstance(node.args[1].value, str):
            return None
        symbol = release.find(f"{owner}.{node.args[1].value}")
        if symbol is None:
            return False if release.find(owner) is not None else None
        return True if symbol.presence is Presence.SURE and symbol.kind not in {Kind.UNKNOWN, Kind.FIELD} else None
    helper = _helper(node, scope) if depth < _DEPTH else None
    if helper is not None:
        return judge(*helper, release, depth + 1)
    if name == "find_spec" and node.args and isinstance(node.args[0], ast.Constant) and str(node.args[0].value).startswith("sglang."):
        return release.has_module(str(node.args[0].value))
    return None


def _helper(node: ast.Call, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """`at_least("0.5.20")` of a function that does nothing but return: the returned expression, its parameters bound to the arguments."""
    bounds = scope.lookup(node.func.id) if isinstance(node.func, ast.Name) else []
    function = bounds[0].node if len(bounds) == 1 else None
    if not isinstance(function, ast.FunctionDef) or bounds[0].scope is None or not isinstance(function.body[-1], ast.Return):
        return None
    inner = Scope(scope.file, bounds[0].scope, function)
    for arg, value in zip(function.args.args, node.args, strict=False):
        inner.bind(arg.arg, Bound("value", node=value, scope=scope))
    for part in function.body[:-1]:
        if isinstance(part, ast.Import):
            for alias in part.names:
                inner.bind(alias.asname or alias.name.partition(".")[0], Bound("import", alias.name, part, scope=inner))
        elif isinstance(part, ast.ImportFrom) and part.level == 0:
            for alias in part.names:
                inner.bind(alias.asname or alias.name, Bound("import", f"{part.module}.{alias.name}", part, scope=inner))
        elif isinstance(part, ast.Assign) and len(part.targets) == 1 and isinstance(part.targets[0], ast.Name):
            inner.bind(part.targets[0].id, Bound("value", node=part.value, scope=inner))
        elif not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)):
            return None
    answer = function.body[-1].value
    return (answer, inner) if answer is not None else None


def _judge_name(name: str, scope: Scope, release: Release, depth: int) -> bool | None:
    """A flag: the value of the binding that is reached on this release, when there is exactly one."""
    if name == "TYPE_CHECKING":
        return False
    found: list[bool | None] = []
    for bound in scope.lookup(name):
        states = [guard.state(release) for guard in bound.guards if not isinstance(guard, Tried)]
        if False in states:
            continue
        if bound.what != "value" or not isinstance(bound.node, ast.expr) or bound.scope is None:
            return None
        value = judge(bound.node, bound.scope, release, depth + 1)
        if value is None:
            return None
        if any(isinstance(guard, Tried) for guard in bound.guards) or None in states:
            found.append(None)
        found.append(value)
    return found[0] if len(found) == 1 else _settle(scope, name, release)


def _settle(scope: Scope, name: str, release: Release) -> bool | None:
    """`try: import x; FLAG = True` / `except: FLAG = False`: decided by the handler's own condition."""
    bounds = scope.lookup(name)
    handlers = [guard for bound in bounds for guard in bound.guards if isinstance(guard, Fallback)]
    if len(handlers) != 1:
        return None
    failed = handlers[0].state(release)
    if failed is None:
        return None
    wanted = [bound for bound in bounds if any(isinstance(guard, Fallback) for guard in bound.guards) is failed]
    values = {bool(bound.node.value) for bound in wanted if isinstance(bound.node, ast.Constant)}
    return next(iter(values)) if len(values) == 1 and len(wanted) >= 1 else None


def _version(node: ast.expr, scope: Scope, release: Release, depth: int = 0) -> tuple[str, Version | tuple[int, ...]] | None:
    """Read an expression as SGLang's version (`host`) or a constant one; None where it is neither."""
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _constant_version(node.value)
    if (
        isinstance(node, ast.Tuple)
        and node.elts
        and all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in node.elts)
    ):
        return "constant", tuple(part.value for part in node.elts if isinstance(part, ast.Constant) and isinstance(part.value, int))
    if _is_host_version(node, scope):
        return "host", Version(release.version)
    if isinstance(node, ast.Call):
        name = (dotted_name(node.func) or "").rpartition(".")[2]
        if name in _VERSION_MAKERS and node.args:
            inner = _version(node.args[0], scope, release, depth + 1) or _split_version(node.args[0], scope, release)
            return (inner[0], _release_tuple(inner[1])) if inner and name == "tuple" else inner
        return None
    if isinstance(node, ast.Attribute) and node.attr in {"release", "base_version", "public"}:
        inner = _version(node.value, scope, release, depth + 1)
        return (inner[0], _release_tuple(inner[1])) if inner and node.attr == "release" else inner
    if isinstance(node, ast.Name):
        bounds = scope.lookup(node.id)
        if len(bounds) == 1 and bounds[0].what == "value" and isinstance(bounds[0].node, ast.expr) and bounds[0].scope is not None:
            return _version(bounds[0].node, bounds[0].scope, release, depth + 1)
    return None


def _split_version(node: ast.expr, scope: Scope, release: Release) -> tuple[str, Version | tuple[int, ...]] | None:
    """`int(x) for x in sglang.__version__.split(".")[:3]`, or `map(int, …)`: the host's version somewhere inside."""
    if any(isinstance(part, ast.expr) and _is_host_version(part, scope) for part in ast.walk(node)):
        return "host", Version(release.version).release
    return None


def _constant_version(text: str) -> tuple[str, Version] | None:
    try:
        return "constant", Version(text)
    except InvalidVersion:
        return None


def _is_host_version(node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == "sglang":
        return (dotted_name(node.func) or "").rpartition(".")[2] in {"version", "get_version", "_version", "distribution_version"}
    if isinstance(node, (ast.Name, ast.Attribute)):
        return scope.dotted(node) in {"sglang.__version__", "sglang.version.__version__", "sglang._version.__version__"}
    return False


def looks_like_probe(node: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """True where a test asks whether something is there, by its spelling or by where its names come from."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and any(_PROBES.search(word) for word in (dotted_name(part.func) or "").split(".")):
            return True
        if isinstance(part, ast.Call) and any(isinstance(word, ast.Constant) and _VERSION.match(str(word.value)) for word in part.args):
            return True  # `at_least("0.5.20")`
        if isinstance(part, ast.Attribute) and _PROBES.search(part.attr):
            return True
        if isinstance(part, ast.Name):
            if _PROBES.search(part.id) or any(_comes_from_try(bound.guards) for bound in scope.lookup(part.id)):
                return True
            if depth < 3 and any(
                bound.what == "value"
                and isinstance(bound.node, ast.expr)
                and bound.scope
                and looks_like_probe(bound.node, bound.scope, depth + 1)
                for bound in scope.lookup(part.id)
            ):
                return True
    return False


def _comes_from_try(guards: tuple[Guard, ...]) -> bool:
    return any(isinstance(guard, (Tried, Fallback)) for guard in guards)
