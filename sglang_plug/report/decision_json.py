"""A survey as one JSON document (schema 1). The shape is a promise to other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sglang_plug.report.headline import headline, warnings

if TYPE_CHECKING:
    from sglang_plug.core.resolution import Step
    from sglang_plug.core.selection import Choice
    from sglang_plug.probe.decision import Survey

SCHEMA = 1


def document(survey: Survey) -> dict[str, Any]:
    """Return {"schema", "host", "variables", "runtimes": {…}}."""
    interpreter, sglang = survey.facts["interpreter"], survey.facts["sglang"]
    return {
        "schema": SCHEMA,
        "host": {
            "python": interpreter["executable"],
            "python_version": interpreter["version"],
            "prefix": interpreter["prefix"],
            "sglang": {key: sglang[key] for key in ("kind", "version", "origin")},
            "release": survey.release,
            "assumed": survey.assumed,
        },
        "variables": {"set": dict(survey.settings.raw), "shadowed": dict(survey.settings.shadowed)},
        "runtimes": {runtime: _runtime(survey, runtime) for runtime in survey.decisions},
    }


def _runtime(survey: Survey, runtime: str) -> dict[str, Any]:
    decision = survey.decisions[runtime]
    resolution = decision.resolution
    error = resolution.error
    return {
        "outcome": resolution.outcome,
        "name": resolution.name,
        "qualname": resolution.qualname,
        "dist": resolution.dist,
        "summary": headline(survey, runtime).text,
        "steps": [_step(step) for step in resolution.steps],
        "error": {"type": error.type, "message": error.message, "cause": error.cause, "hint": error.hint} if error else None,
        "warnings": warnings(decision),
        "plugins": [_choice(choice) for choice in decision.choices],
        "hardware": dict(decision.hardware),
        "class": decision.location,
        "host": decision.host,
    }


def _step(step: Step) -> dict[str, Any]:
    row: dict[str, Any] = {"rule": step.rule, "subject": step.subject, "verdict": step.verdict, "why": step.why}
    if step.seconds is not None:
        row["seconds"] = round(step.seconds, 6)
    return {**row, **({"data": step.data} if step.data else {})}


def _choice(choice: Choice) -> dict[str, Any]:
    candidate = choice.candidate
    identity = {"name": candidate.name, "dist": candidate.dist, "version": candidate.version}
    return {**identity, "verdict": choice.verdict, "why": choice.why, "required": choice.required}


def dumps(value: Any) -> str:
    """Return JSON text in which no control character of a stranger survives unescaped."""
    return json.dumps(value, indent=2, ensure_ascii=True, default=str)
