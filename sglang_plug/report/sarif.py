"""Findings as SARIF 2.1.0, which code-scanning services read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sglang_plug import __version__
from sglang_plug.checks.model import Finding, Level
from sglang_plug.checks.table import RULES
from sglang_plug.report.escape import visible

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(report: Report) -> str:
    """Return the document as text."""
    used = {finding.code for finding in report.findings}
    rules = [
        {
            "id": rule.code,
            "name": rule.slug,
            "shortDescription": {"text": rule.summary},
            "defaultConfiguration": {"level": _LEVELS[rule.level]},
            "properties": {"family": rule.family},
        }
        for rule in RULES
        if rule.code in used
    ]
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    driver = {"name": "sglang-plug", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding, index[finding.code]) for finding in report.findings],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=True) + "\n"


def _result(finding: Finding, index: int) -> dict[str, Any]:
    words = [finding.message, *([f"Cause: {finding.cause}"] if finding.cause else []), *([f"Hint: {finding.hint}"] if finding.hint else [])]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.level],
        "message": {"text": visible("\n".join(words), keep_newlines=True)},
        "properties": {"subject": finding.subject},
    }
    spot = finding.location
    if spot is not None:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(spot.path)}}
        if spot.line:
            physical["region"] = {"startLine": spot.line, **({"startColumn": spot.column} if spot.column else {})}
        result["locations"] = [{"physicalLocation": physical}]
    else:
        named = {"fullyQualifiedName": " ".join(part for part in (finding.subject.get("kind"), finding.subject.get("name")) if part)}
        result["locations"] = [{"logicalLocations": [named]}]
    return result


def _uri(path: str) -> str:
    place, here = Path(path), Path.cwd()
    shown = place.relative_to(here) if place.is_relative_to(here) else place
    # Not as_uri(): a stranger's path may hold what no file system encoding has.
    return ("file://" if shown.is_absolute() else "") + quote(shown.as_posix(), errors="surrogatepass")
