"""What one file of a plugin says, as plain records: imports, uses, monkey patches, calls, definitions. Walks and judges nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    from sglang_plug.checks.source.project import PythonFile
    from sglang_plug.checks.source.scopes import Guard, Scope

    Guards = tuple[Guard, ...]


@dataclass(frozen=True, eq=False)
class Import:
    """`from module import name` or `import module`: the absolute name that has to exist."""

    dotted: str
    is_from: bool
    node: ast.stmt
    guards: Guards
    scope: Scope
    name: str = ""  # of `from … import name`
    alias: ast.alias | None = None  # where the name stands


@dataclass(frozen=True, eq=False)
class Use:
    """A read of an attribute of something imported: `module.name`, `Class.member`."""

    dotted: str
    node: ast.Attribute
    guards: Guards
    scope: Scope


@dataclass(frozen=True, eq=False)
class Store:
    """A monkey patch: `module.name = …`, `Class.member = …`, `setattr(owner, "name", …)`.

    Attributes:
        owner: the absolute dotted name of what is written to, or the loop's variable that stands for it.
        name: the attribute, or the expression that gives it to `setattr`.
        node: the assignment or call.
    """

    owner: str | ast.expr
    name: str | ast.expr
    node: ast.AST
    guards: Guards
    scope: Scope


@dataclass(frozen=True, eq=False)
class Call:
    """Any call, with its dotted callee as written."""

    name: str
    node: ast.Call
    guards: Guards
    scope: Scope


@dataclass(frozen=True, eq=False)
class Defined:
    """A function or class, where it is defined."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    guards: Guards
    scope: Scope


@dataclass(eq=False)
class FileFacts:
    """What one file says."""

    file: PythonFile
    scope: Scope
    error: SyntaxError | ValueError | None = None
    imports: list[Import] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    functions: list[Defined] = field(default_factory=list)
    classes: list[Defined] = field(default_factory=list)
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)
    stores: list[Store] = field(default_factory=list)
    statements: set[ast.Call] = field(default_factory=set)  # calls whose result is dropped
    main_guard: bool = False
