"""`sglang-plug __values KIND PREFIX`: candidates for shell completion. Prints nothing else, imports no plugin, and fails in silence."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def offer(argv: Sequence[str]) -> int:
    """Print the candidates of `argv` = [KIND, PREFIX], one a line, and return 0 whatever happens: a broken shell line helps nobody."""
    kind, prefix = (*argv, "", "")[:2]
    with contextlib.suppress(Exception):  # completion answers or is silent
        found = KINDS.get(kind, _nothing)(prefix)
        sys.stdout.write("".join(f"{word}\n" for word in sorted(set(found)) if word.startswith(prefix) and word.isprintable()))
    return 0


def _nothing(_prefix: str) -> Iterable[str]:
    return ()


def _names(ending: str, *keys: str) -> Callable[[str], Iterable[str]]:
    def names(_prefix: str) -> Iterable[str]:
        from sglang_plug.probe.inside import metadata

        rows = metadata.environment({"detail": False})["entry_points"]
        return [row[key] for row in rows for key in keys if row["group"].startswith("sglang.") and row["group"].endswith(ending)]

    return names


def _listed(offered: Callable[[str], Iterable[str]]) -> Callable[[str], Iterable[str]]:
    """A comma-separated list: the last word is completed, the others stay."""

    def listed(prefix: str) -> Iterable[str]:
        done, comma, word = prefix.rpartition(",")
        return [done + comma + name for name in offered(word) if name not in done.split(",")]

    return listed


def _codes(word: str) -> Iterable[str]:
    """Codes; names for who types small letters."""
    from sglang_plug.checks.table import RULES

    return [rule.slug if word[:1].islower() else rule.code for rule in RULES]


def _releases(_prefix: str) -> Iterable[str]:
    from sglang_plug.contract.catalogue import releases

    return releases()


def _targets(prefix: str) -> Iterable[str]:
    """One level below what is typed; a name with more below it ends in a dot, a class is offered both ways."""
    from sglang_plug.contract.catalogue import load, newest
    from sglang_plug.contract.model import Kind
    from sglang_plug.contract.nearness import child_names

    above, _, leaf = prefix.rpartition(".")
    if not above:
        yield "sglang."
        return
    release = load(newest())
    for name in child_names(release.lookup, above):
        if not name.startswith(leaf) or (name.startswith("_") and not leaf):
            continue
        symbol = release.find(f"{above}.{name}")
        if symbol is None or symbol.kind is not Kind.MODULE:
            yield f"{above}.{name}"
        if symbol is not None and symbol.kind in {Kind.MODULE, Kind.CLASS}:
            yield f"{above}.{name}."


def _methods(_prefix: str) -> Iterable[str]:
    from sglang_plug.contract.catalogue import load, newest

    release = load(newest())
    return [name for runtime in ("srt", "diffusion") if (contract := release.platform_contract(runtime)) for name in contract.members]


def _variables(_prefix: str) -> Iterable[str]:
    from sglang_plug.core.environ import VARIABLES

    return [f"{name}=" for name in VARIABLES]


KINDS: dict[str, Callable[[str], Iterable[str]]] = {
    "codes": _listed(_codes),
    "hooks": _listed(_names(".plugins", "name")),
    "methods": _methods,
    "names": _names("", "name", "dist"),
    "platforms": _names(".platforms", "name"),
    "releases": _releases,
    "targets": _targets,
    "variables": _variables,
}
