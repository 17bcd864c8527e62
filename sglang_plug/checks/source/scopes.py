"""Names in a plugin's source: what each is bound to, and under which conditions. Values and look-ups; walks no statements."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.project import PythonFile
    from sglang_plug.contract.catalogue import Release

    Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


_DEPTH = 4  # of names that stand for names


class Guard(Protocol):
    """One condition.

    Attributes:
        probes: it looks whether something is there: where it cannot be judged, what it protects is not reported.
    """

    @property
    def probes(self) -> bool: ...

    def state(self, release: Release) -> bool | None:
        """True where the guarded source runs on this release, False where it does not, None where nobody can tell."""


@dataclass(frozen=True, eq=False)
class Bound:
    """One way in which a name gets its value.

    Attributes:
        what: `import`, `value`, `function`, `class`, `parameter`, `loop` or `other`.
        dotted: of an import, the absolute name.
        node: the value expression, the definition, or the parameter's default.
        guards: the conditions around it.
        scope: where the value is evaluated.
        target: of a loop, the target that the name is part of; of an unpacking, likewise.
    """

    what: str
    dotted: str = ""
    node: ast.AST | None = None
    guards: tuple[Guard, ...] = ()
    scope: Scope | None = None
    target: ast.expr | None = None


@dataclass(frozen=True, eq=False)
class Change:
    """One way in which what a name stands for changes: `T += value`, `T.append(value)`, `T[key] = value`, `T.remove(value)`.

    Attributes:
        how: `+=`, the method's name, `[]=`, or `-` where something is taken away.
        value: what is added.
        key: of a subscript.
        place: where that is evaluated.
        guards: the conditions around it.
        line: where it stands.
        in_loop: it may run more than once.
    """

    how: str
    value: ast.expr
    key: ast.expr | None
    place: Scope
    guards: tuple[Guard, ...]
    line: int
    in_loop: bool


@dataclass(eq=False)
class Scope:
    """A module, class or function body."""

    file: PythonFile
    parent: Scope | None = None
    node: ast.AST | None = None
    names: dict[str, list[Bound]] = field(default_factory=dict)
    loops: tuple[tuple[ast.expr, ast.expr, Scope], ...] = ()
    changes: dict[str, list[Change]] = field(default_factory=dict)
    outward: set[str] = field(default_factory=set)  # declared `global`
    stars: list[str] = field(default_factory=list)  # modules that everything was imported from

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around, or None at module level."""
        scope: Scope | None = self
        while scope is not None:
            if isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return scope.node
            scope = scope.parent
        return None

    @property
    def module(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
        """The functions and lambdas around, innermost first."""
        scope: Scope | None = self
        seen: ast.AST | None = None
        while scope is not None:
            if isinstance(scope.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and scope.node is not seen:
                yield scope.node
                seen = scope.node
            scope = scope.parent

    def bind(self, name: str, bound: Bound) -> None:
        place = self.module if name in self.outward else self
        place.names.setdefault(name, []).append(bound)

    def change(self, name: str, change: Change) -> None:
        """Note that what a name stands for changes; a name of nowhere is nothing to note."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.parent
        if scope is not None:
            scope.changes.setdefault(name, []).append(change)

    def changes_of(self, name: str) -> list[Change]:
        """Return how what a name of this very scope stands for changes."""
        return self.changes.get(name, [])

    def inside_loop(self, target: ast.expr, iterable: ast.expr) -> Scope:
        """Return this very scope, once a turn of a loop."""
        inner = Scope(self.file, self.parent, self.node, self.names, (*self.loops, (target, iterable, self)), self.changes)
        inner.outward, inner.stars = self.outward, self.stars
        return inner

    def lookup(self, name: str) -> list[Bound]:
        """Return every binding of a name in the nearest scope that has one."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if name in scope.names and (first or not scope.is_class):
                return scope.names[name]
            scope, first = scope.parent, False
        return []

    def dotted(self, node: ast.AST, depth: int = 0) -> str | None:
        """Return the absolute dotted name of an expression when all its bindings agree that it is one import, else None.

        `S = scheduler.Scheduler` and `m = importlib.import_module("a.b")` are followed where the name has no other binding.
        """
        name = dotted_name(node)
        if name is None:
            return _imported_by_call(node) if depth else None
        first, _, rest = name.partition(".")
        bounds = self.lookup(first)
        if len(bounds) == 1 and bounds[0].what == "value" and bounds[0].node is not None and bounds[0].scope is not None and depth < _DEPTH:
            root = bounds[0].scope.dotted(bounds[0].node, depth + 1)
            return f"{root}.{rest}" if root and rest else root
        roots = {bound.dotted for bound in bounds}
        if not bounds or len(roots) != 1 or any(bound.what != "import" for bound in bounds):
            return None
        root = next(iter(roots))
        return f"{root}.{rest}" if rest else root

    def candidates(self, node: ast.AST) -> Iterator[str]:
        """Yield the absolute dotted names that an expression may be, one for each import that binds its first name."""
        name = dotted_name(node)
        if name is not None:
            first, _, rest = name.partition(".")
            for bound in self.lookup(first):
                if bound.what == "import":
                    yield f"{bound.dotted}.{rest}" if rest else bound.dotted


def _imported_by_call(node: ast.AST) -> str | None:
    """`importlib.import_module("a.b")` and `sys.modules["a.b"]`, of a constant."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        name, argument = dotted_name(node.func), node.args[0]
    elif isinstance(node, ast.Subscript):
        name, argument = dotted_name(node.value), node.slice
    else:
        return None
    if name not in {"importlib.import_module", "import_module", "sys.modules"} or not isinstance(argument, ast.Constant):
        return None
    return argument.value if isinstance(argument.value, str) and not argument.value.startswith(".") else None
