"""A baseline: the findings that a plugin has today, so that only new ones count. Recognised by what they say, not by their line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_plug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.run import CheckReport

_SCHEMA = 1


def fingerprint(finding: Finding) -> str:
    """Return a short mark of a finding that stays when lines above it move."""
    path = finding.location.path if finding.location else ""
    text = "\0".join((finding.code, path, finding.subject["name"], finding.subject.get("target", "")))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def spell(findings: Iterable[Finding]) -> str:
    """Return a baseline file's text: one row a mark, with words for people."""
    rows: dict[str, dict[str, object]] = {}
    for finding in findings:
        mark = fingerprint(finding)
        row = rows.setdefault(
            mark, {"code": finding.code, "path": finding.location.path if finding.location else "", "name": finding.subject["name"]}
        )
        row["count"] = int(str(row.get("count", 0))) + 1
    ordered = dict(sorted(rows.items(), key=lambda item: (str(item[1]["path"]), str(item[1]["code"]), item[0])))
    return json.dumps({"schema": _SCHEMA, "findings": ordered}, indent=2, ensure_ascii=True) + "\n"


def without_known(report: CheckReport, path: Path) -> tuple[CheckReport, int]:
    """Return the report without the findings of a baseline file, as many of each as it holds, and how many of its are gone.

    Raises:
        UsageError: the file is not a baseline.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != _SCHEMA:
            raise UsageError("this baseline has another format", subject=str(path), hint="write it again with --write-baseline")
        left = {str(mark): int(row["count"]) for mark, row in document["findings"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise UsageError(
            "this is no baseline", subject=str(path), cause=str(exc), hint=f"write one with `--write-baseline {path}`"
        ) from exc
    kept = []
    for finding in report.findings:
        mark = fingerprint(finding)
        if left.get(mark, 0) > 0:
            left[mark] -= 1
        else:
            kept.append(finding)
    known = {**report.host, "known": len(report.findings) - len(kept)}
    return replace(report, findings=tuple(kept), host=known), sum(count for count in left.values() if count > 0)
