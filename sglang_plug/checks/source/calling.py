"""Calls that are meant to register a hook, and cannot: arguments that the call does not take, a type or a hook that is none."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.checks.source.reading import Later
from sglang_plug.contract.folding import dotted_name
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from sglang_plug.checks.source.callees import Site
    from sglang_plug.checks.source.facts import Call
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.scopes import Scope

_TYPES = ("BEFORE", "AFTER", "AROUND", "REPLACE")
_ESCAPES = "the exception ends the callback: what it would register behind this call is lost too"


class _Face(NamedTuple):
    """How one of the two is called, the same in every release: by position, of these so many needed, and by name alone."""

    name: str
    plain: tuple[str, ...]
    needed: int
    named: tuple[str, ...] = ()


_REGISTER = _Face("HookRegistry.register", ("target", "hook", "hook_type"), 2, ("source",))
_DECORATOR = _Face("plugin_hook", ("target", "type"), 1)


class Mistake(NamedTuple):
    """Why a call registers nothing."""

    message: str
    cause: str
    hint: str


def mistake(site: Site, node: ast.Call, names: dict[str, Any]) -> Mistake | None:
    """Return what is certainly wrong with a call that registers; None where it is right, where a `try` expects it, or nobody can tell.

    Args:
        site: the call.
        node: the same with its stars written out.
        names: what parameters and loop variables stand for.
    """
    plugin, call = site.plugin, site.call
    face = _DECORATOR if site.callee.decorates else _REGISTER
    if not site.certain or site.facts.file.is_test or plugin.caught(call.guards, call.scope, "catches_types"):
        return None
    if site.callee.decorates and call.node in site.facts.statements:
        cause = "it returns a decorator, and nothing is decorated"
        return Mistake("plugin_hook(…) is called as a statement: it registers nothing", cause, "write @plugin_hook(…) above the hook")
    open_ended = any(isinstance(part, ast.Starred) for part in node.args) or any(word.arg is None for word in node.keywords)
    given = dict(zip(face.plain, node.args, strict=False)) | {word.arg: word.value for word in node.keywords if word.arg}
    wrong = None if open_ended else _misfit(face, node, given)
    return wrong or (None if any(isinstance(part, ast.Starred) for part in node.args) else _no_type(plugin, call, face, given, names))


def _misfit(face: _Face, node: ast.Call, given: dict[str, ast.expr]) -> Mistake | None:
    """What the call does not take, or lacks."""
    strange = next((word for word in given if word not in {*face.plain, *face.named}), None)
    lacking = next((word for word in face.plain[: face.needed] if word not in given), None)
    if strange is not None:
        kind = face.plain[-1]
        hint = f"the hook's type is {kind}=" if strange in {"type", "hook_type", "kind"} else f"it takes {', '.join(face.plain)}"
        return Mistake(f"{face.name}(…) has no parameter {strange!r}: the call raises TypeError", _ESCAPES, hint)
    if len(node.args) > len(face.plain):
        return Mistake(
            f"{face.name}(…) takes {len(face.plain)} arguments by position, and {len(node.args)} are given: the call raises TypeError",
            _ESCAPES,
            f"it takes {', '.join(face.plain)}",
        )
    if lacking is not None:
        hint = "as a decorator, use @plugin_hook(target, type=…)" if lacking == "hook" else f"it takes {', '.join(face.plain)}"
        return Mistake(f"{face.name}(…) is called without {lacking!r}: the call raises TypeError", _ESCAPES, hint)
    return None


def _no_type(plugin: Plugin, call: Call, face: _Face, given: dict[str, ast.expr], names: dict[str, Any]) -> Mistake | None:
    """A type that is none, or a hook that is none."""
    kind, hook = given.get(face.plain[-1]), given.get("hook")
    is_no_type = _no_enum(plugin, call, kind, call.scope, names) if kind is not None else ""
    swapped = hook is not None and _is_type(hook, call.scope)
    if is_no_type:
        hint = (
            f"the type comes last: {face.name}(target, hook, HookType.…)"
            if swapped
            else f"write {face.plain[-1]}=HookType.AROUND, or another of {', '.join(_TYPES)}"
        )
        return Mistake(f"{face.name}(…) gets {a(is_no_type)} as the hook's type: the call raises AttributeError", _ESCAPES, hint)
    if hook is not None and (swapped or isinstance(hook, ast.Constant)):
        cause = "the registry takes it, and each call of the target fails"
        return Mistake(f"{ast.unparse(hook)} is registered as a hook, and cannot be called", cause, "hand in the function itself")
    return None


def _is_type(node: ast.expr, scope: Scope) -> bool:
    owner, _, last = (scope.dotted(node) or "").rpartition(".")
    return last in _TYPES and owner.startswith("sglang.") and owner.endswith(".HookType")


def _no_enum(plugin: Plugin, call: Call, node: ast.expr, scope: Scope, names: dict[str, Any]) -> str:
    """What an expression is, where that is certainly no HookType; else an empty text."""
    guarded = {part.id for guard in call.guards for part in ast.walk(getattr(guard, "test", ast.Pass())) if isinstance(part, ast.Name)}
    for _ in range(6):
        if isinstance(node, ast.Constant):
            return "text" if isinstance(node.value, str) else repr(node.value)
        if isinstance(node, ast.Lambda):
            return "function"
        bounds = scope.lookup(node.id) if isinstance(node, ast.Name) and node.id not in guarded else []
        if not isinstance(node, ast.Name) or len(bounds) != 1:
            return ""
        held = names.get(node.id)
        if isinstance(held, Later):
            node, scope, names = held.node, held.scope, held.names
        elif held is not None:
            return "text" if isinstance(held, str) else ""
        elif bounds[0].what == "value" and isinstance(bounds[0].node, ast.expr) and bounds[0].scope is not None:
            node, scope = bounds[0].node, bounds[0].scope
        else:
            definition = plugin.definition(node, scope)
            plain = definition is not None and isinstance(definition[0], (ast.FunctionDef, ast.AsyncFunctionDef))
            return "function" if plain and definition and not definition[0].decorator_list and dotted_name(node) else ""
    return ""
