"""Names near a name that does not exist, and the names inside one that does. Works on a release's tables."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from sglang_plug.contract.model import Kind

if TYPE_CHECKING:
    from sglang_plug.contract.names import Lookup


def child_names(lookup: Lookup, prefix: str) -> tuple[str, ...]:
    """Return the names directly inside a package, module or class, sorted."""
    found: set[str] = set()
    symbol = lookup.find(prefix)
    if symbol is None:
        return ()
    if symbol.kind is Kind.MODULE:
        start = f"{symbol.origin}."
        found |= {name[len(start) :].partition(".")[0] for name in (*lookup.names, *lookup.namespaces) if name.startswith(start)}
        module = lookup.module(symbol.origin)
        if module is not None:
            found |= {name for name in module.rows if "." not in name and name[0] not in "*@"}
            found |= {name for name in module.served or () if name != "?"}
    elif symbol.kind is Kind.CLASS:
        for cls in lookup.linearize(symbol.origin):
            owner = cls.rpartition(".")
            module = lookup.module(owner[0]) if cls.startswith("sglang.") else None
            start = f"{owner[2]}."
            found |= {
                name[len(start) :] for name in (module.rows if module else ()) if name.startswith(start) and "." not in name[len(start) :]
            }
    return tuple(sorted(found))


def near(lookup: Lookup, dotted: str, *, limit: int = 5) -> tuple[str, ...]:
    """Return existing names that may be meant by one that does not exist, best first."""
    dotted = dotted.replace(":", ".")
    parent, _, leaf = dotted.rpartition(".")
    owner = lookup.find(parent) if parent else None
    in_class = owner is not None and owner.kind is Kind.CLASS
    beside: list[str] = []
    if owner is not None and owner.kind in {Kind.MODULE, Kind.CLASS}:
        names = [name for name in child_names(lookup, parent) if not name.startswith("__")]
        beside = [f"{parent}.{name}" for name in difflib.get_close_matches(leaf, names, n=limit, cutoff=0.7)]
    moved = _same_leaf(lookup, dotted, in_class=in_class)
    modules = [] if beside or moved or owner is not None else _close_modules(lookup, dotted)
    found = [*moved, *beside, *modules]
    if not found and owner is None and parent.count("."):  # the slip may be further up: a class's name, not its method's
        found = [name for above in near(lookup, parent, limit=limit) if lookup.find(name := f"{above}.{leaf}") is not None]
    return tuple(dict.fromkeys(found))[:limit]


def _close_modules(lookup: Lookup, dotted: str) -> list[str]:
    """Modules spelled nearly so; those that are much longer, or begin and end otherwise, are not compared: there are thousands."""
    parent, _, leaf = dotted.rpartition(".")
    likely = [
        name
        for name in lookup.names
        if abs(len(name) - len(dotted)) * 4 < len(dotted) and (name.startswith(f"{parent}.") or leaf[:1] == name.rpartition(".")[2][:1])
    ]
    return difflib.get_close_matches(dotted, likely, n=2, cutoff=0.85)


def _same_leaf(lookup: Lookup, dotted: str, *, in_class: bool) -> list[str]:
    """Where the name, or its last two parts, is defined now."""
    parts = dotted.split(".")
    if parts[-1].startswith("__") or len(parts) < 3:
        return []
    qualified = ".".join(parts[-2:])
    is_member = in_class or parts[-2].lstrip("_")[:1].isupper()
    tails = [qualified] if is_member else [parts[-1]]
    if is_member and not in_class:
        tails += [parts[-2]]  # the class moved, and the member went away
    for tail in tails:
        found = _defining(lookup, tail, dotted)
        if not is_member:
            found += [name for name in lookup.names if name.rpartition(".")[2] == tail and name != dotted]
        if found:
            return sorted(found, key=lambda name: (-_common(name, dotted), len(name), name))[:3]
    return []


def _defining(lookup: Lookup, tail: str, dotted: str) -> list[str]:
    """Every module's own definition of `tail`: a function, class or value, not a re-export."""
    names = (f"{module}.{tail}" for module in lookup.store.defining(tail))
    return [name for name in names if name != dotted and lookup.find(name) is not None]


def _common(one: str, other: str) -> int:
    return len(set(one.split(".")) & set(other.split(".")))
