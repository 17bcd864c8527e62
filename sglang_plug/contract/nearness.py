"""Names near a name that does not exist, and the names inside one that does. Works on a release's tables."""

from __future__ import annotations

import difflib
import re
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
    beside: list[str] = []
    owner = lookup.find(parent) if parent else None
    if owner is not None and owner.kind in {Kind.MODULE, Kind.CLASS}:
        beside = [f"{parent}.{name}" for name in difflib.get_close_matches(leaf, child_names(lookup, parent), n=limit, cutoff=0.75)]
    moved = _same_leaf(lookup, dotted)
    modules = [] if beside or moved else difflib.get_close_matches(dotted, lookup.names, n=2, cutoff=0.85)
    return tuple(dict.fromkeys([*beside[:1], *moved, *beside[1:], *modules]))[:limit]


def _same_leaf(lookup: Lookup, dotted: str) -> list[str]:
    """Where the name, or its last two parts, is defined now."""
    parts = dotted.split(".")
    if parts[-1].startswith("__") or len(parts) < 3:
        return []
    tails = [".".join(parts[-2:]), parts[-1]] if parts[-2][:1].isupper() or parts[-2][:1] == "_" else [parts[-1]]
    for tail in tails:
        wanted = re.compile(rf"^[0-9a-f]*\t{re.escape(tail)}\t[cfv]", re.MULTILINE)
        found = [f"{module}.{tail}" for module, text in lookup.store.texts() if wanted.search(text)]
        found = [name for name in found if name != dotted and lookup.find(name) is not None]
        modules = [name for name in lookup.names if name.rpartition(".")[2] == tail and name != dotted]
        if found or modules:
            ranked = sorted([*found, *modules], key=lambda name: (-_common(name, dotted), len(name)))
            return ranked[:3]
    return []


def _common(one: str, other: str) -> int:
    return len(set(one.split(".")) & set(other.split(".")))
