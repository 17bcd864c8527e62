"""Rules over monkey patches: a name set on SGLang that SGLang does not have is read by nobody, and nothing says so."""

from __future__ import annotations

import ast
import difflib
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.source.found import found
from sglang_plug.checks.source.reading import Later
from sglang_plug.contract import catalogue
from sglang_plug.contract.model import Kind
from sglang_plug.contract.nearness import child_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.facts import FileFacts, Store, Use
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.contract.catalogue import Release

_ALIKE = 0.88  # of difflib's measure: one letter more or less, a plural, not another word
_AKIN = 0.75  # enough for a public name that the plugin itself never reads


def places_of(plugin: Plugin, store: Store, release: Release) -> list[tuple[str, str | None]]:
    """Return what a store writes to and which name it sets there, once a turn of its loops; None for a name that cannot be read."""
    places: list[tuple[str, str | None]] = []
    for turn in plugin.environments(store.scope, release) if not isinstance(store.name, str) else [{}]:
        owner = store.owner if isinstance(store.owner, str) else _owner(store.owner, turn)
        values = [store.name] if isinstance(store.name, str) else plugin.values(store.name, store.scope, release, turn)
        for value in values or [None]:
            place = (owner, value if isinstance(value, str) else None)
            if owner is not None and place not in places:
                places.append((owner, place[1]))
    return places


def _owner(node: ast.expr, turn: dict[str, Any]) -> str | None:
    later = turn.get(node.id) if isinstance(node, ast.Name) else None
    dotted = later.scope.dotted(later.node) if isinstance(later, Later) else None
    return dotted if dotted is not None and dotted.partition(".")[0] == "sglang" else None


class Written:
    """What a plugin sets on SGLang, anywhere: its own names are no typos, and reading them is no error."""

    def __init__(self, plugin: Plugin, release: Release) -> None:
        self._stores: dict[str, list[Store]] = {}
        self._open: set[str] = set()
        for facts in plugin.facts:
            for store in facts.stores:
                for owner, name in places_of(plugin, store, release):
                    if name is None:
                        self._open.add(owner)
                    else:
                        self._stores.setdefault(f"{owner}.{name}", []).append(store)

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
            for owner, name in places_of(plugin, store, release):
                if name and not name.startswith("__") and not _reads_first(facts, store, f"{owner}.{name}"):
                    yield from _judge(plugin, (facts, store), owner, name, release)


def _reads_first(facts: FileFacts, store: Store, dotted: str) -> bool:
    """True where the original is read before it is set: that read fails, and is the finding."""
    return any(use.dotted == dotted and use.scope is store.scope and use.node.lineno <= _line(store.node) for use in facts.uses)


def _judge(plugin: Plugin, at: tuple[FileFacts, Store], on: str, name: str, release: Release) -> Iterator[Finding]:
    facts, store = at
    owner = release.find(on)
    if owner is None or owner.kind not in {Kind.MODULE, Kind.CLASS} or owner.varies:
        return
    dotted = f"{owner.origin}.{name}"
    if release.find(dotted) is not None or (owner.kind is Kind.MODULE and release.lookup.module(owner.origin) is None):
        return
    elsewhere = _releases_with(on, name)
    if elsewhere:
        span = elsewhere[0] if len(elsewhere) == 1 else f"{elsewhere[0]} to {elsewhere[-1]}"
        cause = f"SGLang {span} has it"
    else:
        names = [child for child in child_names(release.lookup, owner.origin) if not child.startswith("__")]
        cutoff = _AKIN if not name.startswith("_") and _is_never_read(plugin, name) else _ALIKE
        alike = difflib.get_close_matches(name, names, n=1, cutoff=cutoff)
        if not alike:
            return  # a name of the plugin's own
        cause = f"it looks like {alike[0]}"
    what = "class" if owner.kind is Kind.CLASS else "module"
    message = f"a patch sets {name} on the {what} {owner.origin}, which has no such name: nothing calls it, and nothing says so"
    yield found("SP711", facts.file, store.node, dotted, message, cause=cause, near=dotted)


def _is_never_read(plugin: Plugin, name: str) -> bool:
    """True where the plugin mentions an attribute's name nowhere but where it sets it."""
    mention = re.compile(rf"""\.{re.escape(name)}\b|["']{re.escape(name)}["']""".encode())
    sets = sum(store.name == name or not isinstance(store.name, str) for facts in plugin.facts for store in facts.stores)
    return sum(len(mention.findall(file.text)) for file in plugin.project.files) <= sets


@lru_cache(maxsize=1024)
def _releases_with(owner: str, name: str) -> tuple[str, ...]:
    return tuple(version for version in catalogue.releases() if catalogue.load(version).find(f"{owner}.{name}") is not None)
