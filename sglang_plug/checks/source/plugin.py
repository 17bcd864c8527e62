"""A plugin's source as one whole: its files' facts, and how a value is followed through constants, loops, parameters and modules."""

from __future__ import annotations

import ast
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.source.guards import Tried, reached
from sglang_plug.checks.source.reading import MANY, Instance, Later, Reading, bind_arguments, listed, unpack
from sglang_plug.checks.source.walk import read_file
from sglang_plug.contract.folding import Unfoldable, dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.facts import Call, FileFacts, Guards
    from sglang_plug.checks.source.project import Project
    from sglang_plug.checks.source.scopes import Bound, Definition, Scope
    from sglang_plug.contract.catalogue import Release

    Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_DEPTH = 8


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
        if name is None and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and depth <= _DEPTH:
            made = self.definition(node.value.func, scope, depth + 1)
            return self._member(made, node.attr) if made else None
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
        found = self._bound_definition(bound, depth) or (self._class_of(bound, depth) if rest else None)
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

    def _class_of(self, bound: Bound, depth: int) -> tuple[Definition, Scope] | None:
        """The class of `adder = Adder()`, for what is called on it."""
        if bound.what != "value" or not isinstance(bound.node, ast.Call) or bound.scope is None:
            return None
        made = self.definition(bound.node.func, bound.scope, depth + 1)
        return made if made is not None and isinstance(made[0], ast.ClassDef) else None

    def _member(self, found: tuple[Definition, Scope], path: str) -> tuple[Definition, Scope] | None:
        node, _ = found
        for cls in self.lineage(node) if isinstance(node, ast.ClassDef) and "." not in path else []:
            inner = self.scope_of(cls)
            bounds = [bound for bound in inner.names.get(path, []) if bound.what == "function"] if inner is not None else []
            if bounds:
                return self._bound_definition(bounds[-1], 0)
        return None

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
            reading = Reading(self, release, pick)
            try:
                value = reading.value(node, scope, names or {}, 0)
            except (Unfoldable, RecursionError):
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
        outer = self._entries(scope, release, depth) if depth < 4 else [{}]
        yield from islice((turn for names in outer for turn in self._turns(list(scope.loops), names, release)), MANY)

    def _entries(self, scope: Scope, release: Release, depth: int) -> list[dict[str, Any]]:
        """What is known inside the functions around a place: one dictionary a call of the innermost one whose calls are seen."""
        inner: list[Function] = []
        for function in scope.functions:
            found = list(islice(self._bindings_of_calls(function, inner, release, depth), MANY))
            if found:
                return found
            inner.append(function)
        return [{}]

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

    def _bindings_of_calls(self, function: Function, inner: list[Function], release: Release, depth: int) -> Iterator[dict[str, Any]]:
        owner = self._class_around(function)
        own = self._objects(owner, release, depth) if owner is not None else [None]
        parameters = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        first = parameters[0] if parameters and self.is_method(function) else None
        if first is not None and len(parameters) == 1 and not function.args.vararg and not function.args.kwarg:
            yield from ({first: each} for each in own if each is not None)
            return
        calls = self._callers_of(function) if parameters or function.args.vararg or function.args.kwarg else []
        for call in calls:
            if not reached(call.guards, release):
                continue
            for names in self.environments(call.scope, release, depth + 1):
                bound = bind_arguments(function, call.node, call.scope, names, method=first is not None)
                if call.node in self._decorated:
                    below = Later(ast.Name(self._decorated[call.node].name, ast.Load()), call.scope)
                    bound |= {"@": below, **(_first_parameter(inner[-1], below) if inner else {})}
                closure = names if set(call.scope.functions) & set(self._around(function)) else {}
                mine = [names[first]] if first in names and call.name.partition(".")[0] in {"self", "cls"} else own
                for each in mine if first is not None else [None]:
                    yield {**closure, **bound, **({first: each} if first is not None and each is not None else {})}

    def _callers_of(self, function: Function) -> list[Call]:
        if isinstance(function, ast.Lambda):
            return self._lambda_calls.get(function, [])
        inner = self.scope_of(function)
        tested = inner is not None and inner.file.is_test  # what tests hand in is theirs
        calls = (call for call in self._callers.get(function.name, []) if tested or not call.scope.file.is_test)
        return [call for call in calls if self._calls_function(call, function)]

    @cached_property
    def _lambda_calls(self) -> dict[ast.AST, list[Call]]:
        """The calls of `add = lambda target: …` by that name."""
        found: dict[ast.AST, list[Call]] = {}
        for facts in self.facts:
            for call in facts.calls:
                bounds = call.scope.lookup(call.name) if isinstance(call.node.func, ast.Name) else []
                if len(bounds) == 1 and isinstance(bounds[0].node, ast.Lambda):
                    found.setdefault(bounds[0].node, []).append(call)
        return found

    @cached_property
    def _decorated(self) -> dict[ast.Call, Definition]:
        """What each call decorates that stands behind an `@`."""
        return {
            decorator: defined.node
            for facts in self.facts
            for defined in (*facts.functions, *facts.classes)
            for decorator in defined.node.decorator_list
            if isinstance(decorator, ast.Call)
        }

    def decorates(self, call: ast.Call) -> Definition | None:
        """Return what a call decorates that stands behind an `@`, or None."""
        return self._decorated.get(call)

    def outer_call(self, call: ast.Call) -> ast.Call | None:
        """Return the call of what a call returns: of `plugin_hook(…)(hook)` the whole, or None."""
        return self._outer_calls.get(call)

    @cached_property
    def _outer_calls(self) -> dict[ast.Call, ast.Call]:
        return {call.node.func: call.node for facts in self.facts for call in facts.calls if isinstance(call.node.func, ast.Call)}

    def _around(self, function: Function) -> list[Function]:
        scope = self.scope_of(function)
        return list(scope.functions)[1:] if scope is not None else []

    # Objects of the plugin's own classes

    def is_method(self, function: Function) -> bool:
        """True where the first parameter is the object or the class."""
        return self._class_around(function) is not None and not _is_static(function)

    def _class_around(self, function: Function) -> ast.ClassDef | None:
        scope = self.scope_of(function)
        return scope.parent.node if scope is not None and scope.parent is not None and isinstance(scope.parent.node, ast.ClassDef) else None

    def _objects(self, cls: ast.ClassDef, release: Release, depth: int) -> list[Instance | None]:
        """The objects a method may run on: one a call of the class or of one derived from it; the class's own where none is seen."""
        made: list[Instance | None] = []
        derived = [other for other in self._derived if cls in self.lineage(other)]
        for each in [cls, *(other for other in derived if other is not cls)]:
            calls = self._calls_of_class(each) if depth < 3 else []
            for call in calls:
                places = self.environments(call.scope, release, depth + 1)
                made += [Instance(self, release, each, self.constructed(each, call.node, call.scope, names)) for names in places]
            if not calls and (each is not cls or len(derived) < 2):
                made.append(Instance(self, release, each))
        return made[:MANY] or [Instance(self, release, cls)]

    def _calls_of_class(self, cls: ast.ClassDef) -> list[Call]:
        found = (
            (call, self.definition(call.node.func, call.scope)) for call in self._callers.get(cls.name, []) if not call.scope.file.is_test
        )
        return [call for call, definition in found if definition is not None and definition[0] is cls]

    @cached_property
    def _derived(self) -> list[ast.ClassDef]:
        return [defined.node for facts in self.facts for defined in facts.classes if isinstance(defined.node, ast.ClassDef)]

    def lineage(self, cls: ast.ClassDef, depth: int = 0) -> list[ast.ClassDef]:
        """Return a class and its bases within the project, nearest first."""
        found = [cls]
        scope = self.scope_of(cls)
        outside = scope.parent if scope is not None else None
        for base in cls.bases if depth < _DEPTH else []:
            definition = self.definition(base, outside) if outside is not None else None
            if definition is not None and isinstance(definition[0], ast.ClassDef):
                found += [each for each in self.lineage(definition[0], depth + 1) if each not in found]
        return found

    def assigned_to_self(self, cls: ast.ClassDef, name: str) -> list[tuple[ast.AST, ast.expr]]:
        """Return `self.name = value` of a class's methods, each with its method."""
        found: list[tuple[ast.AST, ast.expr]] = []
        for method in cls.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and method.args.args:
                own = f"{method.args.args[0].arg}.{name}"
                for node in ast.walk(method):
                    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                        found += [(method, node.value) for target in targets if dotted_name(target) == own]
        return found

    def assigned_around(self, scope: Scope, owner: str, name: str) -> list[tuple[ast.AST, ast.expr]]:
        """Return what `self.name` of the method around a place is assigned in its class, each with the method."""
        function = next(iter(scope.functions), None)
        cls = self._class_around(function) if function is not None else None
        if cls is None or function is None or owner not in [arg.arg for arg in function.args.args[:1]]:
            return []
        return [found for each in self.lineage(cls) for found in self.assigned_to_self(each, name)]

    def fields(self, cls: ast.ClassDef) -> tuple[str, ...]:
        """Return the annotated names of a record's class, in order, those of its bases first."""
        found: dict[str, None] = {}
        for each in reversed(self.lineage(cls)):
            found |= {node.target.id: None for node in each.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}
        return tuple(found)

    def constructed(self, cls: ast.ClassDef, node: ast.Call, scope: Scope, names: dict[str, Any]) -> dict[str, Any]:
        """Return what the arguments of a class's call make of its constructor's parameters, or of its fields."""
        for each in self.lineage(cls):
            for method in each.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    return bind_arguments(method, node, scope, names, method=True)
        given = dict(zip(self.fields(cls), node.args, strict=False)) | {word.arg: word.value for word in node.keywords if word.arg}
        return {name: Later(value, scope, names) for name, value in given.items()}

    def _calls_function(self, call: Call, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
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
            items_there = listed(values[0]) if len(values) == 1 else None
            items += [part] if items_there is None else items_there
        for count, item in enumerate(items):
            if count > MANY:
                return
            bound = dict(names)
            if unpack(target, item, bound, scope, names) or isinstance(item, ast.expr):
                yield from self._turns(loops[1:], bound, release)


def _is_static(function: Function) -> bool:
    return any(dotted_name(decorator) == "staticmethod" for decorator in getattr(function, "decorator_list", ()))


def _first_parameter(function: Function, below: Later) -> dict[str, Any]:
    """What a decorator's inner function takes: the definition below the `@`."""
    plain = [*function.args.posonlyargs, *function.args.args]
    return {plain[0].arg: below} if plain else {}


def _summands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_summands(node.left), *_summands(node.right)]
    return [node]


def _is_relevant(text: bytes) -> bool:
    return b"sglang" in text or b"HookRegistry" in text
