"""Whether a target is read as it is meant, and is the kind of thing that a hook can stand in for. Values only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.contract.constants import is_constant
from sglang_plug.contract.model import Kind
from sglang_plug.contract.peculiarities import Note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol


def misspelt(target: str, release: Release) -> tuple[str, str] | None:
    """Return why SGLang does not read a target, and what to write; None where it does."""
    dotted = target.replace(":", ".")
    if target != target.strip() or any(not part.isidentifier() for part in dotted.split(".")):
        return "it is not a dotted name", f"write {dotted.strip()!r}" if dotted.strip() != target else "write module.Class.method"
    if "." not in dotted:
        return "it needs a module and an attribute", "write module.Class.method"
    if ":" in target:
        module, _, path = target.partition(":")
        if "." not in path:
            return "SGLang splits a target at its last dot, so the colon form works for module:Class.method alone", f"write {dotted!r}"
        if not release.has_module(module) and release.find(dotted) is not None:
            return f"before the colon stands no module: {module}", f"write {dotted!r}"
    return None


def obstacles(release: Release, target: str, symbol: Symbol) -> Iterator[Note]:
    """Yield what comes of a hook on `target` (as it is written) for what it is, whatever the hook's type."""
    if (problem := misspelt(target.strip(), release)) is not None:
        yield Note("kind", "dead", f"does not read the target {target.strip()!r}: {problem[0]}", symbol.name)
    if symbol.kind is Kind.FIELD:
        yield Note("kind", "dead", "finds no such attribute: it is an annotated field, which instances have and the class has not")
    elif symbol.kind is Kind.MODULE or is_constant(release, symbol):
        what = "module" if symbol.kind is Kind.MODULE else "value"
        yield Note("kind", "dead", f"puts a function in the place of the {what}, and what uses it breaks")
    elif symbol.kind is Kind.PROPERTY:
        yield Note("kind", "caution", "makes a method of a property that is hooked, which is always true")
    elif symbol.kind is Kind.CLASS:
        yield Note("kind", "caution", "lets a class be hooked with REPLACE alone")
    elif symbol.inherited and symbol.kind in {Kind.CLASSMETHOD, Kind.STATICMETHOD}:
        yield Note("kind", "caution", f"makes a plain function of an inherited {symbol.kind.value} that is hooked", symbol.origin)
