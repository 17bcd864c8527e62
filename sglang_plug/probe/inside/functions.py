"""What can be said about a callable without calling it: kind, parameters, place, and what it may return. Facts only."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from typing import Any

from .failures import safe_repr

_CALL = "__call__"
_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional-only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "var-positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword-only",
    inspect.Parameter.VAR_KEYWORD: "var-keyword",
}


def describe(thing: Any) -> dict[str, Any]:
    """Return {"name", "module", "file", "line", "kind", "signature", "parameters", "bound"} of a callable, or of what was passed as one."""
    code = getattr(inspect.unwrap(thing) if inspect.isroutine(thing) else thing, "__code__", None)
    facts: dict[str, Any] = {
        "name": getattr(thing, "__qualname__", None) or safe_repr(thing)[:200],
        "module": getattr(thing, "__module__", None),
        "file": getattr(code, "co_filename", None),
        "line": getattr(code, "co_firstlineno", None),
        "kind": kind_of(thing),
        "async": kind_of(thing).startswith("async") or inspect.iscoroutinefunction(getattr(type(thing), _CALL, None)),
        "bound": getattr(thing, "__self__", None) is not None and inspect.ismethod(thing),
    }
    facts.update(signature_of(thing))
    return facts


def kind_of(thing: Any) -> str:
    """Return what kind of callable it is in words (`class`, `async function`, `generator`, …), or the name of its type."""
    if isinstance(thing, type):
        return "class"
    plain = thing
    while isinstance(plain, functools.partial):
        plain = plain.func
    if inspect.iscoroutinefunction(plain):
        return "async function"
    if inspect.isasyncgenfunction(plain):
        return "async generator"
    if inspect.isgeneratorfunction(plain):
        return "generator"
    if inspect.isfunction(plain) or inspect.ismethod(plain):
        return "function"
    if inspect.isbuiltin(plain) or (inspect.ismethoddescriptor(plain) and not hasattr(plain, "__wrapped__")):
        return "builtin"
    if hasattr(plain, "cache_clear") and hasattr(plain, "__wrapped__"):
        return "cached function"
    if callable(plain):
        return "callable object"
    return type(plain).__name__


def signature_of(thing: Any) -> dict[str, Any]:
    """Return {"signature": text, "parameters": [{"name", "kind", "required"}]}, both None where Python cannot tell."""
    try:
        signature = inspect.signature(thing)
    except (ValueError, TypeError):
        return {"signature": None, "parameters": None}
    parameters = [
        {"name": p.name, "kind": _KINDS[p.kind], "required": p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        for p in signature.parameters.values()
    ]
    return {"signature": _plain(signature), "parameters": parameters}


def _plain(signature: inspect.Signature) -> str:
    """The signature without annotations: they may be long, and strangers' reprs may be anything."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    try:
        return str(inspect.Signature(bare))
    except Exception:
        return "(" + ", ".join(p.name for p in bare) + ")"


def returns_of(function: Any) -> list[dict[str, Any]]:
    """Return what each `return` gives: [{"line", "shape", "size", "text"}]; shape is none, tuple, constant, call, name or other."""
    node = _parse(function)
    if node is None:
        return []
    found = []
    if isinstance(node, ast.Lambda):
        found.append(_shape(node.body, 1))
    else:
        found += [_shape(item.value, item.lineno) for item in _own_nodes(node) if isinstance(item, ast.Return)]
    base = getattr(getattr(function, "__code__", None), "co_firstlineno", 1)
    for entry in found:
        entry["line"] += base - 1
    return found


def gives_nothing(function: Any) -> bool:
    """True for a plain function without a return with a value, that does not end by raising; False where nobody can tell."""
    node = _parse(function)
    if node is None or isinstance(node, ast.Lambda) or isinstance(node.body[-1], ast.Raise) or "generator" in kind_of(function):
        return False
    return all(row["shape"] == "none" for row in returns_of(function))


def answering(function: Any, answer: Any) -> dict[str, Any]:
    """Return {"returns": the line that gave the answer, "mute": it has no return with a value}; None where nobody can tell."""
    if _parse(function) is None:
        return {"returns": None, "mute": None}
    given = [row for row in returns_of(function) if row["shape"] != "none"]
    same = [row for row in given if row["text"] == safe_repr(answer)[:80]]
    return {"returns": (same or given)[-1]["line"] if given else None, "mute": not given}


def first_use(function: Any) -> str | None:
    """Return what a function does with its first parameter: `none`, `attributes` (reads only those), `used`; None where nobody can tell."""
    node = _parse(function)
    plain = [*node.args.posonlyargs, *node.args.args] if node is not None else []
    if node is None or not plain or hasattr(function, "__wrapped__") or function.__code__.co_varnames[:1] != (plain[0].arg,):
        return None
    named = [item for item in ast.walk(node) if isinstance(item, ast.Name)]
    if any(item.id in {"locals", "vars", "eval", "exec"} for item in named):
        return None
    uses = [item for item in named if item.id == plain[0].arg]
    bearers = {id(item.value) for item in ast.walk(node) if isinstance(item, ast.Attribute) and item.attr != "__call__"}
    if not uses:
        return "none"
    return "attributes" if all(id(item) in bearers for item in uses) else "used"


def unawaited(function: Any) -> int | None:
    """Return the line where an async function returns a call of its first parameter without awaiting it; None where it does not."""
    node = _parse(function)
    plain = [*node.args.posonlyargs, *node.args.args] if isinstance(node, ast.AsyncFunctionDef) else []
    for item in _own_nodes(node) if node is not None and plain else []:
        if not (isinstance(item, ast.Return) and isinstance(item.value, ast.Call)):
            continue
        called = item.value.func
        if isinstance(called, ast.Name) and called.id == plain[0].arg:
            return int(item.lineno) + int(function.__code__.co_firstlineno) - 1
    return None


def iterates(function: Any) -> bool:
    """True where a function runs through something, or nobody can tell."""
    node = _parse(function)
    return node is None or any(isinstance(item, (ast.YieldFrom, ast.For, ast.AsyncFor, ast.While)) for item in _own_nodes(node))


def source_of(function: Any) -> str:
    """Return a function's source; empty where there is none."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return ""


def _own_nodes(node: ast.AST) -> list[ast.AST]:
    """Every node of a function's body, without the bodies of functions inside it."""
    found: list[ast.AST] = []
    queue = list(ast.iter_child_nodes(node))
    while queue:
        item = queue.pop(0)
        found.append(item)
        if not isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            queue += list(ast.iter_child_nodes(item))
    return found


def _parse(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
    if not inspect.isfunction(function):
        return None
    try:
        tree = ast.parse(textwrap.dedent(source_of(function)))
    except (SyntaxError, ValueError):
        return None
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    if function.__name__ == "<lambda>":
        return lambdas[0] if len(lambdas) == 1 else None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return node
    return None


def _shape(value: ast.expr | None, line: int) -> dict[str, Any]:
    size = None
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        shape = "none"
    elif isinstance(value, ast.Tuple):
        shape, size = "tuple", len(value.elts)
    elif isinstance(value, (ast.Constant, ast.BinOp, ast.JoinedStr, ast.Dict, ast.Set, ast.Compare, ast.List)):
        shape = "constant"
    else:
        shape = {ast.Call: "call", ast.Name: "name"}.get(type(value), "other")
    text = ast.unparse(value) if value is not None else ""
    return {"line": line, "shape": shape, "size": size, "text": text[:80]}


def names_used(function: Any) -> set[str]:
    """Return every global name that a function or class, and what is defined inside it, reads."""
    found: set[str] = set()
    codes = [code for code in _codes(function) if code is not None]
    while codes:
        code = codes.pop()
        found.update(code.co_names)
        codes += [const for const in code.co_consts if inspect.iscode(const)]
    return found


def _codes(thing: Any) -> list[Any]:
    if isinstance(thing, type):
        members = [getattr(member, "__func__", member) for member in vars(thing).values()]
        return [getattr(member, "__code__", None) for member in members]
    return [getattr(inspect.unwrap(thing) if inspect.isroutine(thing) else thing, "__code__", None)]
