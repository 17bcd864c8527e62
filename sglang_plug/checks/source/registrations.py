"""The hooks that a plugin registers, found in calls, decorators, tables and loops: target, hook and type, as far as the text tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.checks.source.guards import Asked
from sglang_plug.checks.source.judging import Test
from sglang_plug.checks.source.plugin import Later
from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.facts import Call, FileFacts
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.scopes import Definition, Scope
    from sglang_plug.contract.catalogue import Release

TYPES = frozenset({"BEFORE", "AFTER", "AROUND", "REPLACE"})


class _Site(NamedTuple):
    """Where a registration stands, and what it is read for."""

    plugin: Plugin
    facts: FileFacts
    scope: Scope
    release: Release
    runtime: str


@dataclass(frozen=True, eq=False)
class Registration:
    """One hook on one target.

    Attributes:
        facts: the file.
        node: the call or decorator.
        target: the target as SGLang gets it; None where it cannot be read.
        target_text: the expression, as written.
        type: BEFORE, AFTER, AROUND, REPLACE; None where it cannot be read.
        type_given: False where the default applies.
        hook: the hook's definition, or a lambda; None where it cannot be followed.
        hook_scope: where that is defined.
        runtime: of the registry.
        guarded: a condition asks whether this very target is there.
    """

    facts: FileFacts
    node: ast.Call
    target: str | None
    target_text: str
    type: str | None
    type_given: bool
    hook: Definition | ast.Lambda | None
    hook_scope: Scope | None
    runtime: str
    guarded: bool = False


def registrations(plugin: Plugin, release: Release) -> Iterator[Registration]:
    """Yield the hooks that are registered on a release, in file order, a table's rows one by one."""
    for facts in plugin.facts:
        for call in facts.calls:
            if call.name.rpartition(".")[2] == "register" or _is_alias(call):
                runtime = _registry(plugin, call.node.func, call.scope, release)
                if runtime and plugin.runs(_own(call.guards, call.node), call.scope, release):
                    yield from _registered(_Site(plugin, facts, call.scope, release, runtime), call.node, call.guards)
        for defined in facts.functions + facts.classes:
            for decorator in defined.node.decorator_list:
                if isinstance(decorator, ast.Call):
                    runtime = _decorator(decorator.func, defined.scope)
                    if runtime and plugin.runs(defined.guards, defined.scope, release):
                        yield from _decorated(_Site(plugin, facts, defined.scope, release, runtime), decorator, defined.node)


def _is_alias(call: Call) -> bool:
    """`add = HookRegistry.register`, called as `add(…)`."""
    return isinstance(call.node.func, ast.Name) and (call.scope.dotted(call.node.func) or "").endswith("HookRegistry.register")


def _own(guards: tuple[Any, ...], node: ast.Call) -> tuple[Any, ...]:
    """The guards that do not ask about the target itself: those are judged when the target is known."""
    asked = {part.id for argument in node.args[:1] for part in ast.walk(argument) if isinstance(part, ast.Name)}
    return tuple(guard for guard in guards if not _is_about(guard, asked))


def _is_about(guard: Any, names: set[str]) -> bool:
    return _mentions(guard.test, names) if isinstance(guard, Test) else isinstance(guard, Asked) and bool(guard.names & names)


def _mentions(test: ast.expr, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(test))


def _registry(plugin: Plugin, node: ast.expr, scope: Scope, release: Release) -> str | None:
    """`srt` or `diffusion` where the expression is a registry's `register`, else None."""
    alias = scope.dotted(node) if isinstance(node, ast.Name) else None
    found = [alias] if alias else list(scope.candidates(node)) or _handed_in(plugin, node, scope, release)
    for dotted in found:
        if dotted.startswith("sglang.") and dotted.endswith("HookRegistry.register"):
            return "diffusion" if "multimodal_gen" in dotted else "srt"
    name = dotted_name(node) or ""
    if not found and name.rpartition(".")[0].rpartition(".")[2] in {"HookRegistry", "hook_registry"}:
        return "srt"  # handed in, or imported in a way that is not followed
    return None


def _handed_in(plugin: Plugin, node: ast.expr, scope: Scope, release: Release) -> list[str]:
    """`def hook(registry, …): registry.register(…)`: what the callers hand in."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    if not isinstance(owner, ast.Name) or [bound.what for bound in scope.lookup(owner.id)] not in (["parameter"], ["value"]):
        return []
    found = [f"{dotted}.register" for dotted in [scope.dotted(owner)] if dotted]
    for names in plugin.environments(scope, release) if not found else ():
        later = names.get(owner.id)
        found += [f"{dotted}.register" for dotted in (later.scope.candidates(later.node) if isinstance(later, Later) else ())]
    return found


def _decorator(node: ast.expr, scope: Scope) -> str | None:
    for dotted in scope.candidates(node):
        if dotted.startswith("sglang.") and dotted.endswith(".plugin_hook"):
            return "diffusion" if "multimodal_gen" in dotted else "srt"
    return None


def _argument(node: ast.Call, position: int, *words: str) -> ast.expr | None:
    for word in node.keywords:
        if word.arg in words:
            return word.value
    return node.args[position] if len(node.args) > position and not isinstance(node.args[position], ast.Starred) else None


def _registered(site: _Site, node: ast.Call, guards: tuple[Any, ...]) -> Iterator[Registration]:
    plugin, facts, scope, release, runtime = site
    target, hook, kind = _argument(node, 0, "target"), _argument(node, 1, "hook"), _argument(node, 2, "hook_type", "type")
    starred = any(isinstance(argument, ast.Starred) for argument in node.args) or any(word.arg is None for word in node.keywords)
    if target is None:
        if starred:
            yield from _starred(site, node)
        return
    asked = [guard for guard in guards if guard not in _own(guards, node)]
    seen: set[tuple[Any, ...]] = set()
    for names in plugin.environments(scope, release):
        readings = plugin.values(target, scope, release, names) or [None]
        definition = _follow(plugin, hook, scope, names)
        type_name = _type(plugin, kind, scope, release, names)
        for reading in readings:
            text = reading if isinstance(reading, str) else None
            key = (text, type_name, definition and id(definition[0]))
            if key in seen:
                continue
            seen.add(key)
            guarded = bool(asked) or len(readings) > 1
            found, place = definition or (None, None)
            yield Registration(facts, node, text, ast.unparse(target), type_name, kind is not None, found, place, runtime, guarded)


def _starred(site: _Site, node: ast.Call) -> Iterator[Registration]:
    """`HookRegistry.register(*row)` in a loop over a table."""
    plugin, facts, scope, release, runtime = site
    starred = next((argument.value for argument in node.args if isinstance(argument, ast.Starred)), None)
    if starred is None:
        yield Registration(facts, node, None, ast.unparse(node), None, False, None, None, runtime)
        return
    for names in plugin.environments(scope, release):
        rows = plugin.values(starred, scope, release, names)
        row = rows[0] if len(rows) == 1 and isinstance(rows[0], (tuple, list)) else None
        if not row or not isinstance(row[0], str):
            yield Registration(facts, node, None, ast.unparse(starred), None, False, None, None, runtime)
            continue
        hook = row[1] if len(row) > 1 and isinstance(row[1], ast.expr) else None
        kind = row[2] if len(row) > 2 and isinstance(row[2], ast.expr) else None
        place = scope.module
        found, where = _follow(plugin, hook, place, {}) or (None, None)
        type_name = _type(plugin, kind, place, release, {})
        yield Registration(facts, node, row[0], ast.unparse(starred), type_name, len(row) > 2, found, where, runtime)


def _decorated(site: _Site, decorator: ast.Call, node: Definition) -> Iterator[Registration]:
    plugin, facts, scope, release, runtime = site
    target, kind = _argument(decorator, 0, "target"), _argument(decorator, 1, "type")
    if target is None:
        return
    for names in plugin.environments(scope, release):
        readings = plugin.values(target, scope, release, names) or [None]
        for reading in readings:
            text = reading if isinstance(reading, str) else None
            type_name = _type(plugin, kind, scope, release, names)
            yield Registration(
                facts, decorator, text, ast.unparse(target), type_name, kind is not None, node, scope, runtime, len(readings) > 1
            )


def _follow(plugin: Plugin, hook: ast.expr | None, scope: Scope, names: dict[str, Any]) -> tuple[Definition | ast.Lambda, Scope] | None:
    """Return the definition behind the hook's expression, or None."""
    for _ in range(4):
        if isinstance(hook, ast.Name) and isinstance(names.get(hook.id), Later):
            later = names[hook.id]
            hook, scope, names = later.node, later.scope, later.names
            continue
        break
    if isinstance(hook, ast.Lambda):
        return hook, scope
    if isinstance(hook, ast.Name) and hook.id in names:
        return None
    return plugin.definition(hook, scope) if hook is not None else None


def _type(plugin: Plugin, kind: ast.expr | None, scope: Scope, release: Release, names: dict[str, Any]) -> str | None:
    """Return the hook's type by name: `HookType.AROUND`, through variables too; AFTER where none is given."""
    if kind is None:
        return "AFTER"
    for _ in range(6):
        name = dotted_name(kind)
        if name is not None and name.rpartition(".")[2] in TYPES:
            return name.rpartition(".")[2]
        if isinstance(kind, ast.Name):
            later = names.get(kind.id)
            if isinstance(later, Later):
                kind, scope, names = later.node, later.scope, later.names
                continue
            bounds = scope.lookup(kind.id)
            if (
                len(bounds) == 1
                and isinstance(bounds[0].node, ast.expr)
                and bounds[0].scope is not None
                and bounds[0].what in {"value", "parameter"}
            ):
                kind, scope = bounds[0].node, bounds[0].scope
                continue
        if isinstance(kind, ast.Call) and kind.args and isinstance(kind.args[0], ast.Constant):
            text = str(kind.args[0].value).upper()
            return text if text in TYPES else None
        if isinstance(kind, ast.Subscript) and isinstance(kind.slice, ast.Constant):
            text = str(kind.slice.value).upper()
            return text if text in TYPES else None
        break
    values = plugin.values(kind, scope, release, names) if kind is not None else []
    return values[0].upper() if len(values) == 1 and isinstance(values[0], str) and values[0].upper() in TYPES else None
