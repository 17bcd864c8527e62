"""What changed between two releases: for a platform's author, and for the author of hooks. Values only; words are the report's work."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING

from sglang_plug.contract.model import Kind, Presence
from sglang_plug.contract.renames import change_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import PlatformContract, PlatformMember, Symbol

_HOOKABLE = frozenset({Kind.FUNCTION, Kind.METHOD, Kind.CLASSMETHOD, Kind.STATICMETHOD, Kind.PROPERTY, Kind.CLASS})


@dataclass(frozen=True)
class Difference:
    """One change.

    Attributes:
        what: `added`, `removed`, `renamed`, `signature`, `default`, `kind`, `called` (the core began to call it) or `uncalled`.
        name: the member or the dotted name.
        old: what it was, in short.
        new: what it is.
        todo: what the author must do; empty where nothing.
    """

    what: str
    name: str
    old: str = ""
    new: str = ""
    todo: str = ""


def compare_platforms(old: Release, new: Release, runtime: str) -> tuple[Difference, ...]:
    """Return the changes of one runtime's platform contract, removed members first."""
    before, after = old.platform_contract(runtime), new.platform_contract(runtime)
    if before is None or after is None:
        return (
            ()
            if before is after
            else (Difference("added" if after else "removed", after.base if after else before.base if before else ""),)
        )
    removed = [name for name in before.members if name not in after.members]
    added = [name for name in after.members if name not in before.members]
    found = [_removed(before, after, name, added) for name in removed]
    renamed = {change.new for change in found if change.what == "renamed"}
    found += [_added(after.members[name]) for name in added if name not in renamed]
    for name in before.members:
        if name in after.members:
            found += _changed(before.members[name], after.members[name])
    found += [
        Difference("removed", f"capabilities.{name}", "field", "", "drop it")
        for name in before.capabilities
        if name not in after.capabilities
    ]
    found += [
        Difference("added", f"capabilities.{name}", "", "field, False by default")
        for name in after.capabilities
        if name not in before.capabilities
    ]
    found += _steps(before, after)
    return tuple(found)


def _removed(before: PlatformContract, after: PlatformContract, name: str, added: list[str]) -> Difference:
    member = before.members[name]
    change = change_of(before.runtime, name, after.release)
    new = change.new if change else next(iter(difflib.get_close_matches(name, added, n=1, cutoff=0.85)), None)
    todo = change.instead if change and change.instead else ""
    if change and change.served:
        todo = f"{todo}; the old name is still read, with a warning"
    elif not todo:
        todo = f"rename the override to {new}" if new else "delete the override: nothing reads it"
    return Difference("renamed" if new else "removed", name, _spell(member), new or "", todo)


def _added(member: PlatformMember) -> Difference:
    if member.kind == "method" and member.raises and member.called:
        todo = f"implement it: the core uses it in {member.uses} place{'s' * (member.uses != 1)} and the base {member.default}"
    else:
        todo = ""
    return Difference("added", member.name, "", f"{_spell(member)}: {member.default}" if member.default else _spell(member), todo)


def _changed(before: PlatformMember, after: PlatformMember) -> list[Difference]:
    found = []
    if before.signature != after.signature:
        found.append(
            Difference("signature", after.name, before.signature or "", after.signature or "", f"write it as {after.name}{after.signature}")
        )
    if before.default != after.default and "computes" not in {before.default, after.default}:
        found.append(Difference("default", after.name, before.default, after.default))
    if before.called != after.called:
        what = "called" if after.called else "uncalled"
        todo = f"implement it: the base {after.default}" if after.called and after.raises else ""
        found.append(Difference(what, after.name, f"{before.uses} uses", f"{after.uses} uses", todo))
    return found


def _steps(before: PlatformContract, after: PlatformContract) -> list[Difference]:
    old, new = [name for name, _ in before.chain if name], [name for name, _ in after.chain if name]
    return [] if old == new else [Difference("chain", "built-in fallbacks", ", ".join(old) or "none", ", ".join(new) or "none")]


def _spell(member: PlatformMember) -> str:
    return f"{member.name}{member.signature}" if member.signature else member.name


def compare_names(old: Release, new: Release, pattern: str) -> tuple[Difference, ...]:
    """Return the changes of the names that a pattern matches; a name without `*` stands for itself and what is in it."""
    names = dict.fromkeys([*matching_names(old, pattern), *matching_names(new, pattern)])
    found = []
    for name in names:
        before, after = old.find(name), new.find(name)
        if before is None or after is None:
            if before is None and after is not None:
                found.append(Difference("added", name, "", _label(after)))
            elif before is not None:
                near = new.near(name, limit=2)
                found.append(
                    Difference("removed", name, _label(before), "", f"look at {' or '.join(near)}" if near else "the hook has no target")
                )
        elif Presence.UNKNOWN not in {before.presence, after.presence}:
            if before.label != after.label:
                found.append(Difference("kind", name, before.label, after.label))
            if before.signature != after.signature:
                found.append(Difference("signature", name, before.signature or "", after.signature or ""))
    return tuple(found)


def _label(symbol: Symbol) -> str:
    return f"{symbol.label} {symbol.signature}" if symbol.signature else symbol.label


def matching_names(release: Release, pattern: str) -> Iterable[str]:
    """Yield the hookable names that a pattern matches; one not starting with `sglang` is looked for in every name's last two parts."""
    pattern = pattern.replace(":", ".")
    simple = not pattern.startswith("sglang.") and "*" not in pattern
    modules = release.modules
    if not simple and "*" not in pattern:
        modules = tuple(name for name in modules if name == pattern or pattern.startswith(f"{name}.") or name.startswith(f"{pattern}."))
    elif not simple:
        fixed = pattern.partition("*")[0]
        modules = tuple(name for name in modules if name.startswith(fixed) or fixed.startswith(name))
    fits = re.compile(translate(pattern)).match
    found = False
    for name, code in release.walk(modules=modules):
        if simple:
            hit = pattern.lower() in ".".join(name.split(".")[-2:]).lower()
        else:
            hit = fits(name) is not None or ("*" not in pattern and (name == pattern or name.startswith(f"{pattern}.")))
        if hit and (code in "cf" or _is_hookable(release, name)):
            found = True
            yield name
    if not found and not simple:
        yield from _not_defined_there(release, pattern, fits)


def _not_defined_there(release: Release, pattern: str, fits: Callable[[str], object]) -> Iterator[str]:
    """What a pattern matches in a class that inherits it, or in a module that imports it."""
    owner, _, last = pattern.rpartition(".")
    if "*" in owner:
        return
    names = (symbol.name for symbol in release.children(owner)) if "*" in last else (pattern,)
    yield from (name for name in names if fits(name) and _is_hookable(release, name))


def _is_hookable(release: Release, name: str) -> bool:
    symbol = release.find(name)
    return symbol is not None and symbol.kind in _HOOKABLE
