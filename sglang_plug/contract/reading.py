"""One module's source turned into the names it binds at run time. Reads syntax trees; imports nothing, runs nothing."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sglang_plug.contract.bindings import Binding, ModuleNames, absolute
from sglang_plug.contract.folding import Unfoldable, bind, dotted_name, fold
from sglang_plug.contract.lazy import served_names
from sglang_plug.contract.signatures import decorator_names, format_signature, yields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_RANK = {"c": 3, "f": 3, "i": 2, "v": 1, "d": 0}
_SHORT = 32


def read_module(source: bytes, module: str, *, is_package: bool) -> ModuleNames:
    """Return the names that a module binds when it is imported.

    Raises:
        SyntaxError: it is not Python that this interpreter can parse.
    """
    tree = ast.parse(source)
    folds = any(word in source for word in (b"__all__", b"globals()", b"def __getattr__"))
    return _Reader(module, is_package=is_package, folds=folds).read(tree)


class _Reader:
    def __init__(self, module: str, *, is_package: bool, folds: bool) -> None:
        self.package = module if is_package else module.rpartition(".")[0]
        self.folds = folds
        self.result = ModuleNames()
        self.constants: dict[str, Any] = {}
        self.lists: dict[str, list[str]] = {}  # module-level lists of plain names: the sources of a record's fields
        self.in_class = 0

    def read(self, tree: ast.Module) -> ModuleNames:
        scope = self.result.names
        self._run(tree.body, scope)
        for name in _globals_of_functions(tree):
            scope.setdefault(name, Binding("v", maybe=True))
        for name in _open_classes(tree):
            if name in scope and scope[name].code == "c":
                scope[name] = replace(scope[name], flags=scope[name].flags + "o")
        if "__getattr__" in scope and scope["__getattr__"].code == "f":
            self.result.served = served_names(tree, self._constant)
        self._read_exports(scope)
        return self.result

    def _read_exports(self, scope: dict[str, Binding]) -> None:
        if "__all__" not in scope:
            return
        value = self.constants.get("__all__")
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            self.result.exports = tuple(value)
        elif scope["__all__"].code == "i":  # `from .x import __all__`
            self.result.exports = (">" + scope["__all__"].text.removesuffix(".__all__"),)
        else:
            self.result.exports = ("?",)

    def _constant(self, name: str) -> Any:
        if name == "globals()":
            if self.result.stars:
                raise KeyError(name)
            return dict.fromkeys(self.result.names)
        return self.constants[name]

    def _run(self, body: Iterable[ast.stmt], scope: dict[str, Binding]) -> None:
        for node in body:
            handler = getattr(self, f"_on_{type(node).__name__.lower()}", None)
            if handler is not None:
                handler(node, scope)

    # definitions

    def _on_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: dict[str, Binding]) -> None:
        names = decorator_names(node.decorator_list)
        if any(name.endswith((".setter", ".getter", ".deleter")) for name in names) and node.name in scope:
            return
        flags = "a" * isinstance(node, ast.AsyncFunctionDef) + "g" * yields(node)
        kept = []
        for name in names:
            flag = _BINDING_FLAGS.get(name) if self.in_class else None
            flags += flag or ""
            if flag is None:
                kept.append(name)
        scope[node.name] = Binding("f", flags, format_signature(node), ",".join(kept))

    _on_asyncfunctiondef = _on_functiondef

    def _on_classdef(self, node: ast.ClassDef, scope: dict[str, Binding]) -> None:
        members: dict[str, Binding] = {}
        self.in_class += 1
        self._run(node.body, members)
        self.in_class -= 1
        bases = [dotted_name(base.value if isinstance(base, ast.Subscript) else base) or "?" for base in node.bases]
        bases += [f"metaclass={dotted_name(word.value) or '?'}" for word in node.keywords if word.arg == "metaclass"]
        slots = next((word.arg for word in node.keywords if word.arg == "slots"), None)
        names = decorator_names(node.decorator_list, keep_words=("slots", "dataclass"))
        members = {_mangled(name, node.name): binding for name, binding in members.items()}
        scope[node.name] = Binding("c", "l" if slots else "", ",".join(bases), ",".join(names), members=members)

    # assignments

    def _on_assign(self, node: ast.Assign, scope: dict[str, Binding]) -> None:
        for target in node.targets:
            self._assign(target, node.value, scope)
        if isinstance(node.value, ast.Call) and dotted_name(node.value.func) == "globals" and not self.in_class:
            self.result.dynamic = True  # the namespace by another name: what is put in there is not followed
        if self.folds and not self.in_class and len(node.targets) == 1:
            self._remember(node.targets[0], node.value)

    def _assign(self, target: ast.expr, value: ast.expr | None, scope: dict[str, Binding]) -> None:
        if isinstance(target, ast.Name) and self._is_record_of(target.id, value, scope):
            scope[target.id] = self._record(scope[target.id])
        elif isinstance(target, ast.Name):
            if isinstance(value, (ast.List, ast.Tuple)) and not self.in_class:
                self.lists[target.id] = [name for name in map(dotted_name, value.elts) if name]
            scope[target.id] = self._value(value, scope)
            if target.id == "__slots__" and self.in_class:
                self._slots(value, scope)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._assign(part.value if isinstance(part, ast.Starred) else part, None, scope)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            owner = scope.get(target.value.id)
            if owner is not None and owner.code == "c":
                owner.members[target.attr] = self._value(value, scope)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Call) and dotted_name(target.value.func) == "globals":
            self._assign_global(target.slice, scope)

    @staticmethod
    def _is_record_of(name: str, value: ast.expr | None, scope: dict[str, Binding]) -> bool:
        """True for `X = msgspec.defstruct("X", …)` where X is a class: the class again, as a record."""
        known = scope.get(name)
        if known is None or known.code != "c" or not isinstance(value, ast.Call) or not value.args:
            return False
        first = value.args[0]
        return (dotted_name(value.func) or "").endswith("defstruct") and isinstance(first, ast.Constant) and first.value == name

    def _record(self, known: Binding) -> Binding:
        """The record made of a class; its fields come from the classes in the lists that the class carries."""
        listed = {member.text.removeprefix("=") for member in known.members.values() if member.code == "v"}
        sources = [f"fields={source}" for name in self.lists if name in listed for source in self.lists[name]]
        return replace(known, text=",".join(["msgspec.Struct", *sources]))

    def _assign_global(self, index: ast.expr, scope: dict[str, Binding]) -> None:
        try:
            name = fold(index, self._constant)
        except Unfoldable:
            self.result.dynamic = True
            return
        if isinstance(name, str) and name not in scope:
            scope[name] = Binding("v")

    def _slots(self, value: ast.expr | None, scope: dict[str, Binding]) -> None:
        try:
            names = fold(value, self._constant) if value is not None else ()
        except Unfoldable:
            return
        for name in [names] if isinstance(names, str) else names:
            if isinstance(name, str):
                scope.setdefault(name, Binding("v"))

    def _value(self, value: ast.expr | None, scope: dict[str, Binding]) -> Binding:
        if isinstance(value, ast.Call):
            called = dotted_name(value.func) or "?"
            texts = [argument.value for argument in value.args if isinstance(argument, ast.Constant) and isinstance(argument.value, str)]
            if called.rpartition(".")[2] == "LazyImport" and len(texts) == 2:
                return Binding("i", "z", ".".join(texts))
            inner = dotted_name(value.args[0]) if value.args else None
            if called in _BINDING_FLAGS and inner in scope and scope[inner].code == "f":
                return replace(scope[inner], flags=scope[inner].flags + _BINDING_FLAGS[called])
            return Binding("v", text=f"{called}(…)")
        name = dotted_name(value) if value is not None else None
        if name is not None:
            known = scope.get(name)
            if known is not None and known.code in "cf" and not known.maybe:
                return replace(known, varies=False) if known.code == "f" else Binding("v", text=f"={name}")
            return Binding("v", text=f"={name}")
        if isinstance(value, ast.Constant):
            text = repr(value.value)
            return Binding("v", text=text if len(text) <= _SHORT else "")
        return Binding("v")

    def _remember(self, target: ast.expr, value: ast.expr) -> None:
        try:
            if isinstance(target, ast.Subscript):
                owner = fold(target.value, self._constant)
                if isinstance(owner, dict):
                    owner[fold(target.slice, self._constant)] = value
                return
            bind(target, fold(value, self._constant), self.constants)
        except Unfoldable:
            name = dotted_name(target.value if isinstance(target, ast.Subscript) else target)
            if name is not None:
                self.constants.pop(name, None)  # not known any more, a table that took an unknown key included

    def _on_annassign(self, node: ast.AnnAssign, scope: dict[str, Binding]) -> None:
        if not isinstance(node.target, ast.Name):
            if node.value is not None:
                self._assign(node.target, node.value, scope)
            return
        if node.value is None or (self.in_class and _is_bare_field(node.value)):
            if self.in_class:  # at module level an annotation alone binds nothing
                scope.setdefault(node.target.id, Binding("d", "=" if node.value is not None else ""))
            return
        self._assign(node.target, node.value, scope)
        if self.in_class:
            scope[node.target.id] = replace(scope[node.target.id], flags=scope[node.target.id].flags + "n")
        if self.folds and not self.in_class:
            self._remember(node.target, node.value)

    def _on_augassign(self, node: ast.AugAssign, scope: dict[str, Binding]) -> None:
        name = dotted_name(node.target)
        if self.folds and name in self.constants and isinstance(node.op, ast.Add):
            try:
                self.constants[name] = self.constants[name] + type(self.constants[name])(fold(node.value, self._constant))
            except (Unfoldable, TypeError):
                self.constants.pop(name)

    def _on_expr(self, node: ast.Expr, scope: dict[str, Binding]) -> None:
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
            self._on_setattr(call, scope)
            return
        owner, method = dotted_name(call.func.value), call.func.attr
        if isinstance(call.func.value, ast.Call) and dotted_name(call.func.value.func) == "globals" and not self.in_class:
            self.result.dynamic = True
        if owner in self.constants and method in {"append", "extend", "update"}:
            try:
                getattr(self.constants[owner], method)(fold(call.args[0], self._constant))
            except (Unfoldable, AttributeError, TypeError):
                self.constants.pop(owner)

    def _on_setattr(self, call: ast.expr, scope: dict[str, Binding]) -> None:
        if not isinstance(call, ast.Call) or dotted_name(call.func) != "setattr" or len(call.args) != 3:
            return
        owner, name = dotted_name(call.args[0]), call.args[1]
        if owner in scope and scope[owner].code == "c" and isinstance(name, ast.Constant) and isinstance(name.value, str):
            scope[owner].members[name.value] = self._value(call.args[2], scope)

    def _on_delete(self, node: ast.Delete, scope: dict[str, Binding]) -> None:
        for target in node.targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Name):
                    scope.pop(part.id, None)

    def _on_import(self, node: ast.Import, scope: dict[str, Binding]) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            scope[name] = Binding("i", text=alias.name if alias.asname else name)

    def _on_importfrom(self, node: ast.ImportFrom, scope: dict[str, Binding]) -> None:
        module = absolute(self.package, node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                self.result.stars.append(module)
            else:
                scope[alias.asname or alias.name] = Binding("i", text=f"{module}.{alias.name}")

    # branches

    def _on_if(self, node: ast.If, scope: dict[str, Binding]) -> None:
        verdict = _test(node.test)
        if verdict is not None:
            self._run(node.body if verdict else node.orelse, scope)
        else:
            self._branch([node.body, node.orelse], scope)

    def _on_try(self, node: ast.Try, scope: dict[str, Binding]) -> None:
        handlers = [handler.body for handler in node.handlers if not _ends(handler.body)]
        self._branch([[*node.body, *node.orelse], *handlers], scope)
        self._run(node.finalbody, scope)

    _on_trystar = _on_try

    def _on_with(self, node: ast.With, scope: dict[str, Binding]) -> None:
        for item in node.items:
            if item.optional_vars is not None:
                self._assign(item.optional_vars, None, scope)
        suppressed = any(dotted_name(item.context_expr.func) in {"suppress", "contextlib.suppress"} for item in node.items
                         if isinstance(item.context_expr, ast.Call))  # fmt: skip
        self._branch([node.body, []] if suppressed else [node.body], scope)

    def _on_match(self, node: ast.Match, scope: dict[str, Binding]) -> None:
        self._branch([*(case.body for case in node.cases), []], scope)

    def _on_while(self, node: ast.While, scope: dict[str, Binding]) -> None:
        self._branch([[*node.body, *node.orelse], []], scope)

    def _on_for(self, node: ast.For, scope: dict[str, Binding]) -> None:
        if (self.folds and self._unroll(node, scope)) or self._over_classes(node, scope):
            return
        inner = dict(scope)
        self._assign(node.target, None, inner)
        self._run([*node.body, *node.orelse], inner)
        self._merge([{name: binding for name, binding in inner.items() if scope.get(name) is not binding}, {}], scope)

    def _over_classes(self, node: ast.For, scope: dict[str, Binding]) -> bool:
        """Run `for cls in (A, B): cls.x = …`; False for any other loop."""
        items = node.iter.elts if isinstance(node.iter, (ast.Tuple, ast.List)) else []
        names = [dotted_name(item) for item in items]
        if not names or not isinstance(node.target, ast.Name) or any(name not in scope or scope[name].code != "c" for name in names):
            return False
        for name in names:
            scope[node.target.id] = scope[str(name)]
            self._run(node.body, scope)
        return True

    def _unroll(self, node: ast.For, scope: dict[str, Binding]) -> bool:
        """Run a loop over known values; False where they are not known."""
        try:
            items = list(fold(node.iter, self._constant))
            for item in items:
                bind(node.target, item, self.constants)
                self._assign(node.target, None, scope)
                self._run(node.body, scope)
        except (Unfoldable, TypeError):
            return False
        return True

    def _branch(self, bodies: list[list[ast.stmt]], scope: dict[str, Binding]) -> None:
        if len(bodies) == 1:
            self._run(bodies[0], scope)
            return
        branches = []
        for body in bodies:
            inner = dict(scope)
            self._run(body, inner)
            if not _ends(body):
                branches.append({name: binding for name, binding in inner.items() if scope.get(name) is not binding})
        self._merge(branches, scope)

    def _merge(self, branches: list[dict[str, Binding]], scope: dict[str, Binding]) -> None:
        for name in dict.fromkeys(name for branch in branches for name in branch):
            found = [branch[name] for branch in branches if name in branch]
            everywhere = len(found) == len(branches)
            before = scope.get(name)
            if before is not None and not everywhere:
                found.append(before)
            best = max(found, key=lambda binding: _RANK[binding.code])
            sure = (everywhere and not any(binding.maybe for binding in found)) or (before is not None and not before.maybe)
            differs = any(binding != best for binding in found)
            scope[name] = replace(best, maybe=not sure, varies=best.varies or differs)


_BINDING_FLAGS = {
    "staticmethod": "s",
    "classmethod": "k",
    "property": "p",
    "cached_property": "p",
    "functools.cached_property": "p",
    "abc.abstractproperty": "p",
    "abstractproperty": "p",
}


def _mangled(name: str, cls: str) -> str:
    """Return a member's name as the class stores it: `__x` becomes `_Class__x`."""
    private = name.startswith("__") and not name.endswith("__")
    return f"_{cls.lstrip('_')}{name}" if private else name


def _test(node: ast.expr) -> bool | None:
    """The value of a condition that is the same on every import, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _test(node.operand)
        return None if inner is None else not inner
    if dotted_name(node) in {"TYPE_CHECKING", "typing.TYPE_CHECKING", "t.TYPE_CHECKING"}:
        return False
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "__name__":
        return False
    if isinstance(node, ast.Constant):
        return bool(node.value)
    return None


def _ends(body: list[ast.stmt]) -> bool:
    """True where a branch cannot be walked to its end."""
    return bool(body) and isinstance(body[-1], ast.Raise)


def _is_bare_field(value: ast.expr) -> bool:
    """True for `field(…)` without a default: a dataclass removes the name from the class."""
    if not isinstance(value, ast.Call):
        return False
    name = (dotted_name(value.func) or "").rpartition(".")[2]
    words = {word.arg for word in value.keywords}
    return name == "field" and "default" not in words


def _open_classes(tree: ast.Module) -> set[str]:
    """The names that `setattr(NAME, computed, …)` gives more attributes, anywhere in the module."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr" and len(node.args) == 3:
            owner = dotted_name(node.args[0])
            if owner is not None and not isinstance(node.args[1], ast.Constant):
                found.add(owner)
    return found


def _globals_of_functions(tree: ast.Module) -> Iterator[str]:
    if not any(isinstance(node, ast.Global) for node in ast.walk(tree)):
        return
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.Global):
                    yield from node.names
