"""What a module's `__getattr__` answers, as far as its text tells."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from sglang_plug.contract.folding import Unfoldable, dotted_name, fold

if TYPE_CHECKING:
    from collections.abc import Callable

_OPEN = {"startswith", "endswith", "match", "fullmatch"}


def served_names(tree: ast.Module, constant: Callable[[str], Any]) -> tuple[str, ...]:
    """Return the names that the module's `__getattr__` serves, as `name` or `name=target`; a last `?` means that it may serve others."""
    function = next(node for node in reversed(tree.body) if isinstance(node, ast.FunctionDef) and node.name == "__getattr__")
    arguments = function.args.posonlyargs + function.args.args
    if not arguments:
        return ("?",)
    wanted = arguments[0].arg
    found: dict[str, str] = {}
    is_open = False
    refuses = False
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and dotted_name(node.left) == wanted:
            _from_compare(node, constant, found)
        elif isinstance(node, ast.Subscript) and dotted_name(node.slice) == wanted:
            _from_table(node.value, constant, found)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "get" and node.args and dotted_name(node.args[0]) == wanted:
                _from_table(node.func.value, constant, found)
            is_open |= node.func.attr in _OPEN and dotted_name(node.func.value) == wanted
        elif isinstance(node, ast.Raise) and node.exc is not None:
            refuses |= "AttributeError" in ast.dump(node.exc)
    names = [f"{name}={target}" if target else name for name, target in found.items()]
    return (*names, "?") if is_open or not refuses or not found else tuple(names)


def _from_compare(node: ast.Compare, constant: Callable[[str], Any], found: dict[str, str]) -> None:
    operator, other = node.ops[0], node.comparators[0]
    if isinstance(operator, ast.Eq) and isinstance(other, ast.Constant) and isinstance(other.value, str):
        found.setdefault(other.value, "")
    elif isinstance(operator, ast.In):
        _from_table(other, constant, found)


def _from_table(node: ast.expr, constant: Callable[[str], Any], found: dict[str, str]) -> None:
    try:
        table = fold(node, constant)
    except Unfoldable:
        return
    if not isinstance(table, (dict, list, tuple, set, frozenset)) or (isinstance(node, ast.Call) and dotted_name(node.func) == "globals"):
        return
    for key in sorted(key for key in table if isinstance(key, str)):
        target = _target(key, table[key]) if isinstance(table, dict) else ""
        found[key] = found.get(key) or target


def _target(key: str, value: Any) -> str:
    """Where a table's row points: a module's name, or a (module, attribute) pair."""
    if isinstance(value, str) and value.startswith("sglang."):
        return f"{value}.{key}"
    if (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(part, str) for part in value)
        and value[0].startswith("sglang.")
    ):
        return f"{value[0]}.{value[1]}"
    return ""
