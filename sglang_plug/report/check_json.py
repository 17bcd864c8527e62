"""What `check` found as one JSON document (schema 1). The shape is a promise to other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglang_plug.checks.source.run import CheckReport

SCHEMA = 1


def render(report: CheckReport) -> str:
    """Return {"schema", "project", "releases", "entry_points", "findings", "summary"}; only ASCII.

    `releases` maps each release to its worst level, null where it is clean; a finding's `data.releases` lists those that have it, and is
    absent where no release matters.
    """
    document = {
        "schema": SCHEMA,
        "project": report.host,
        "releases": {release: level.value if (level := report.verdict(release)) else None for release in report.releases},
        "entry_points": report.entry_points,
        "findings": [finding.as_json() for finding in report.findings],
        "summary": report.summary,
    }
    return json.dumps(document, indent=2, ensure_ascii=True, default=str) + "\n"
