"""What can be hooked in a release: signature, kind, since when, in which processes, and what to look out for. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.contract import catalogue, peculiarities
from sglang_plug.contract.diff import matching_names
from sglang_plug.contract.homes import homes
from sglang_plug.contract.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol


@dataclass(frozen=True)
class Target:
    """One name that can be hooked.

    Attributes:
        name: its dotted name.
        label: its kind in words.
        signature: how it is called.
        since: the first known release of an unbroken row that has it.
        signature_since: the first of those with this signature.
        processes: the roles in which it runs, where that is known.
        notes: what a hook on it meets.
    """

    name: str
    label: str
    signature: str | None
    since: str
    signature_since: str
    processes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def targets(release: Release, pattern: str, *, limit: int | None = None) -> tuple[list[Target], int]:
    """Return the hookable names that a pattern matches, sorted, and how many there are.

    Args:
        release: where to look.
        pattern: a dotted name, with `*` for any part; a word without a dot is looked for in every name's last two parts.
        limit: describe no more than so many.
    """
    names = sorted(matching_names(release, pattern))
    symbols = (symbol for name in names[:limit] if (symbol := release.find(name)) is not None)
    return [_describe(release, symbol) for symbol in symbols], len(names)


def _describe(release: Release, symbol: Symbol) -> Target:
    since = signature_since = release.version
    known = catalogue.releases()
    before = known[: known.index(release.version)] if release.version in known else ()
    unbroken = True
    for version in reversed(before):
        older = catalogue.load(version).find(symbol.name)
        if older is None:
            break
        since = version
        unbroken = unbroken and older.signature == symbol.signature
        signature_since = version if unbroken else signature_since
    where, notes = homes(release, symbol), tuple(_notes(release, symbol))
    return Target(symbol.name, symbol.label, symbol.signature, since, signature_since, where, notes)


def _notes(release: Release, symbol: Symbol) -> Iterator[str]:
    for note in peculiarities.of(release, symbol.name):
        better = f"; hook {note.instead} instead" if note.instead else ""
        yield f"{'a hook on it never runs: ' if note.level == 'dead' else ''}SGLang {note.text}{better}"
    if symbol.kind is Kind.CLASS:
        yield "a class: REPLACE alone"
    if symbol.kind is Kind.PROPERTY:
        yield "a property: hooked, it becomes a method"
    if symbol.inherited and symbol.kind in {Kind.CLASSMETHOD, Kind.STATICMETHOD}:
        yield f"inherited: hooked here, it becomes a plain function; hook {symbol.origin} instead"
    if symbol.is_async:
        yield "async: use AROUND with an async hook"
    elif symbol.is_generator:
        yield "a generator: AFTER gets the generator, not its values"
    if symbol.decorators:
        yield f"decorated with {', '.join(symbol.decorators)}"
