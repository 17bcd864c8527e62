"""What a call of a plugin calls: `HookRegistry.register` or `plugin_hook` under whatever name. Follows names; judges nothing."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.checks.source.reading import Later
from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.facts import Call, FileFacts
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.scopes import Bound, Scope
    from sglang_plug.contract.catalogue import Release

_DEPTH = 6
_ENDS = {".HookRegistry.register": False, ".plugin_hook": True}


@dataclass(frozen=True)
class Callee:
    """A function that registers hooks.

    Attributes:
        runtime: of its registry.
        decorates: it is `plugin_hook`: the hook comes with a second call.
        args: arguments that a `partial` gives in advance.
        keywords: likewise.
    """

    runtime: str
    decorates: bool
    args: tuple[ast.expr, ...] = ()
    keywords: tuple[ast.keyword, ...] = ()

    def applied(self, node: ast.Call) -> ast.Call:
        """Return a call with the arguments that were given in advance."""
        if not self.args and not self.keywords:
            return node
        given = {word.arg for word in node.keywords}
        words = [*(word for word in self.keywords if word.arg not in given), *node.keywords]
        return ast.copy_location(ast.Call(node.func, [*self.args, *node.args], words), node)


class Site(NamedTuple):
    """A call that registers, and what it is read for."""

    plugin: Plugin
    facts: FileFacts
    call: Call
    release: Release
    callee: Callee
    certain: bool  # it is SGLang's registry, and no other that bears its name


@lru_cache(maxsize=1)
def registering_calls(plugin: Plugin) -> tuple[tuple[FileFacts, Call, Callee | None], ...]:
    """Return the calls that register hooks; without a callee where only a caller of the function around knows the registry."""
    return tuple(_find_calls(plugin))


def _find_calls(plugin: Plugin) -> Iterator[tuple[FileFacts, Call, Callee | None]]:
    for facts in plugin.facts:
        for call in facts.calls:
            function = call.node.func
            if isinstance(function, ast.Name) or _is_getattr(function) or call.name.rpartition(".")[2] == "plugin_hook":
                callee = find_callee(plugin, function, call.scope)
                if callee is not None:
                    yield facts, call, callee
            elif isinstance(function, ast.Attribute) and function.attr == "register":
                yield facts, call, find_callee(plugin, function, call.scope)


def _is_getattr(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and dotted_name(node.func) == "getattr"


def find_callee(plugin: Plugin, node: ast.expr, scope: Scope, depth: int = 0) -> Callee | None:
    """Return what an expression calls, or None where it registers no hooks, or nobody can tell."""
    for dotted in host_names(plugin, node, scope):
        for end, decorates in _ENDS.items():
            if dotted.endswith(end):
                return Callee("diffusion" if "multimodal_gen" in dotted else "srt", decorates)
    bounds = scope.lookup(node.id) if isinstance(node, ast.Name) else []
    value = bounds[0].node if len(bounds) == 1 and bounds[0].what == "value" else None
    place = bounds[0].scope if bounds else None
    if isinstance(value, ast.Call) and value.args and place is not None and depth < _DEPTH:
        if (place.dotted(value.func) or dotted_name(value.func)) not in {"functools.partial", "partial"}:
            return None
        inner = find_callee(plugin, value.args[0], place, depth + 1)
        if inner is not None:
            return Callee(inner.runtime, inner.decorates, (*inner.args, *value.args[1:]), (*inner.keywords, *value.keywords))
    return None


def host_names(plugin: Plugin, node: ast.AST, scope: Scope, depth: int = 0) -> Iterator[str]:
    """Yield the names of SGLang that an expression may stand for: through aliases, the project's modules, functions and `self`."""
    if depth > _DEPTH:
        return
    if isinstance(node, ast.Name):
        bounds = scope.lookup(node.id)
        own = any(bound.what in {"class", "function"} and not bound.guards for bound in bounds)
        yield from () if own else (name for bound in bounds for name in _of_binding(plugin, bound, depth))
    elif isinstance(node, ast.Attribute):
        for owner in host_names(plugin, node.value, scope, depth + 1):
            yield f"{owner}.{node.attr}"
        if isinstance(node.value, ast.Name):
            for method, value in plugin.assigned_around(scope, node.value.id, node.attr):
                inner = plugin.scope_of(method)
                yield from host_names(plugin, value, inner, depth + 1) if inner is not None else ()
    elif _is_getattr(node) and isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
        name = str(node.args[1].value)
        yield from (f"{owner}.{name}" for owner in host_names(plugin, node.args[0], scope, depth + 1))
    elif isinstance(node, ast.Call):
        dotted = scope.dotted(node, 1)
        if dotted is not None:
            yield dotted
            return
        found = plugin.definition(node.func, scope)
        if found is not None and isinstance(found[0], ast.FunctionDef):
            inner = plugin.scope_of(found[0])
            for part in ast.walk(found[0]):
                if isinstance(part, ast.Return) and part.value is not None and inner is not None:
                    yield from host_names(plugin, part.value, inner, depth + 1)


def _of_binding(plugin: Plugin, bound: Bound, depth: int) -> Iterator[str]:
    if bound.what == "value" and bound.node is not None and bound.scope is not None:
        yield from host_names(plugin, bound.node, bound.scope, depth + 1)
    elif bound.what == "import" and bound.dotted.partition(".")[0] == "sglang":
        yield bound.dotted
    elif bound.what == "import":
        place = plugin.locate(bound.dotted)
        if place is not None and place[1]:
            name, _, rest = place[1].partition(".")
            for inner in place[0].scope.names.get(name, []):
                yield from (f"{dotted}.{rest}" if rest else dotted for dotted in _of_binding(plugin, inner, depth + 1) if depth < _DEPTH)


def handed_in(plugin: Plugin, node: ast.expr, scope: Scope, release: Release) -> Callee | None:
    """`def hook(registry, …): registry.register(…)`: what the callers hand in, or what the name promises."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    if isinstance(owner, ast.Name) and [bound.what for bound in scope.lookup(owner.id)] == ["parameter"]:
        for names in plugin.environments(scope, release):
            later: Any = names.get(owner.id)
            if isinstance(later, Later):
                found = find_callee(plugin, ast.Attribute(later.node, "register", ast.Load()), later.scope)
                if found is not None:
                    return found
    name = dotted_name(node) or ""
    known = any(bound.what in {"import", "class", "function", "value"} for bound in scope.lookup(name.partition(".")[0]))
    named = name.rpartition(".")[0].rpartition(".")[2] in {"HookRegistry", "hook_registry"}
    return Callee("srt", False) if named and not known else None
