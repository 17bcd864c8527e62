"""The entry points of an environment as a table or as JSON. Facts of the probe in, words out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.core.entrypoints import GROUPS
from sglang_plug.report.decision_json import SCHEMA
from sglang_plug.report.decision_json import dumps as to_json
from sglang_plug.report.escape import visible
from sglang_plug.report.terminal import padded, width
from sglang_plug.report.text import Span
from sglang_plug.report.text import write as to_screen
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

RUNTIMES = {"srt": "sglang.srt.", "diffusion": "sglang.multimodal_gen."}


def rows(facts: Mapping[str, Any], runtime: str | None) -> list[dict[str, Any]]:
    """Return the entry points of one runtime, or of all, in the host's order; `known` is false where SGLang reads no such group."""
    prefix = RUNTIMES[runtime] if runtime else ""
    return [
        {key: row[key] for key in ("group", "name", "value", "dist", "version", "where")} | {"known": row["group"] in GROUPS}
        for row in facts["entry_points"]
        if row["group"].startswith(prefix)
    ]


def troubles(facts: Mapping[str, Any]) -> list[str]:
    """Return what stands in the way of reading metadata, one line each."""
    lines = []
    for problem in facts["problems"]:
        level = "error" if problem["fatal"] else "warning"
        where = f"{problem['path']}:{problem['line']}" if problem["line"] else problem["path"]
        more = ": SGLang cannot enumerate any plugin of this environment" if problem["fatal"] else ""
        lines.append(visible(f"{level}: {where}: {problem['why']}: {problem['text'].strip()!r}{more}"))
    for found in facts["shadowed"]:
        if _rows(found["entries"]) == _rows(row for row in facts["entry_points"] if row["where"] == found["by"]):
            continue  # an editable install leaves such a twin in its source folder
        name = f"{found['name']} {found['version']}"
        lines.append(visible(f"warning: {name} at {found['where']} is hidden by {found['by']}, which comes first on sys.path"))
    return lines


def _rows(entries: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    return {(row["group"], row["name"], row["value"]) for row in entries}


def write(facts: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> None:
    """Write the table to stdout, one block per group."""
    interpreter, sglang = facts["interpreter"], facts["sglang"]
    host = f"SGLang {sglang['version']}" if sglang["kind"] in {"installed", "source"} else "no SGLang"
    head = f"{interpreter['executable']} (Python {interpreter['version']}); {host}; {counted(facts['scanned'], 'distribution')}"
    lines = [[Span(visible(head), "dim")]]
    if not found:
        lines += [[], [Span("no plugin is installed here")]]
    for group in dict.fromkeys(row["group"] for row in found):
        block = [row for row in found if row["group"] == group]
        known = "" if block[0]["known"] else "  (SGLang reads no such group)"
        lines += [[], [Span(visible(group), "bold"), Span(known, "yellow")]]
        wide = max(width(visible(row["name"])) for row in block)
        reach = max(width(visible(row["value"])) for row in block)
        lines += [
            [
                Span(f"  {padded(visible(row['name']), wide)}  {padded(visible(row['value']), reach)}  "),
                Span(visible(f"{row['dist']} {row['version']}"), "dim"),
            ]
            for row in block
        ]
    to_screen(lines)


def dumps(facts: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> str:
    """Return {"schema", "host", "entry_points", "problems", "shadowed"} as JSON text."""
    host = {
        "python": facts["interpreter"]["executable"],
        "python_version": facts["interpreter"]["version"],
        "prefix": facts["interpreter"]["prefix"],
        "sglang": facts["sglang"],
    }
    return to_json(
        {"schema": SCHEMA, "host": host, "entry_points": list(found), "problems": facts["problems"], "shadowed": facts["shadowed"]}
    )
