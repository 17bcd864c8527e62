"""Rules over the hook itself: whether its type, parameters, kind and results fit the target it is registered on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Level
from sglang_plug.checks.signatures import call_gap
from sglang_plug.checks.source.found import found
from sglang_plug.contract.folding import dotted_name
from sglang_plug.contract.model import CALLABLE, Kind, Presence, read_parameters
from sglang_plug.contract.signatures import yields
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.registrations import Registration
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol

_ORIGINALS = frozenset({"original", "original_fn", "original_func", "original_function", "original_method", "orig", "orig_fn", "orig_func",
                        "orig_method", "wrapped", "call_next", "next_fn", "inner", "inner_fn"})  # fmt: skip
_KEEPING = ("wraps", "no_grad", "inference_mode", "torch.compiler.disable")  # decorators that keep the parameters
_SEALED = frozenset({"__setattr__"})


def judge_hook(hook: Registration, release: Release) -> Iterator[Finding]:
    """SP512–SP515, SP522, SP709, SP710: one hook against its target."""
    node = hook.hook
    if node is None or hook.target is None or hook.mistake is not None:
        return
    symbol = release.find(hook.target)
    if symbol is None or symbol.kind is Kind.UNKNOWN:
        return
    if isinstance(node, ast.ClassDef):
        yield from _class_hook(hook, node, symbol)
        return
    if any(not _keeps(decorator) for decorator in getattr(node, "decorator_list", ()) if decorator is not hook.node):
        return
    wrong = list(_wrong_type(hook, node))
    yield from wrong
    yield from _signature(hook, node, symbol) if not wrong else ()
    yield from _returns(hook, node, symbol)
    yield from _async(hook, node, symbol)
    yield from _recursion(hook, node, symbol, release)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _sealed_arguments(hook, node, symbol, release)
        yield from _flags(hook, node, symbol)


def _keeps(decorator: ast.expr) -> bool:
    name = dotted_name(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
    return name.rpartition(".")[2] in {"plugin_hook", "staticmethod"} or name.endswith(_KEEPING)


def _name(node: ast.AST) -> str:
    return getattr(node, "name", "<lambda>")


def _say(hook: Registration, code: str, message: str, node: ast.AST | None = None, **more: Any) -> Finding:
    scope_file = hook.hook_scope.file if hook.hook_scope is not None and node is not None else hook.facts.file
    target = (hook.target or "").replace(":", ".")
    return found(
        code,
        scope_file,
        node or hook.node,
        _name(hook.hook) if hook.hook else target,
        message,
        kind="hook",
        target=target,
        runtime=hook.runtime,
        **more,
    )


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[dict[str, Any]]:
    return [parameter._asdict() for parameter in read_parameters(node.args)]


def _forgotten_type(hook: Registration, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[Finding]:
    plain = [*node.args.posonlyargs, *node.args.args]
    first = plain[0].arg if plain else ""
    if hook.type != "AFTER" or (first not in _ORIGINALS and not (first in {"fn", "func"} and not hook.type_given)):
        return
    if any(isinstance(part, ast.Call) and dotted_name(part.func) == first for part in ast.walk(node)):
        how = "is registered as AFTER, the default," if not hook.type_given else "is registered as AFTER"
        message = f"{_name(node)} {how} and calls its first parameter {first}, which is the result"
        word = "type" if isinstance(node, ast.FunctionDef) and hook.node in node.decorator_list else "hook_type"
        yield _say(hook, "SP512", message, hint=f"register it with {word}=HookType.AROUND")


def _wrong_type(hook: Registration, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Iterator[Finding]:
    """SP512: the parameters, or what is done with the first one, belong to another type."""
    yield from _forgotten_type(hook, node)
    plain = [*node.args.posonlyargs, *node.args.args]
    first = plain[0].arg if plain else ""
    if hook.type != "AROUND" or not first or first.startswith("_") or _refuses(node):
        return
    reads = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == first]
    attributes = {id(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    if first in {"self", "cls"} and all(id(part) in attributes for part in reads):
        message = f"{_name(node)} is registered as AROUND and lacks the parameter for the original function: {first} would be that function"
        hint = f"def {_name(node)}(original, {first}, *args, **kwargs): return original({first}, *args, **kwargs)"
        yield _say(hook, "SP512", message, node, hint=hint)
    elif not reads:
        message = (
            f"{_name(node)} is registered as AROUND and never uses its first parameter {first}, the original function, which never runs"
        )
        hint = f"call {first}(*args, **kwargs); if it is not to run: HookType.REPLACE, without that parameter"
        yield _say(hook, "SP512", message, node, hint=hint, level=Level.WARNING)


def _refuses(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """True for a body that is a stub, always raises, or looks at its variables by name."""
    if isinstance(node, ast.Lambda):
        return False
    body = node.body[1:] if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant) else node.body
    named = any(isinstance(part, ast.Name) and part.id in {"locals", "eval", "exec"} for part in ast.walk(node))
    return named or not body or isinstance(body[-1], ast.Raise) or (len(body) == 1 and isinstance(body[0], ast.Pass))


def _signature(hook: Registration, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, symbol: Symbol) -> Iterator[Finding]:
    expected = _expected(hook, symbol)
    if expected is None:
        return
    actual = _arguments(node)
    if hook.type in {"AFTER", "AROUND"} and not [p for p in actual if p["kind"] in {"positional", "positional-only", "var-positional"}]:
        first = "the result" if hook.type == "AFTER" else "the original"
        yield _say(hook, "SP513", f"{_name(node)} takes no parameter for {first}, which an {hook.type} hook gets first", node)
        return
    placed = _same_names(expected, actual)
    gap = call_gap(expected, placed)
    if gap is not None:
        lead = {"AFTER": "result, ", "AROUND": "original, "}.get(hook.type or "", "")
        words = gap.words
        for as_target, own in zip(placed, actual, strict=True):
            words = words.replace(f"'{as_target['name']}', which", f"'{own['name']}', which")  # what the hook needs bears its own name
        message = f"{_name(node)} {words}"
        cause = f"{symbol.origin} is called as {symbol.signature}"
        hint = f"write it as {_name(node)}({lead}*args, **kwargs), or take what the target takes"
        yield _say(hook, "SP513", message, node, cause=cause, hint=hint, level=Level.ERROR if gap.certain else Level.WARNING)


def _expected(hook: Registration, symbol: Symbol) -> list[dict[str, Any]] | None:
    """What the hook is called with; None where that is not known."""
    if symbol.kind not in CALLABLE or symbol.varies or symbol.presence is not Presence.SURE or symbol.parameters is None:
        return None
    if hook.type is None or symbol.rewrapped:
        return None
    if symbol.inherited and symbol.kind in {Kind.CLASSMETHOD, Kind.STATICMETHOD}:
        return None  # said by SP508
    first = {"AFTER": "result", "AROUND": "original"}.get(hook.type)
    own = [parameter._asdict() for parameter in symbol.parameters]
    return [{"name": first, "kind": "positional-only", "required": True}, *own] if first else own


def _same_names(expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The hook's parameters, those in the place of a required one renamed as the target's.

    Callers pass what is required by position, whatever the hook calls it; what is optional they pass by name.
    """
    placed = [(p["name"], p["required"]) for p in expected if p["kind"] in {"positional", "positional-only"}]
    known = {p["name"] for p in actual}
    renamed = []
    for index, parameter in enumerate(actual):
        name, required = placed[index] if index < len(placed) else ("", False)
        if parameter["kind"] in {"positional", "positional-only"} and required and name not in known:
            renamed.append({**parameter, "name": name})
        else:
            renamed.append(parameter)
    return renamed


def _returns(hook: Registration, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, symbol: Symbol) -> Iterator[Finding]:
    if hook.type == "AROUND" and symbol.gives and _drops_result(node):
        message = f"{_name(node)} calls the original and returns nothing: callers get None in place of the result"
        yield _say(hook, "SP514", message, node, cause=f"{symbol.origin} is {symbol.signature}", hint="return original(*args, **kwargs)")
    if hook.type != "BEFORE" or isinstance(node, ast.AsyncFunctionDef):
        return
    values = [node.body] if isinstance(node, ast.Lambda) else [part.value for part in _own_returns(node)]
    for value in values:
        wrong = _not_arguments(value)
        if wrong:
            message = f"{_name(node)} returns {wrong}; a BEFORE hook returns None or (args, kwargs)"
            yield _say(hook, "SP514", message, value if not isinstance(node, ast.Lambda) else None, hint="return args, kwargs")
            return


def _drops_result(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """True for a function that calls its first parameter and has no return with a value, nor ends by raising."""
    if isinstance(node, ast.Lambda) or isinstance(node.body[-1], ast.Raise) or yields(node):
        return False
    first = [*node.args.posonlyargs, *node.args.args][:1]
    calls = any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and [part.func.id] == [a.arg for a in first]
        for part in ast.walk(node)
    )
    return calls and all(
        part.value is None or (isinstance(part.value, ast.Constant) and part.value.value is None) for part in _own_returns(node)
    )


def _own_returns(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Return]:
    todo: list[ast.AST] = list(node.body)
    while todo:
        part = todo.pop(0)
        if isinstance(part, ast.Return):
            yield part
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo.extend(ast.iter_child_nodes(part))


def _not_arguments(value: ast.expr | None) -> str:
    """What a returned value certainly is, when it cannot be (args, kwargs)."""
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return ""
    if isinstance(value, ast.Tuple):
        starred = any(isinstance(part, ast.Starred) for part in value.elts)
        return "" if len(value.elts) == 2 or starred else f"a tuple of {len(value.elts)}"
    if isinstance(value, ast.Constant):
        return f"the constant {value.value!r}"
    named = {
        ast.Dict: "a dictionary",
        ast.JoinedStr: "a text",
        ast.Compare: "a truth value",
        ast.Set: "a set",
        ast.DictComp: "a dictionary",
    }
    if isinstance(value, ast.BinOp) and any(
        isinstance(part, ast.Constant) and isinstance(part.value, (int, float)) for part in (value.left, value.right)
    ):
        return "a number"
    return named.get(type(value), "")


def _async(hook: Registration, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, symbol: Symbol) -> Iterator[Finding]:
    if not isinstance(node, ast.AsyncFunctionDef) or symbol.is_async or symbol.kind not in CALLABLE or symbol.varies:
        return
    if yields(node) or symbol.rewrapped or symbol.makes_context:
        return
    message = f"{_name(node)} is async and {symbol.origin} is not: its callers get a coroutine"
    if hook.type == "BEFORE":
        message = f"{_name(node)} is async: a BEFORE hook's coroutine is never awaited"
    yield _say(hook, "SP515", message, node, hint="write it as a plain function")


def _recursion(hook: Registration, node: ast.AST, symbol: Symbol, release: Release) -> Iterator[Finding]:
    """A replacement that calls the original by a name that SGLang rebinds to the replacement."""
    scope = hook.hook_scope
    if hook.type != "REPLACE" or scope is None or symbol.kind not in CALLABLE:
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            dotted = _called(part.func, node, scope)
            called = release.find(dotted) if dotted and dotted.startswith("sglang.") else None
            if called is not None and called.origin == symbol.origin and called.kind in CALLABLE:
                message = f"{_name(node)} replaces {symbol.origin} and calls it as {ast.unparse(part.func)}, which is {_name(node)} by then"
                yield _say(hook, "SP522", message, part, hint="register it with HookType.AROUND and call its first parameter")
                return


def _called(function: ast.expr, node: ast.AST, scope: Any) -> str | None:
    name = dotted_name(function)
    if name is None:
        return None
    first, _, rest = name.partition(".")
    for part in ast.walk(node):  # an import inside the hook itself
        if isinstance(part, ast.ImportFrom) and part.level == 0:
            for alias in part.names:
                if (alias.asname or alias.name) == first:
                    return f"{part.module}.{alias.name}" + (f".{rest}" if rest else "")
    dotted: str | None = scope.dotted(function)
    return dotted


def _class_hook(hook: Registration, node: ast.ClassDef, symbol: Symbol) -> Iterator[Finding]:
    if hook.type not in {"REPLACE", None}:
        message = f"the class {node.name} is registered as {hook.type}: a class can be used with REPLACE alone"
        yield _say(hook, "SP511", message, hint="register it with HookType.REPLACE")
    elif symbol.kind in CALLABLE and not symbol.decorators:
        yield _say(hook, "SP511", f"the class {node.name} replaces {symbol.name}, which is {a(symbol.label)}", level=Level.WARNING)
    scope = hook.hook_scope
    if scope is None or symbol.kind is not Kind.CLASS:
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.args and dotted_name(part.args[0]) == "self":
            owner = scope.dotted(part.func.value)
            if owner is not None and owner == symbol.origin:
                text = ast.unparse(part.func)
                message = f"{node.name} replaces {symbol.origin} and calls {text}(self, …): that name is {node.name} by then"
                yield _say(hook, "SP522", message, part, hint=f"write super().{part.func.attr}(…)")
                return


def _sealed_arguments(
    hook: Registration, node: ast.FunctionDef | ast.AsyncFunctionDef, symbol: Symbol, release: Release
) -> Iterator[Finding]:
    if symbol.origin.startswith("sglang.srt.server_args.") or not _seals_arguments(release) or not symbol.origin.startswith("sglang.srt."):
        return
    for part in ast.walk(node):
        targets = (
            part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, (ast.AugAssign, ast.AnnAssign)) else []
        )
        for target in targets:
            owner = dotted_name(target.value) if isinstance(target, ast.Attribute) else None
            if (
                owner
                and owner.rpartition(".")[2] == "server_args"
                and isinstance(target, ast.Attribute)
                and not target.attr.startswith("_")
            ):
                message = f"{node.name} writes {ast.unparse(target)}: server arguments are read-only once they are resolved"
                hint = "write the platform's apply_server_args_defaults(), or hook ServerArgs.resolve_once"
                yield _say(hook, "SP709", message, part, hint=hint)
                return


def _seals_arguments(release: Release) -> bool:
    """True from the release on in which ServerArgs refuses assignments after resolution."""
    symbol = release.find("sglang.srt.server_args.ServerArgs.__setattr__")
    return symbol is not None and symbol.kind is Kind.METHOD


def _flags(hook: Registration, node: ast.FunctionDef | ast.AsyncFunctionDef, symbol: Symbol) -> Iterator[Finding]:
    if not symbol.origin.endswith(".add_cli_args") or not symbol.origin.startswith("sglang."):
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "add_argument" and part.args:
            flag = part.args[0]
            if isinstance(flag, ast.Constant) and isinstance(flag.value, str):
                message = f"{node.name} adds {flag.value}: `sglang serve --help` does not show it, and its value does not reach ServerArgs"
                yield _say(hook, "SP710", message, part, hint="read it from sys.argv or the environment, or hook from_cli_args too")
                return
