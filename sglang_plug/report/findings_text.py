"""Findings as words for people: what was examined, then findings grouped by level, most severe first, each with its cause and a hint."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.checks.model import Finding, Level
from sglang_plug.checks.table import rule
from sglang_plug.report import text
from sglang_plug.report.escape import visible
from sglang_plug.report.text import Span
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sglang_plug.checks.doctor import Report

STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.INFO: "cyan"}
TITLES = {Level.ERROR: "Errors", Level.WARNING: "Warnings", Level.INFO: "Notes"}
MARKS = {"ok": "ok", "inactive": "inactive", "failed": "FAILED", "skipped": "skipped", "untried": "untried"}


class Line(NamedTuple):
    """One line of the answer and how it is dressed where the terminal can."""

    text: str
    style: str = ""


def lines(report: Report, *, verbose: bool = False) -> Iterator[Line]:
    """Yield the whole report, line by line; strangers' text is escaped."""
    yield from _host(report)
    yield from _entry_points(report)
    for level in Level:
        rows = [finding for finding in report.findings if finding.level is level]
        if rows:
            yield Line("")
            yield Line(f"{TITLES[level]} ({len(rows)})", "bold")
            for finding in rows:
                yield from _finding(finding, verbose=verbose)
    yield Line("")
    yield _closing(report)


def plain(rows: Iterable[Line]) -> str:
    """Return lines as text without colours."""
    return "".join(f"{row.text}\n" for row in rows)


def write(rows: Iterable[Line]) -> None:
    """Print lines to stdout, dressed where it is a terminal."""
    text.write([Span(*row)] for row in rows)


def _host(report: Report) -> Iterator[Line]:
    host = report.host
    if "sglang" not in host:
        return
    sglang = host["sglang"]
    if sglang["engine"] == "sglang":
        found = f"SGLang {sglang['version']} at {sglang['origin']}"
    else:
        found = f"no SGLang; plugins tried on the stand-in, by the rules of {host['release']}"
    yield Line(visible(f"{host['python']} (Python {host['version']}, prefix {host['prefix']}); {found}"), "dim")
    isolation = host["isolation"] or {}
    if isolation.get("why"):
        yield Line(visible(f"each plugin tried in an interpreter of its own: {isolation['why']}"), "dim")
    for runtime, decision in host["platforms"].items():
        if decision["outcome"] == "error":
            yield Line(visible(f"{runtime}: no platform: {decision['error']}"), "red")
        elif decision["error"]:
            yield Line(visible(f"{runtime}: {platform_of(decision)}, which does not start: {decision['error']}"), "red")
        else:
            yield Line(visible(f"{runtime}: {platform_of(decision)}"))


def platform_of(decision: Mapping[str, Any]) -> str:
    """Return which platform was decided, in words."""
    if decision["outcome"] == "plugin":
        return f"platform '{decision['name']}' of {decision['dist']}"
    return f"built-in platform '{decision['name']}'"


def _entry_points(report: Report) -> Iterator[Line]:
    rows = report.entry_points
    if not rows:
        if report.host.get("sglang"):
            yield Line("no plugin is installed there")
        return
    yield Line("")
    yield Line(f"Entry points ({len(rows)})", "bold")
    for row in rows:
        what = f"  {MARKS[row['outcome']]:<9}{row['kind']} {row['name']} = {row['value']}  [{row['dist']} {row['version']}]"
        what += "".join(f"  {word}" for word in what_became(row))
        yield Line(visible(what), "red" if row["outcome"] == "failed" else "dim" if row["outcome"] == "skipped" else "")


def what_became(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is told of an entry point behind its name: its hooks, and why it was left alone."""
    if row.get("hooks"):
        yield f"hooks: {row['hooks']['registered']} registered, {row['hooks']['applied']} applied"
    if row["outcome"] == "skipped":
        yield f"({row['why']})"


def _finding(finding: Finding, *, verbose: bool) -> Iterator[Line]:
    yield Line(f"  {finding.level.value} {finding.code} {rule(finding.code).slug}", STYLES[finding.level])
    yield Line(f"    {visible(finding.message)}")
    if finding.cause:
        for index, part in enumerate(finding.cause.splitlines() or [""]):
            yield Line(f"    {'cause: ' if index == 0 else '       '}{visible(part)}")
    if finding.location and finding.location.path not in (finding.cause or ""):
        spot = f"{finding.location.path}:{finding.location.line}" if finding.location.line else finding.location.path
        yield Line(f"    at: {visible(spot)}", "dim")
    if finding.hint:
        yield Line(f"    hint: {visible(finding.hint)}", "green")
    if verbose and finding.data.get("traceback"):
        yield Line(textwrap.indent(visible(finding.data["traceback"].rstrip(), keep_newlines=True), "    | "), "dim")


def _closing(report: Report) -> Line:
    counts = report.summary
    told = [counted(counts[level.value], word) for level, word in WORDS if counts[level.value]]
    seen = f"{counts['examined']} of {counted(counts['entry_points'], 'entry point')} examined"
    if not told:
        return Line(f"nothing to report; {seen}", "green")
    style = "bold red" if counts["error"] else "yellow" if counts["warning"] else "green"
    return Line(f"{', '.join(told)}; {seen}. `sglang-plug explain CODE` says more about a finding.", style)


WORDS = ((Level.ERROR, "error"), (Level.WARNING, "warning"), (Level.INFO, "note"))
