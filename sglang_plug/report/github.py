"""Findings as GitHub workflow commands: one annotation each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks.model import Finding, Level
from sglang_plug.checks.table import rule

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "notice"}


def render(report: Report) -> str:
    """Return one line for each finding; empty where there is none."""
    return "".join(f"{_line(finding)}\n" for finding in report.findings)


def _line(finding: Finding) -> str:
    fields = []
    if finding.location:
        fields.append(f"file={_property(finding.location.path)}")
        fields += [f"line={finding.location.line}"] if finding.location.line else []
        fields += [f"col={finding.location.column}"] if finding.location.column else []
    fields.append(f"title={_property(f'{finding.code} {rule(finding.code).slug}')}")
    words = [finding.message, *([f"cause: {finding.cause}"] if finding.cause else []), *([f"hint: {finding.hint}"] if finding.hint else [])]
    return f"::{_COMMANDS[finding.level]} {','.join(fields)}::{_data(chr(10).join(words))}"


def _data(text: str) -> str:
    """Escape as the runner reads it; other control characters are shown."""
    from sglang_plug.report.escape import visible

    return visible(text.replace("%", "%25"), keep_newlines=True).replace("\r", "%0D").replace("\n", "%0A").replace("\t", " ")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
