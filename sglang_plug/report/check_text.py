"""What `check` found, as words: a matrix of findings over releases, then each finding with its cause and a hint."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Finding, Level
from sglang_plug.report.escape import visible
from sglang_plug.report.findings_text import STYLES, WORDS, Line
from sglang_plug.report.terminal import padded
from sglang_plug.report.terminal import width as columns_of
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.source.run import CheckReport

_MARKS = {Level.ERROR: "E", Level.WARNING: "w", Level.INFO: "i"}
_ROWS = 40  # a longer matrix is no overview
_WIDEST, _NARROWEST = 44, 24  # cells for a name


def lines(report: CheckReport) -> Iterator[Line]:
    """Yield the whole report, line by line; strangers' text is escaped."""
    host = report.host
    name = " ".join(filter(None, (host["project"], host["version"]))) or host["path"]
    hooks = f", {counted(report.hooks['hooks'], 'hook')}" if report.hooks.get("hooks") else ""
    against = f"{len(report.releases)} releases" if len(report.releases) != 1 else f"SGLang {report.releases[0]}"
    yield Line(visible(f"{name}: {counted(host['files'], 'file')}{hooks}, checked against {against}"), "bold")
    if len(report.releases) > 1 and report.findings:
        yield Line("")
        yield from _matrix(report)
    path = None
    for finding in sorted(report.findings, key=_by_place):
        place = finding.location.path if finding.location else ""
        if place != path:
            yield Line("")
            yield Line(visible(place), "bold")
            path = place
        yield from _finding(finding, report)
    yield Line("")
    yield _closing(report)


def _by_place(finding: Finding) -> tuple[str, int, str]:
    place = finding.location
    return (place.path, place.line or 0, finding.code) if place else ("", 0, finding.code)


def _matrix(report: CheckReport) -> Iterator[Line]:
    """One column a release, one row a code and name, and the verdict below; what depends on no release holds on all."""
    common, columns = short_versions(report.releases)
    rows: dict[tuple[str, str], dict[str, Level]] = {}  # one for a code and a name, wherever in the source it is
    for finding in report.findings:
        row = rows.setdefault((finding.code, finding.subject["name"]), {})
        for release in finding.data.get("releases", report.releases):
            row[release] = min(row.get(release, finding.level), finding.level, key=lambda level: level.rank)
    widths = [max(len(column), 1) for column in columns]
    room = max(_NARROWEST, shutil.get_terminal_size().columns - 2 - sum(widths) - len(widths))
    labels = [f"{code} {_tail(visible(name), room - len(code) - 1)}" for code, name in list(rows)[:_ROWS]]
    width = max([len("verdict"), *(columns_of(label) for label in labels)])
    yield Line(f"{common:>{width}}  " + " ".join(columns), "dim")
    for label, row in zip(labels, rows.values(), strict=False):
        cells = [_MARKS[row[release]] if release in row else "·" for release in report.releases]
        yield Line(padded(label, width) + "  " + _cells(cells, widths), STYLES[min(row.values(), key=lambda level: level.rank)])
    if len(rows) > _ROWS:
        yield Line(f"… and {len(rows) - _ROWS} more", "dim")
    verdicts = [_MARKS[level] if (level := report.verdict(release)) else "ok" for release in report.releases]
    yield Line(f"{'verdict':<{width}}  " + _cells(verdicts, widths), "bold")


def _cells(cells: list[str], widths: list[int]) -> str:
    return " ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _tail(name: str, room: int) -> str:
    """The end of a dotted name: as much as a matrix has room for."""
    room = min(room, _WIDEST)
    return name if len(name) <= room else "…" + name[1 - room :]


def short_versions(releases: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return what all releases begin with, and what is left of each: `0.5.` and `21`, `22`, `22p1`."""
    parts = [release.split(".") for release in releases]
    common = 0
    while len(parts) > 1 and all(len(part) > common + 1 for part in parts) and len({part[common] for part in parts}) == 1:
        common += 1
    return ".".join([*parts[0][:common], ""]) if common else "", [".".join(part[common:]).replace(".post", "p") for part in parts]


def _finding(finding: Finding, report: CheckReport) -> Iterator[Line]:
    line = f":{finding.location.line}" if finding.location and finding.location.line else ""
    yield Line(f"  {line:<6} {finding.level.value} {finding.code} {visible(finding.message)}", STYLES[finding.level])
    if finding.cause:
        yield Line(f"         cause: {visible(finding.cause)}")
    if len(report.releases) > 1 and (names := finding.data.get("releases")) and len(names) < len(report.releases):
        yield Line(f"         on: {spans(names, report.releases)}", "dim")
    if finding.hint:
        yield Line(f"         hint: {visible(finding.hint)}", "green")


def spans(names: list[str], releases: tuple[str, ...]) -> str:
    """Return releases as ranges: `0.5.16 to 0.5.23`."""
    found: list[list[str]] = []
    for release in releases:
        if release not in names:
            continue
        before = releases.index(release) - 1
        if found and before >= 0 and found[-1][-1] == releases[before]:
            found[-1].append(release)
        else:
            found.append([release])
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]} to {span[-1]}" for span in found)


def _closing(report: CheckReport) -> Line:
    counts = report.summary
    told = [counted(counts[level.value], word) for level, word in WORDS if counts[level.value]]
    known = f"; {report.host['known']} known ones left out" if report.host.get("known") else ""
    if not told:
        return Line(f"nothing to report{known}", "green")
    style = "bold red" if counts["error"] else "yellow" if counts["warning"] else "green"
    return Line(f"{', '.join(told)}{known}. `sglang-plug explain CODE` says more about a finding.", style)
