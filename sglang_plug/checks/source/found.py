"""How a source rule spells a finding: its place, its subject, its usual level. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Finding, Level, Location
from sglang_plug.checks.table import rule

if TYPE_CHECKING:
    import ast

    from sglang_plug.checks.source.project import PythonFile


def found(
    code: str,
    where: PythonFile | str,
    node: ast.AST | int | None,
    name: str,
    message: str,
    *,
    kind: str = "file",
    cause: str | None = None,
    hint: str | None = None,
    level: Level | None = None,
    **more: Any,
) -> Finding:
    """Return a finding of a rule at a place in the source.

    Args:
        code: the rule.
        where: the file, or its path as shown.
        node: the tree node, or a line.
        name: the subject: a dotted name, an entry point, a class.
        message: one sentence that is true for every release in which it is found.
        kind: the subject's kind.
        cause: why.
        hint: what to do.
        level: where it is not the rule's usual one.
        more: further facts for machines; `target` and `runtime` become part of the subject.
    """
    path = where if isinstance(where, str) else where.shown
    line = node if isinstance(node, int) or node is None else getattr(node, "lineno", None)
    column = None if isinstance(node, int) or node is None else getattr(node, "col_offset", -1) + 1
    subject = {"kind": kind, "name": name}
    subject |= {key: str(more.pop(key)) for key in ("target", "runtime", "group", "value") if more.get(key) is not None}
    return Finding(code, level or rule(code).level, subject, message, cause, hint, Location(path, line, column), data=more)
