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
    open_ended = any(p["kind"] in {"var-positional", "var-keyword"} for p in expected)
    room = [p for p in actual if p["kind"] in _PLACED]
    sent = [p for p in expected if p["kind"] in _PLACED]
    surplus = [p for p in (*room[len(sent) :], *(p for p in actual if p["kind"] == "keyword-only")) if p["required"]]
    surplus = [p for p in surplus if p["kind"] == "positional-only" or not _has(expected, p["name"])]
    if surplus and not open_ended:
        return Gap(f"needs {_listed(surplus)}, which nobody passes", True)
    lost = [] if takes_all else sent[len(room) :]
    nowhere = [p for p in lost if not (p["kind"] == "positional" and (takes_names or _has(actual, p["name"])))]
    if nowhere:
        return Gap(f"does not take {_listed(nowhere)}", any(p["required"] for p in nowhere) or not room)
    if lost:
        return Gap(f"takes {_listed(lost)} by name only", False)
    unnamed = [] if takes_names else [p for p in expected if p["kind"] == "keyword-only" and not _has(actual, p["name"])]
    if unnamed:
        return Gap(f"does not take the keyword {_listed(unnamed)}", any(p["required"] for p in unnamed))
    needy = [p for p, own in zip(sent, room, strict=False) if own["required"] and not p["required"]]
    rest = (*room[len(sent) :], *(p for p in actual if p["kind"] == "keyword-only"))
    needy += [p for p in rest if p["required"] and _is_optional(expected, p["name"])]
    if needy:
        return Gap(f"needs {_listed(needy)}, which callers may leave out", False)
    renamed = [p for p in sent if p["kind"] == "positional" and not _has(actual, p["name"])]
    if renamed and not takes_names and not takes_all:
        return Gap(f"does not take {_listed(renamed)} by name", False)
    return None


def _is_optional(parameters: Parameters, name: str) -> bool:
    return any(p["name"] == name and not p["required"] for p in parameters)


def _has(parameters: Parameters, name: str) -> bool:
    return any(p["name"] == name and p["kind"] in {"positional", "keyword-only"} for p in parameters)


def _listed(parameters: Parameters) -> str:
    return ", ".join(f"'{p['name']}'" for p in parameters)
