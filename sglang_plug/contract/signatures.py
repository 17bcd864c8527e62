"""Signatures, decorators and generators, read off syntax trees as short text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_LONG_DEFAULT = 48
_LONG_ANNOTATION = 96


def format_signature(node: Function) -> str:
    """Return `(self, x: int = 1, *, y) -> None`, with `...` for defaults and annotations that are long."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    free = len(plain) - len(args.defaults)
    parts = []
    for index, arg in enumerate(plain):
        parts.append(_parameter(arg, args.defaults[index - free] if index >= free else None))
        if args.posonlyargs and index == len(args.posonlyargs) - 1:
            parts.append("/")
    if args.vararg:
        parts.append("*" + _parameter(args.vararg, None))
    elif args.kwonlyargs:
        parts.append("*")
    parts += [_parameter(arg, default) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg:
        parts.append("**" + _parameter(args.kwarg, None))
    result = f" -> {_short(node.returns, _LONG_ANNOTATION)}" if node.returns else ""
    return f"({', '.join(parts)}){result}"


def _parameter(arg: ast.arg, default: ast.expr | None) -> str:
    text = arg.arg
    if arg.annotation is not None:
        text += f": {_short(arg.annotation, _LONG_ANNOTATION)}"
    if default is not None:
        text += f"{' = ' if arg.annotation else '='}{_short(default, _LONG_DEFAULT)}"
    return text


def _short(node: ast.expr, limit: int) -> str:
    if isinstance(node, ast.Name):
        return node.id
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    text = repr(ast.literal_eval(node)) if is_text else ast.unparse(node)
    return text if len(text) <= limit and "\n" not in text and "\t" not in text else "..."


def decorator_names(nodes: list[ast.expr], *, keep_words: tuple[str, ...] = ()) -> list[str]:
    """Return the decorators' dotted names, outermost first, with `(…)` after those that are called.

    Args:
        nodes: the decorator expressions.
        keep_words: keyword arguments that are spelled out, because they change what the decorator makes.
    """
    names = []
    for node in nodes:
        if isinstance(node, ast.Call):
            name = dotted_name(node.func) or "?"
            words = [
                word.arg
                for word in node.keywords
                if word.arg in keep_words and not (isinstance(word.value, ast.Constant) and not word.value.value)
            ]
            names.append(f"{name}({' '.join(words) or '…'})")
        else:
            names.append(dotted_name(node) or "?")
    return names


def yields(node: Function) -> bool:
    """True where calling the function makes a generator."""
    return any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in _own_nodes(node))


def _own_nodes(node: Function) -> Iterator[ast.AST]:
    todo: list[ast.AST] = list(node.body)
    while todo:
        part = todo.pop()
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        yield part
        todo.extend(ast.iter_child_nodes(part))
