"""The platform classes of a plugin: their bases, order and members, as far as the source and a release tell. Judges nothing."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.source.guards import not_ruled_out, reached
from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.facts import FileFacts
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.scopes import Scope
    from sglang_plug.contract.catalogue import Release

BASES = {
    "sglang.srt.platforms.interface.SRTPlatform": "srt",
    "sglang.multimodal_gen.runtime.platforms.interface.Platform": "diffusion",
}
MIXIN = "sglang.srt.platforms.device_mixin.DeviceMixin"


@dataclass(frozen=True, eq=False)
class Member:
    """What a class of the plugin defines under a name."""

    node: ast.AST
    facts_file: Any
    owner: ast.ClassDef


@dataclass(frozen=True, eq=False)
class PlatformClass:
    """A platform class of the plugin.

    Attributes:
        facts: its file.
        node: its definition.
        runtime: of its base.
        members: its members and those of its bases within the plugin, nearest first.
        order: its method resolution order as far as it is known: nodes of the plugin, dotted names of SGLang.
        complete: every base is known.
    """

    facts: FileFacts
    node: ast.ClassDef
    runtime: str
    members: dict[str, Member]
    order: tuple[ast.ClassDef | str, ...]
    complete: bool


def platform_classes(plugin: Plugin, release: Release) -> list[PlatformClass]:
    """Return the plugin's platform classes that no other of its classes derives from."""
    found_classes, parents = [], set()
    for facts in plugin.facts:
        for defined in facts.classes:
            if isinstance(defined.node, ast.ClassDef) and reached(defined.guards, release) and not facts.file.is_test:
                order, complete = _order(plugin, defined.node, defined.scope, release, 0)
                parents |= {id(cls) for cls in order[1:] if isinstance(cls, ast.ClassDef)}
                runtime = next((BASES[cls] for cls in order if isinstance(cls, str) and cls in BASES), None)
                if runtime:
                    members = _members(plugin, facts, order, release)
                    found_classes.append(PlatformClass(facts, defined.node, runtime, members, tuple(order), complete))
    return [cls for cls in found_classes if id(cls.node) not in parents]


def _order(plugin: Plugin, node: ast.ClassDef, scope: Scope, release: Release, depth: int) -> tuple[list[ast.ClassDef | str], bool]:
    """The MRO, near enough: each base's own order, a shared ancestor kept where it comes last."""
    sequences: list[list[ast.ClassDef | str]] = []
    complete = depth < 8
    for base in node.bases if depth < 8 else []:
        dotted = scope.dotted(base)
        if dotted is not None and dotted.startswith("sglang."):
            symbol = release.find(dotted)
            if symbol is None or symbol.kind != "class":
                complete = False
                continue
            sequences.append([cls for cls in release.lookup.linearize(symbol.origin) if cls != "builtins.object"])
            continue
        definition = plugin.definition(base, scope)
        if definition is not None and isinstance(definition[0], ast.ClassDef):
            inner, known = _order(plugin, definition[0], definition[1], release, depth + 1)
            sequences.append(inner)
            complete &= known
        elif dotted_name(base) not in {"object", "ABC", "abc.ABC"}:
            complete = False
    return [node, *_merged(sequences)], complete


def _merged(sequences: list[list[ast.ClassDef | str]]) -> list[ast.ClassDef | str]:
    result: list[ast.ClassDef | str] = []
    todo = [list(part) for part in sequences if part]
    while todo:
        head = next((part[0] for part in todo if not any(part[0] in other[1:] for other in todo)), todo[0][0])
        result.append(head)
        todo = [rest for part in todo if (rest := [cls for cls in part if cls is not head and cls != head])]
    return result


def _members(plugin: Plugin, facts: FileFacts, order: list[ast.ClassDef | str], release: Release) -> dict[str, Member]:
    members: dict[str, Member] = {}
    for cls in order:
        if isinstance(cls, str):
            continue
        inner = plugin.scope_of(cls)
        file = inner.file if inner is not None else facts.file
        for name, node in class_members(cls):
            bounds = inner.names.get(name, []) if inner is not None else []
            own = [bound for bound in bounds if bound.node is (node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else node)]
            if all(not_ruled_out(bound.guards, release) for bound in own):  # `if VERSION < …: def old_name(self)`
                members.setdefault(name, Member(node, file, cls))
    return members


def class_members(cls: ast.ClassDef) -> Iterator[tuple[str, ast.AST]]:
    for node in _flat(cls.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id, node
    for part in ast.walk(cls):  # `self.device_name = …` in __init__ counts
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and dotted_name(part.value) in {"self", "cls"}:
            yield part.attr, part


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _flat(node.body)
            yield from _flat(node.orelse)
        elif isinstance(node, (ast.Try, ast.TryStar)):
            yield from _flat(node.body)
            for handler in node.handlers:
                yield from _flat(handler.body)
