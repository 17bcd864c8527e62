"""Findings as one JSON document (schema 1). The shape is a promise to other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

SCHEMA = 1


def render(report: Report) -> str:
    """Return {"schema", "host", "entry_points", "findings", "summary"} as text; only ASCII, so that no stranger's character can do harm."""
    document = {
        "schema": SCHEMA,
        "host": report.host,
        "entry_points": report.entry_points,
        "findings": [finding.as_json() for finding in report.findings],
        "summary": report.summary,
    }
    return json.dumps(document, indent=2, ensure_ascii=True, default=str) + "\n"
