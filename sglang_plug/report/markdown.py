"""Findings as Markdown, for a pull request's comment or an issue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level
from sglang_plug.checks.table import rule
from sglang_plug.report.escape import visible
from sglang_plug.report.findings_text import WORDS
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

_TITLES = {Level.ERROR: "Errors", Level.WARNING: "Warnings", Level.INFO: "Notes"}
_SPECIAL = "\\`*_{}[]<>()#+-!|~&"


def render(report: Report) -> str:
    """Return the document as text; strangers' text can break no structure."""
    host, counts = report.host, report.summary
    rows = [
        f"# sglang-plug {host.get('command', 'doctor')}: {', '.join(counted(counts[level.value], word) for level, word in WORDS)}",
        "",
    ]
    if "sglang" in host:
        sglang = host["sglang"]
        engine = f"SGLang {sglang['version']}" if sglang["engine"] == "sglang" else f"no SGLang (stand-in, rules of {host['release']})"
        rows += [f"{_plain(host['python'])}, Python {_plain(host['version'])}, {_plain(engine)}", ""]
    if report.entry_points:
        rows += ["| outcome | kind | entry point | distribution |", "|---|---|---|---|"]
        rows += [
            f"| {row['outcome']} | {row['kind']} | {_plain(row['name'])} = {_plain(row['value'])} | {_plain(row['dist'])} "
            f"{_plain(row['version'])} |"
            for row in report.entry_points
        ]
        rows.append("")
    for level in Level:
        found = [finding for finding in report.findings if finding.level is level]
        if found:
            rows += [f"## {_TITLES[level]}", ""]
        for finding in found:
            rows.append(f"- **{finding.code} {rule(finding.code).slug}**: {_plain(finding.message)}")
            rows += [f"  - cause: {_plain(finding.cause)}"] if finding.cause else []
            rows += [f"  - hint: {_plain(finding.hint)}"] if finding.hint else []
        if found:
            rows.append("")
    return "\n".join(rows).rstrip() + "\n"


def _plain(text: object) -> str:
    return "".join("\\" + char if char in _SPECIAL else char for char in visible(str(text)))
