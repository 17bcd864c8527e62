"""The hooks that a plugin registers, found in calls, decorators, tables and loops: target, hook and type, as far as the text tells."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.source.callees import Site, handed_in, registering_calls
from sglang_plug.checks.source.calling import Mistake, mistake
from sglang_plug.checks.source.guards import Asked
from sglang_plug.checks.source.judging import Test
from sglang_plug.checks.source.reading import Later
from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.facts import Call, FileFacts
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.scopes import Definition, Scope
    from sglang_plug.contract.catalogue import Release

TYPES = frozenset({"BEFORE", "AFTER", "AROUND", "REPLACE"})


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
        mistake: why the call registers nothing, where that is certain.
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
    mistake: Mistake | None = None


def registrations(plugin: Plugin, release: Release) -> Iterator[Registration]:
    """Yield the hooks that are registered on a release, in file order, a table's rows one by one."""
    for facts, call, known in registering_calls(plugin):
        callee = known or handed_in(plugin, call.node.func, call.scope, release)
        if callee is not None:
            node = callee.applied(call.node)
            if plugin.runs(_own(call.guards, node), call.scope, release):
                yield from _registered(Site(plugin, facts, call, release, callee, known is not None and _imports(call)), node)


def _imports(call: Call) -> bool:
    """True where no class, function or parameter of the plugin bears the name by which the registry is called."""
    first = (dotted_name(call.node.func) or "").partition(".")[0]
    return not any(bound.what in {"class", "function", "parameter", "other"} for bound in call.scope.lookup(first))


def _own(guards: tuple[Any, ...], node: ast.Call) -> tuple[Any, ...]:
    """The guards that do not ask about the target itself: those are judged when the target is known."""
    asked = {part.id for argument in node.args[:1] for part in ast.walk(argument) if isinstance(part, ast.Name)}
    return tuple(guard for guard in guards if not _is_about(guard, asked))


def _is_about(guard: Any, names: set[str]) -> bool:
    return _mentions(guard.test, names) if isinstance(guard, Test) else isinstance(guard, Asked) and bool(guard.names & names)


def _mentions(test: ast.expr, names: set[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(test))


def _argument(node: ast.Call, position: int, *words: str) -> ast.expr | None:
    for word in node.keywords:
        if word.arg in words:
            return word.value
    return node.args[position] if len(node.args) > position and not isinstance(node.args[position], ast.Starred) else None


def _registered(site: Site, node: ast.Call) -> Iterator[Registration]:
    plugin, call, release = site.plugin, site.call, site.release
    asked = [guard for guard in call.guards if guard not in _own(call.guards, node)]
    seen: set[tuple[Any, ...]] = set()
    for names in plugin.environments(call.scope, release):
        verdicts = {guard: _verdict(plugin, guard, release, names) for guard in call.guards}
        if False in verdicts.values():
            continue
        whole, inside = _expanded(site, node, names)
        target = _argument(whole, 0, "target")
        kind = _argument(whole, 1, "type") if site.callee.decorates else _argument(whole, 2, "hook_type", "type")
        starred = any(isinstance(argument, ast.Starred) for argument in whole.args) or any(word.arg is None for word in whole.keywords)
        if target is None and not starred:
            return
        readings = (plugin.values(target, call.scope, release, inside) if target is not None else []) or [None]
        definition = _hook(site, whole, inside)
        wrong = mistake(site, whole, inside)
        type_name = None if starred and kind is None else _type(plugin, kind, call.scope, release, inside)
        for reading in readings:
            text = reading if isinstance(reading, str) else None
            key = (text, type_name, definition and id(definition[0]), wrong)
            if key not in seen:
                seen.add(key)
                guarded = any(verdicts[guard] is None for guard in asked) or len(readings) > 1
                found, place = definition or (None, None)
                words = ast.unparse(node if target is None else target)
                rest = (type_name, kind is not None, found, place, site.callee.runtime, guarded, wrong)
                yield Registration(site.facts, call.node, text, words, *rest)


def _verdict(plugin: Plugin, guard: Any, release: Release, names: dict[str, Any]) -> bool | None:
    """Whether `if not target: continue` and its like lets pass what the loop's variable stands for; None where nobody can tell."""
    if (
        not isinstance(guard, Test)
        or guard.probes
        or not any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(guard.test))
    ):
        return None
    values = plugin.values(guard.test, guard.scope, release, names)
    known = len(values) == 1 and isinstance(values[0], (bool, str, int))
    return bool(values[0]) is not guard.negated if known else None


def _expanded(site: Site, node: ast.Call, names: dict[str, Any]) -> tuple[ast.Call, dict[str, Any]]:
    """A call with its `*row` and `**row` written out, and the names that its new arguments need; as it is where they cannot be read."""
    inside = dict(names)

    def spell(item: Any) -> ast.expr:
        if isinstance(item, ast.expr):
            return item
        inside[f"*{len(inside)}"] = item
        return ast.Name(f"*{len(inside) - 1}", ast.Load())

    args: list[ast.expr] = []
    for argument in node.args:
        rows = site.plugin.values(argument.value, site.call.scope, site.release, names) if isinstance(argument, ast.Starred) else []
        row = rows[0] if len(rows) == 1 and isinstance(rows[0], (list, tuple)) else None
        args += [argument] if row is None else [spell(item) for item in row]
    words: list[ast.keyword] = []
    for word in node.keywords:
        rows = site.plugin.values(word.value, site.call.scope, site.release, names) if word.arg is None else []
        table = rows[0] if len(rows) == 1 and isinstance(rows[0], dict) else None
        words += [word] if table is None else [ast.keyword(str(key), spell(item)) for key, item in table.items()]
    return ast.copy_location(ast.Call(node.func, args, words), node), inside


def _hook(site: Site, node: ast.Call, names: dict[str, Any]) -> tuple[Definition | ast.Lambda, Scope] | None:
    """The hook's definition: what stands below the `@`, what the decorator is called with, or the second argument."""
    plugin, call = site.plugin, site.call
    if not site.callee.decorates:
        return _follow(plugin, _argument(node, 1, "hook"), call.scope, names)
    below = plugin.decorates(call.node)
    if below is not None:
        return below, call.scope
    outer = plugin.outer_call(call.node)
    if outer is not None and outer.args:
        return _follow(plugin, outer.args[0], call.scope, names)
    return _follow(plugin, ast.Name("@", ast.Load()), call.scope, names)


def _follow(plugin: Plugin, hook: ast.expr | None, scope: Scope, names: dict[str, Any]) -> tuple[Definition | ast.Lambda, Scope] | None:
    """Return the definition behind the hook's expression, or None."""
    for _ in range(4):
        if isinstance(hook, ast.Name) and isinstance(names.get(hook.id), Later):
            later = names[hook.id]
            hook, scope, names = later.node, later.scope, later.names
            continue
        break
    bounds = scope.lookup(hook.id) if isinstance(hook, ast.Name) and hook.id not in names else []
    if len(bounds) == 1 and isinstance(bounds[0].node, ast.Lambda):
        hook = bounds[0].node
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
