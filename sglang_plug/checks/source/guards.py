"""The conditions around a piece of source: a `try` that expects an ImportError, its handler, a branch for type checkers."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.contract.folding import dotted_name
from sglang_plug.contract.model import Kind, Presence

if TYPE_CHECKING:
    from sglang_plug.checks.source.scopes import Guard
    from sglang_plug.contract.catalogue import Release

_CATCHES_IMPORTS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_CATCHES_ATTRIBUTES = frozenset({"AttributeError", "Exception", "BaseException"})
_CATCHES_TYPES = frozenset({"TypeError", "Exception", "BaseException"})


def reached(guards: tuple[Guard, ...], release: Release) -> bool:
    """True where the source inside all these conditions is meant to run on the release."""
    for guard in guards:
        state = guard.state(release)
        if state is False or (state is None and guard.probes):
            return False
    return True


def not_ruled_out(guards: tuple[Guard, ...], release: Release) -> bool:
    """True unless a condition is known to fail: an import behind a probe, or in a `try`, has its effects all the same."""
    return all(guard.state(release) is not False for guard in guards)


@dataclass(frozen=True, eq=False)
class TypingOnly:
    """`if TYPE_CHECKING:`, or a test's own branch that never runs in production."""

    probes: bool = True

    def state(self, release: Release) -> bool | None:
        return False


@dataclass(frozen=True, eq=False)
class Tried:
    """The body of a `try` whose handler expects that an import, or an attribute, is not there.

    Attributes:
        named: it names the very error: `except Exception` around a call may be meant for anything.
        catches_types: likewise for what a call does not take.
    """

    catches_imports: bool
    catches_attributes: bool
    named: bool = False
    catches_types: bool = False
    probes: bool = False

    def state(self, release: Release) -> bool | None:
        return None


@dataclass(frozen=True, eq=False)
class Asked:
    """Behind a call that fails where what these names stand for is not there: `try: resolve(target)` / `except …: return`."""

    names: frozenset[str]
    probes: bool = False

    def state(self, release: Release) -> bool | None:
        return None


@dataclass(frozen=True, eq=False)
class Fallback:
    """The handler of such a `try`: it runs where the body's imports fail.

    Attributes:
        wanted: what the body imports from sglang.
        pure: the body does nothing else that can fail in that way.
    """

    wanted: tuple[str, ...]
    pure: bool
    probes: bool = True

    def state(self, release: Release) -> bool | None:
        return fails(self.wanted, release, pure=self.pure)


def fails(wanted: tuple[str, ...], release: Release, *, pure: bool) -> bool | None:
    """True where an import of one of these names fails, False where all succeed, None where nobody can tell."""
    found = [release.find(name) for name in wanted]
    if any(symbol is None for symbol in found):
        return True
    sure = all(symbol is not None and symbol.presence is Presence.SURE and symbol.kind is not Kind.UNKNOWN for symbol in found)
    return False if wanted and pure and sure else None


def catches(handlers: list[ast.ExceptHandler]) -> tuple[bool, bool, bool]:
    """Return whether the handlers take an ImportError, an AttributeError, and a TypeError, without raising again."""
    going_on = [handler for handler in handlers if not (handler.body and isinstance(handler.body[-1], ast.Raise))]
    names = {name for handler in going_on for name in _handler_names(handler)}
    return bool(names & _CATCHES_IMPORTS), bool(names & _CATCHES_ATTRIBUTES), bool(names & _CATCHES_TYPES)


def names_absence(handlers: list[ast.ExceptHandler]) -> bool:
    """Return whether a handler names ImportError or AttributeError."""
    return any(not _handler_names(handler).isdisjoint({"ImportError", "ModuleNotFoundError", "AttributeError"}) for handler in handlers)


def _handler_names(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"BaseException"}
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {(dotted_name(part) or "Exception").rpartition(".")[2] for part in parts}
