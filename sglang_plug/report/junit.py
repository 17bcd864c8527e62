"""Findings as JUnit XML: one test case for each entry point, a failure for each error and warning about it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from sglang_plug.checks.model import Finding, Level
from sglang_plug.report.escape import visible

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report


def render(report: Report) -> str:
    """Return the document as text; findings that are about no entry point make a case of their own."""
    suite = ET.Element("testsuite", name=f"sglang-plug {report.host.get('command', 'doctor')}")
    left = list(report.findings)
    cases = 0
    for row in report.entry_points:
        case = ET.SubElement(suite, "testcase", classname=_text(row["group"]), name=_text(f"{row['name']} ({row['dist']})"))
        case.set("time", f"{sum((row.get('seconds') or {}).values()):.3f}")
        cases += 1
        mine = [
            f
            for f in left
            if f.subject.get("name") == row["name"]
            and f.subject.get("group") == row["group"]
            and f.subject.get("dist") == (row["dist"] or row["where"])
        ]
        left = [finding for finding in left if finding not in mine]
        if row["outcome"] == "skipped":
            ET.SubElement(case, "skipped", message=_text(row["why"]))
        _fill(case, mine)
    for finding in left:
        case = ET.SubElement(suite, "testcase", classname=finding.code, name=_text(finding.subject.get("name", finding.code)))
        cases += 1
        _fill(case, [finding])
    failed = sum(any(child.tag == "failure" for child in case) for case in suite)
    suite.set("tests", str(cases))
    suite.set("failures", str(failed))
    suite.set("errors", "0")
    suite.set("skipped", str(sum(row["outcome"] == "skipped" for row in report.entry_points)))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _fill(case: ET.Element, findings: list[Finding]) -> None:
    """Put findings into a case: errors and warnings fail it, notes go to its output."""
    notes = []
    for finding in findings:
        words = "\n".join(
            part
            for part in (finding.message, finding.cause and f"cause: {finding.cause}", finding.hint and f"hint: {finding.hint}")
            if part
        )
        if finding.level is Level.INFO:
            notes.append(f"{finding.code}: {words}")
        else:
            failure = ET.SubElement(case, "failure", type=f"{finding.code} {finding.level.value}", message=_text(finding.message))
            failure.text = _text(words)
    if notes:
        ET.SubElement(case, "system-out").text = _text("\n".join(notes))


def _text(text: object) -> str:
    """Return text that XML 1.0 can hold."""
    shown = visible(str(text), keep_newlines=True)
    return "".join(char if ord(char) < 0xFFFE else "\ufffd" for char in shown)
