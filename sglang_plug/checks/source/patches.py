"""Rules over monkey patches: a name set on SGLang that SGLang does not have is read by nobody, and nothing says so."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import TYPE_CHECKING

from sglang_plug.checks.source.found import found
from sglang_plug.contract import catalogue
from sglang_plug.contract.model import Kind
from sglang_plug.contract.nearness import child_names

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.facts import FileFacts, Store, Use
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.contract.catalogue import Release

_ALIKE = 0.88  # of difflib's measure: one letter more or less, a plural, not another word


def names_of(plugin: Plugin, store: Store, release: Release) -> list[str] | None:
    """Return the names that a store sets; None where they cannot all be read."""
    if isinstance(store.name, str):
        return [store.name]
    names: list[str] = []
    for turn in plugin.environments(store.scope, release):
        values = plugin.values(store.name, store.scope, release, turn)
        if not values or not all(isinstance(value, str) for value in values):
            return None
        names += [value for value in values if value not in names]
    return names


class Written:
    """What a plugin sets on SGLang, anywhere: its own names are no typos, and reading them is no error."""

    def __init__(self, plugin: Plugin, release: Release) -> None:
        self._stores: dict[str, list[Store]] = {}
        self._open: set[str] = set()
        for facts in plugin.facts:
            for store in facts.stores:
                names = names_of(plugin, store, release)
                if names is None:
                    self._open.add(store.owner)
                for name in names or ():
                    self._stores.setdefault(f"{store.owner}.{name}", []).append(store)

    def before(self, dotted: str, use: Use) -> bool:
        """True where a store may have run before this read: any other than a later one of the same body."""
        if dotted.rpartition(".")[0] in self._open:
            return True
        return any(store.scope is not use.scope or _line(store.node) < use.node.lineno for store in self._stores.get(dotted, ()))


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def lost_patches(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP711: a name that other releases have, or that is nearly one of this release, is set where there is none."""
    for facts in plugin.facts:
        for store in facts.stores:
            if plugin.caught(store.guards, store.scope, "catches_attributes") or not plugin.runs(store.guards, store.scope, release):
                continue
            for name in names_of(plugin, store, release) or ():
                if not name.startswith("__") and not _reads_first(facts, store, name):
                    yield from _judge(facts, store, name, release)


def _reads_first(facts: FileFacts, store: Store, name: str) -> bool:
    """True where the original is read before it is set: that read fails, and is the finding."""
    dotted = f"{store.owner}.{name}"
    return any(use.dotted == dotted and use.scope is store.scope and use.node.lineno <= _line(store.node) for use in facts.uses)


def _judge(facts: FileFacts, store: Store, name: str, release: Release) -> Iterator[Finding]:
    owner = release.find(store.owner)
    if owner is None or owner.kind not in {Kind.MODULE, Kind.CLASS} or owner.varies:
        return
    dotted = f"{owner.origin}.{name}"
    if release.find(dotted) is not None or (owner.kind is Kind.MODULE and release.lookup.module(owner.origin) is None):
        return
    elsewhere = _releases_with(store.owner, name)
    if elsewhere:
        span = elsewhere[0] if len(elsewhere) == 1 else f"{elsewhere[0]} to {elsewhere[-1]}"
        cause = f"SGLang {span} has it"
    else:
        names = [child for child in child_names(release.lookup, owner.origin) if not child.startswith("__")]
        alike = difflib.get_close_matches(name, names, n=1, cutoff=_ALIKE)
        if not alike:
            return  # a name of the plugin's own
        cause = f"it looks like {alike[0]}"
    what = "class" if owner.kind is Kind.CLASS else "module"
    message = f"a patch sets {name} on the {what} {owner.origin}, which has no such name: nothing calls it, and nothing says so"
    yield found("SP711", facts.file, store.node, dotted, message, cause=cause, near=dotted)


@lru_cache(maxsize=1024)
def _releases_with(owner: str, name: str) -> tuple[str, ...]:
    return tuple(version for version in catalogue.releases() if catalogue.load(version).find(f"{owner}.{name}") is not None)
