"""Whether one signature can stand in for another, as its callers call it. Pure; parameters are {"name", "kind", "required"}."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Parameters = Sequence[Mapping[str, Any]]

_PLACED = {"positional-only", "positional"}


class Gap(NamedTuple):
    """Why a callable does not fit. `certain` where every ordinary call fails, else where some calls do."""

    words: str
    certain: bool


def call_gap(expected: Parameters | None, actual: Parameters | None) -> Gap | None:
    """Return why a callable with parameters `actual` cannot be called like one with `expected`; None where it can, or nobody knows."""
    if expected is None or actual is None:
        return None
    takes_all = any(p["kind"] == "var-positional" for p in actual)
    takes_names = any(p["kind"] == "var-keyword" for p in actual)
    room = [p for p in actual if p["kind"] in _PLACED]
    sent = [p for p in expected if p["kind"] in _PLACED]
    surplus = [p["name"] for p in room[len(sent) :] if p["required"]]
    surplus += [p["name"] for p in actual if p["kind"] == "keyword-only" and p["required"] and not _has(expected, p["name"])]
    if surplus and not any(p["kind"] == "var-positional" for p in expected):
        return Gap(f"needs {_listed(surplus)}, which nobody passes", True)
    if len(sent) > len(room) and not takes_all:
        lost = [p for p in sent[len(room) :] if not (takes_names and p["kind"] != "positional-only") and not _keyword(actual, p["name"])]
        if lost:
            return Gap(f"does not take {_listed([p['name'] for p in lost])}", any(p["required"] for p in lost) or not room)
    if takes_names:
        return None
    unnamed = [p["name"] for p in expected if p["kind"] == "keyword-only" and not _has(actual, p["name"])]
    if unnamed:
        return Gap(f"does not take the keyword {_listed(unnamed)}", any(p["required"] for p in expected if p["name"] in unnamed))
    renamed = [p["name"] for p in sent if p["kind"] == "positional" and not _has(actual, p["name"])]
    if renamed and not takes_all:
        return Gap(f"does not take {_listed(renamed)} by name", False)
    return None


def _has(parameters: Parameters, name: str) -> bool:
    return any(p["name"] == name and p["kind"] in {"positional", "keyword-only"} for p in parameters)


def _keyword(parameters: Parameters, name: str) -> bool:
    return any(p["name"] == name and p["kind"] == "keyword-only" for p in parameters)


def _listed(items: Sequence[str]) -> str:
    return ", ".join(f"'{item}'" for item in items)
