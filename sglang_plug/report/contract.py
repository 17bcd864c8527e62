"""What the catalogue answers, as words and as JSON: platform contracts, differences, targets, releases."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sglang_plug.report.escape import visible
from sglang_plug.report.findings_text import Line
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sglang_plug.contract.diff import Difference
    from sglang_plug.contract.model import PlatformContract, PlatformMember, Process
    from sglang_plug.contract.targets import Target

SCHEMA = 1
_STYLES = {"removed": "red", "renamed": "yellow", "signature": "yellow", "added": "green", "called": "yellow"}


def dumps(**content: Any) -> str:
    """Return one JSON document with its schema."""
    return json.dumps({"schema": SCHEMA, **content}, indent=2, ensure_ascii=True, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    return asdict(value)


def platform_lines(contract: PlatformContract, processes: Iterable[Process]) -> Iterator[Line]:
    """Yield what one runtime expects of a platform class, called members first."""
    yield Line(f"SGLang {contract.release}, {contract.runtime}: {contract.base}", "bold")
    if not contract.accepts_plugins:
        yield Line("  this release takes no platform from outside for this runtime", "yellow")
    chain = " -> ".join(name or "base" for name, _ in contract.chain)
    yield Line(f"  built-in fallbacks: {chain or 'none'}")
    if contract.capabilities:
        yield Line(f"  capabilities: {', '.join(contract.capabilities)} (False by default)")
    for title, called in (("used by the core", True), ("never used by the core", False)):
        members = sorted((m for m in contract.members.values() if m.called is called and not m.name.startswith("__")), key=lambda m: m.name)
        yield Line("")
        yield Line(f"  {title} ({len(members)})", "bold")
        width = max((len(member.name) for member in members), default=0)
        for member in members:
            yield _member_row(member, width)
    rows = list(processes)
    if rows:
        yield Line("")
        yield Line(f"  processes ({len(rows)})", "bold")
        for process in rows:
            yield Line(visible(f"    {process.plugins:<9} {process.role}" + (f": {process.note}" if process.note else "")))


def _member_row(member: PlatformMember, width: int) -> Line:
    uses = f"{member.uses}×" if member.uses else "internal" if member.internal else "-"
    status = f" [{member.documented}]" if member.documented else ""
    what = member.signature or "attribute"
    return Line(visible(f"    {member.name:<{width}}  {uses:>8}  {what}: {member.default}{status}"), "" if member.called else "dim")


def member_lines(contracts: Iterable[PlatformContract], name: str) -> Iterator[Line]:
    """Yield one member's history over releases: those that say the same together, with the newest one's places."""
    for (runtime, words), group in groupby(contracts, key=lambda contract: (contract.runtime, _member_words(contract, name))):
        same = list(group)
        span = same[0].release if len(same) == 1 else f"{same[0].release} to {same[-1].release}"
        member = same[-1].members.get(name)
        yield Line(visible(f"{span} {runtime}: {words}"), "" if member else "dim")
        for site in member.sites if member else ():
            yield Line(visible(f"    {site}"), "dim")


def _member_words(contract: PlatformContract, name: str) -> str:
    member = contract.members.get(name)
    if member is None:
        return "not there"
    uses = f"used in {counted(member.uses, 'place')}" if member.uses else "read by the base itself" if member.internal else "never used"
    status = f", documented as {member.documented}" if member.documented else ""
    return f"{member.owner}.{name}{member.signature or ''}: {member.default}; {uses}{status}"


def difference_lines(old: str, new: str, groups: dict[str, tuple[Difference, ...]]) -> Iterator[Line]:
    """Yield differences, group by group, and what an author must do."""
    for title, differences in groups.items():
        yield Line(f"{title}: {old} -> {new}", "bold")
        if not differences:
            yield Line("  nothing changed")
        for difference in differences:
            change = " -> ".join(filter(None, (difference.old, difference.new)))
            yield Line(
                visible(f"  {difference.what:<9} {difference.name}" + (f": {change}" if change else "")), _STYLES.get(difference.what, "")
            )
            if difference.todo:
                yield Line(visible(f"            {difference.todo}"), "green")
    todo = sum(bool(d.todo) for differences in groups.values() for d in differences)
    yield Line("")
    yield Line(f"{sum(map(len, groups.values()))} changes, {todo} with something to do")


def target_lines(release: str, targets: Iterable[Target], total: int | None = None) -> Iterator[Line]:
    """Yield what can be hooked: name, kind, signature, since when, in which processes; `total` is how many there are."""
    count = 0
    for target in targets:
        count += 1
        yield Line(visible(target.name), "bold")
        yield Line(visible(f"    {target.label} {target.signature or ''}".rstrip()))
        since = f"since {target.since}" + (
            ", with this signature since " + target.signature_since if target.signature_since != target.since else ""
        )
        where = f"; runs in: {', '.join(target.processes)}" if target.processes else ""
        yield Line(visible(f"    {since}{where}"), "dim")
        for note in target.notes:
            yield Line(visible(f"    {note}"), "yellow")
    yield Line("")
    if total is not None and total > count:
        yield Line(f"{count} of {total} targets in SGLang {release} shown; more with --limit {total}", "yellow")
        return
    yield Line(f"{counted(count, 'target')} in SGLang {release}")
