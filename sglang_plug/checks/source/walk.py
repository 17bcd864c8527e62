"""One walk over a file's tree: imports, uses of imported names, calls, definitions, each with the conditions around it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.checks.source.facts import Call, Defined, FileFacts, Import, Store, Use
from sglang_plug.checks.source.guards import Asked, Fallback, Tried, TypingOnly, catches, names_absence
from sglang_plug.checks.source.judging import Test
from sglang_plug.checks.source.scopes import Bound, Change, Scope
from sglang_plug.contract.bindings import absolute
from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_plug.checks.source.facts import Guards
    from sglang_plug.checks.source.project import PythonFile


def read_file(file: PythonFile) -> FileFacts:
    """Return the facts of one file; where it cannot be parsed, only the error."""
    facts = FileFacts(file, Scope(file))
    if file.problem is not None:
        facts.error = ValueError(file.problem)
        return facts
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError, RecursionError) as exc:
        facts.error = exc if isinstance(exc, (SyntaxError, ValueError)) else ValueError(str(exc))
        return facts
    package = file.module or ""
    if not file.is_package:
        package = package.rpartition(".")[0]
    walker = _Walker(facts, package)
    try:
        walker.bind(tree.body, facts.scope, ())
        walker.visit(tree.body, facts.scope, ())
    except RecursionError:
        return FileFacts(file, Scope(file), ValueError("it is nested too deeply"))
    return facts


class _Walker:
    def __init__(self, facts: FileFacts, package: str) -> None:
        self.facts = facts
        self.package = package

    # First, what every name of a body is bound to, so that a function may use what is bound below it.

    def bind(self, body: Iterable[ast.stmt], scope: Scope, guards: Guards) -> None:
        later = guards
        for node in body:
            self._bind_statement(node, scope, later)
            later = (*later, *self._after(node, scope))

    def _bind_statement(self, node: ast.stmt, scope: Scope, guards: Guards) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, dotted in self._imported(node):
                scope.bind(name, Bound("import", dotted, node, guards, scope))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            scope.bind(node.name, Bound("function", node=node, guards=guards, scope=scope))
        elif isinstance(node, ast.ClassDef):
            scope.bind(node.name, Bound("class", node=node, guards=guards, scope=scope))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind_target(target, node.value, scope, guards, "value")
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind_target(node.target, node.value, scope, guards, "value")
        elif isinstance(node, ast.AugAssign):
            if not _grows(node, scope):
                self._bind_target(node.target, None, scope, guards, "other")
        elif isinstance(node, ast.Global):
            scope.outward.update(node.names)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind_target(node.target, node.iter, scope, guards, "loop")
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._bind_target(item.optional_vars, None, scope, guards, "other")
        for inner, extra in self._blocks(node, scope):
            self.bind(inner, scope, (*guards, *extra))

    def _bind_target(self, target: ast.expr, value: ast.expr | None, scope: Scope, guards: Guards, what: str) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, Bound(what, node=value, guards=guards, scope=scope, target=target if what == "loop" else None))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in ast.walk(target):
                if isinstance(part, ast.Name):
                    kind = "loop" if what == "loop" else "unpacked" if what == "value" else "other"
                    scope.bind(part.id, Bound(kind, node=value, guards=guards, scope=scope, target=target))

    def _note_change(self, node: ast.stmt, scope: Scope, guards: Guards) -> None:
        """`T += more`, `T[key] = value`, `T.append(value)`: what a table or a text becomes."""
        how, key = "", None
        owner: ast.expr | None = None
        value: ast.expr | None = None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            how, owner, value = "+=", node.target, node.value
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            how, owner, value, key = "[]=", node.targets[0].value, node.value, node.targets[0].slice
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            call, method = node.value, node.value.func.attr
            if method in _GROWING and len(call.args) == 1 + (method == "insert") and not call.keywords:
                how, owner, value = method, node.value.func.value, call.args[-1]
            elif method in _SHRINKING:
                how, owner, value = "-", node.value.func.value, call
        elif isinstance(node, ast.Delete) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            how, owner, value = "-", node.targets[0].value, node.targets[0].slice
        if isinstance(owner, ast.Name) and value is not None:
            scope.change(owner.id, Change(how, value, key, scope, guards, node.lineno, bool(scope.loops)))

    def _imported(self, node: ast.Import | ast.ImportFrom) -> list[tuple[str, str]]:
        if isinstance(node, ast.Import):
            return [
                (alias.asname or alias.name.partition(".")[0], alias.name if alias.asname else alias.name.partition(".")[0])
                for alias in node.names
            ]
        module = absolute(self.package, node.module, node.level)
        return [(alias.asname or alias.name, f"{module}.{alias.name}") for alias in node.names if alias.name != "*"]

    def _blocks(self, node: ast.stmt, scope: Scope) -> list[tuple[list[ast.stmt], Guards]]:
        """The statement lists inside a compound statement (not definitions), each with the conditions it adds."""
        if isinstance(node, ast.If):
            if _is_typing_only(node.test):
                return [(node.body, (TypingOnly(),)), (node.orelse, ())]
            if _is_main(node.test):
                self.facts.main_guard = True
            return [(node.body, (Test(node.test, scope),)), (node.orelse, (Test(node.test, scope, negated=True),))]
        if isinstance(node, (ast.Try, ast.TryStar)):
            return self._try_blocks(node)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return [(node.body, (Tried(True, True, catches_types=True),) if _suppresses(node) else ())]
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return [(node.body, ()), (node.orelse, ())]
        if isinstance(node, ast.Match):
            return [(case.body, guards) for case, guards in zip(node.cases, _case_guards(node, scope), strict=True)]
        return []

    def _try_blocks(self, node: ast.Try | ast.TryStar) -> list[tuple[list[ast.stmt], Guards]]:
        imports, attributes, types = catches(node.handlers)
        wanted = tuple(dotted for part in node.body for dotted in self._wanted(part) if dotted.partition(".")[0] == "sglang")
        pure = all(isinstance(part, (ast.Import, ast.ImportFrom, ast.Assign, ast.Pass)) and not _calls(part) for part in node.body)
        pure = pure and all(dotted.partition(".")[0] == "sglang" for part in node.body for dotted in self._wanted(part))
        tried = Tried(imports, attributes, names_absence(node.handlers), catches_types=types)
        inside: Guards = (tried,) if imports or attributes or types else ()
        blocks = [(node.body, inside)]
        blocks += [(handler.body, (Fallback(wanted, pure),)) for handler in node.handlers]
        behind: Guards = (_Passed(wanted),) if imports and wanted else ()
        return [*blocks, (node.orelse, behind), (node.finalbody, ())]

    def _wanted(self, node: ast.stmt) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            module = absolute(self.package, node.module, node.level)
            return [module if alias.name == "*" else f"{module}.{alias.name}" for alias in node.names]
        return []

    def _after(self, node: ast.stmt, scope: Scope) -> Guards:
        """What is known behind a statement: `if not ready: return` guards all that follows."""
        if isinstance(node, ast.If) and not node.orelse and _leaves(node.body) and not _is_typing_only(node.test):
            return (Test(node.test, scope, negated=True),)
        if isinstance(node, (ast.Try, ast.TryStar)) and node.handlers and all(_leaves(handler.body) for handler in node.handlers):
            imports, attributes, _ = catches(node.handlers)
            wanted = tuple(dotted for part in node.body for dotted in self._wanted(part) if dotted.partition(".")[0] == "sglang")
            passed: Guards = (_Passed(wanted),) if imports and wanted else ()
            names = _asked(node.body) if imports or attributes else frozenset()
            return (*passed, Asked(names)) if names else passed
        return ()

    # Then, what is done with them.

    def visit(self, body: Iterable[ast.stmt], scope: Scope, guards: Guards) -> None:
        later = guards
        for node in body:
            self._visit_statement(node, scope, later)
            later = (*later, *self._after(node, scope))
            if any(isinstance(guard, Tried) for guard in guards) and (names := _asked([node])):
                later = (*later, Asked(names))

    def _visit_statement(self, node: ast.stmt, scope: Scope, guards: Guards) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._visit_import(node, scope, guards)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._visit_function(node, scope, guards)
        elif isinstance(node, ast.ClassDef):
            self._visit_class(node, scope, guards)
        else:
            self._note_change(node, scope, guards)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self.facts.statements.add(node.value)
            inner = scope
            if isinstance(node, (ast.For, ast.AsyncFor)):
                inner = scope.inside_loop(node.target, node.iter)
            blocks = self._blocks(node, scope)
            listed = {id(part) for block, _ in blocks for part in block}
            for child in ast.iter_child_nodes(node):
                if id(child) not in listed and not isinstance(child, (ast.ExceptHandler, ast.match_case)):
                    self._visit_expression(child, scope, guards)
            for block, extra in blocks:
                self.visit(block, inner, (*guards, *extra))

    def _visit_import(self, node: ast.Import | ast.ImportFrom, scope: Scope, guards: Guards) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.facts.imports.append(Import(alias.name, False, node, guards, scope, alias=alias))
            return
        module = absolute(self.package, node.module, node.level)
        for alias in node.names:
            dotted = module if alias.name == "*" else f"{module}.{alias.name}"
            if alias.name == "*":
                scope.stars.append(module)
            self.facts.imports.append(Import(dotted, alias.name != "*", node, guards, scope, alias.name, alias))

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, guards: Guards) -> None:
        self.facts.functions.append(Defined(node, guards, scope))
        args = node.args
        for part in (*node.decorator_list, *args.defaults, *(default for default in args.kw_defaults if default)):
            self._visit_expression(part, scope, guards)
        inner = Scope(scope.file, scope, node, loops=scope.loops)
        self.facts.scopes[node] = inner
        plain = [*args.posonlyargs, *args.args]
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
        for arg, default in (*zip(plain, defaults, strict=True), *zip(args.kwonlyargs, args.kw_defaults, strict=True)):
            inner.bind(arg.arg, Bound("parameter", node=default, scope=inner))
        for arg in filter(None, (args.vararg, args.kwarg)):
            inner.bind(arg.arg, Bound("other", scope=inner))
        self.bind(node.body, inner, guards)
        self.visit(node.body, inner, guards)

    def _visit_class(self, node: ast.ClassDef, scope: Scope, guards: Guards) -> None:
        self.facts.classes.append(Defined(node, guards, scope))
        for part in (*node.decorator_list, *node.bases, *(word.value for word in node.keywords)):
            self._visit_expression(part, scope, guards)
        inner = Scope(scope.file, scope, node, loops=scope.loops)
        self.facts.scopes[node] = inner
        self.bind(node.body, inner, guards)
        self.visit(node.body, inner, guards)

    def _visit_expression(self, node: ast.AST, scope: Scope, guards: Guards) -> None:
        if isinstance(node, ast.Lambda):
            inner = Scope(scope.file, scope, node, loops=scope.loops)
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                inner.bind(arg.arg, Bound("other", scope=inner))
            self._visit_expression(node.body, inner, guards)
            return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            self._visit_comprehension(node, scope, guards)
            return
        if isinstance(node, ast.NamedExpr):
            scope.bind(node.target.id, Bound("value", node=node.value, guards=guards, scope=scope))
        if isinstance(node, ast.IfExp):
            self._visit_expression(node.test, scope, guards)
            self._visit_expression(node.body, scope, (*guards, Test(node.test, scope)))
            self._visit_expression(node.orelse, scope, (*guards, Test(node.test, scope, negated=True)))
            return
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for index, part in enumerate(node.values):
                self._visit_expression(part, scope, (*guards, *(Test(before, scope) for before in node.values[:index])))
            return
        if isinstance(node, ast.Attribute):
            dotted = scope.dotted(node if isinstance(node.ctx, ast.Load) else node.value)
            if dotted is not None and dotted.partition(".")[0] == "sglang":
                if isinstance(node.ctx, ast.Load):
                    self.facts.uses.append(Use(dotted, node, guards, scope))
                    return
                if isinstance(node.ctx, ast.Store):
                    self.facts.stores.append(Store(dotted, node.attr, node, guards, scope))
        elif isinstance(node, ast.Call):
            name = dotted_name(node.func) or ""
            self.facts.calls.append(Call(name, node, guards, scope))
            if name == "map" and len(node.args) == 2 and isinstance(node.args[0], ast.Lambda) and len(node.args[0].args.args) == 1:
                turn = ast.Name(node.args[0].args.args[0].arg, ast.Store())
                self._visit_expression(node.args[0], scope.inside_loop(turn, node.args[1]), guards)
                self._visit_expression(node.args[1], scope, guards)
                return
            if name == "getattr" and len(node.args) == 2:  # without a default it is a plain read
                self._visit_read(node, scope, guards)
            if name == "setattr" and len(node.args) == 3:
                dotted = scope.dotted(node.args[0])
                if dotted is not None and dotted.partition(".")[0] == "sglang":
                    self.facts.stores.append(Store(dotted, node.args[1], node, guards, scope))
                elif isinstance(node.args[0], ast.Name) and [bound.what for bound in scope.lookup(node.args[0].id)] == ["loop"]:
                    self.facts.stores.append(Store(node.args[0], node.args[1], node, guards, scope))
        for child in ast.iter_child_nodes(node):
            if type(child) not in _LEAVES:
                self._visit_expression(child, scope, guards)

    def _visit_read(self, node: ast.Call, scope: Scope, guards: Guards) -> None:
        owner, name = node.args
        dotted = scope.dotted(owner)
        if dotted is not None and dotted.partition(".")[0] == "sglang" and isinstance(name, ast.Constant) and isinstance(name.value, str):
            read = ast.copy_location(ast.Attribute(value=owner, attr=name.value, ctx=ast.Load()), node)
            self.facts.uses.append(Use(f"{dotted}.{name.value}", read, guards, scope))

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope, guards: Guards
    ) -> None:
        """A comprehension is a loop: `[register(t, f) for t, f in TABLE]`."""
        inner, asked = scope, guards
        for loop in node.generators:
            self._visit_expression(loop.iter, inner, asked)
            inner = Scope(scope.file, inner, node, loops=(*inner.loops, (loop.target, loop.iter, inner)))
            self._bind_target(loop.target, loop.iter, inner, asked, "loop")
            for test in loop.ifs:
                self._visit_expression(test, inner, asked)
            asked = (*asked, *(Test(test, inner) for test in loop.ifs))
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self._visit_expression(part, inner, asked)


_GROWING = frozenset({"append", "extend", "update", "add", "insert"})
_SHRINKING = frozenset({"remove", "pop", "clear", "discard", "popitem", "setdefault", "difference_update", "intersection_update"})


def _grows(node: ast.AugAssign, scope: Scope) -> bool:
    """True where a name that has a value here, or is declared global, is added to."""
    known = isinstance(node.target, ast.Name) and (node.target.id in scope.names or node.target.id in scope.outward)
    return known and isinstance(node.op, ast.Add)


_FINDS = re.compile(r"resol|import|locate|requir|ensure|valid|assert|check|find|get|load|lookup", re.IGNORECASE)
_LEAVES = frozenset({ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.arg, ast.And, ast.Or, *ast.operator.__subclasses__(),
                     *ast.cmpop.__subclasses__(), *ast.unaryop.__subclasses__()})  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Passed:
    """Behind `try: import … except ImportError: return`: reached where the imports succeeded."""

    wanted: tuple[str, ...]
    probes: bool = False

    def state(self, release: object) -> bool | None:
        found = [release.find(name) for name in self.wanted]  # type: ignore[attr-defined]
        return False if any(symbol is None for symbol in found) else None


def _case_guards(node: ast.Match, scope: Scope) -> list[Guards]:
    """`case "0.5.12":` as a comparison; every case behind the negation of those above it."""
    above: Guards = ()
    found: list[Guards] = []
    for case in node.cases:
        patterns = case.pattern.patterns if isinstance(case.pattern, ast.MatchOr) else [case.pattern]
        values = [pattern.value for pattern in patterns if isinstance(pattern, ast.MatchValue)]
        if len(values) < len(patterns):
            found.append(above)
            continue
        test = ast.BoolOp(ast.Or(), [ast.Compare(node.subject, [ast.Eq()], [value]) for value in values])
        found.append((*above, Test(test, scope)))
        above = (*above, Test(test, scope, negated=True)) if case.guard is None else above
    return found


def _is_typing_only(test: ast.expr) -> bool:
    return (dotted_name(test) or "").rpartition(".")[2] == "TYPE_CHECKING"


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and dotted_name(test.left) == "__name__"


def _asked(body: list[ast.stmt]) -> frozenset[str]:
    """The names that a plain statement hands to a call which finds out whether something is there: `resolve(target)`."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, (ast.Expr, ast.Assign)) and isinstance(node.value, ast.Call) and _FINDS.search(ast.unparse(node.value.func)):
            names |= {part.id for argument in node.value.args for part in ast.walk(argument) if isinstance(part, ast.Name)}
    return frozenset(names)


def _suppresses(node: ast.With | ast.AsyncWith) -> bool:
    for item in node.items:
        call = item.context_expr
        if isinstance(call, ast.Call) and (dotted_name(call.func) or "").rpartition(".")[2] == "suppress":
            return True
    return False


def _calls(node: ast.stmt) -> bool:
    return any(isinstance(part, (ast.Call, ast.Subscript)) for part in ast.walk(node))


def _leaves(body: list[ast.stmt]) -> bool:
    """True where a block never reaches what follows it."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return dotted_name(last.value.func) in {"sys.exit", "exit", "quit", "os._exit", "pytest.skip"}
    return isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break))
