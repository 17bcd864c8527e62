"""A survey as a tree for people: the sentence on top, then each rule that was tried, its subject, its verdict and the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.report.escape import brief
from sglang_plug.report.headline import context, headline
from sglang_plug.report.terminal import padded, width
from sglang_plug.report.text import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_plug.core.resolution import Step
    from sglang_plug.probe.decision import Survey
    from sglang_plug.probe.inquiry import Decision

TONES = {"good": "bold green", "warn": "bold yellow", "bad": "bold red"}
GOOD = {"chosen", "active", "present", "agrees", "load"}
BAD = {"failed", "refused", "raised", "unknown", "ambiguous", "unavailable", "conflict", "bad-return", "bad-name", "differs", "nothing"}
WARN = {"shadowed", "doubtful", "skipped", "empty"}


Line = list[Span]


def lines(survey: Survey) -> list[Line]:
    """Return the whole report, line by line."""
    rows: list[Line] = [[Span(brief(context(survey)), "dim")]]
    for runtime, decision in survey.decisions.items():
        found = headline(survey, runtime)
        rows += [[], [Span(brief(found.text), TONES[found.tone])]]
        if found.advice:
            rows.append([Span("hint: ", "cyan"), Span(brief(found.advice))])
        rows += _branch(decision)
    return rows


def _branch(decision: Decision) -> list[Line]:
    cells = [_cells(step) for step in decision.resolution.steps] + _unasked(decision)
    plugins = [
        (
            "hooks",
            brief(f"{choice.candidate.name} ({choice.candidate.dist})"),
            choice.verdict,
            brief(_plugin_why(choice.why, required=choice.required and choice.verdict == "load")),
        )
        for choice in decision.choices
    ]
    return _aligned(cells + plugins)


def _plugin_why(why: str, *, required: bool) -> str:
    return f"{why}; required: its failure aborts startup" if required else why


def _cells(step: Step) -> tuple[str, str, str, str]:
    time = f" [{_duration(step.seconds)}]" if step.seconds is not None else ""
    return step.rule, brief(step.subject), step.verdict, brief(step.why) + time


def _unasked(decision: Decision) -> list[tuple[str, str, str, str]]:
    """The detectors that come after the one that decided, so that all can be seen side by side."""
    seen = {step.subject for step in decision.resolution.steps if step.rule == "detect"}
    rows = []
    for name, found in decision.hardware.items():
        if name not in seen:
            state = "not asked" if found["present"] is None else "present" if found["present"] else "absent"
            rows.append(("detect", name, state, f"comes after the decision; {brief(found['why'])}"))
    return rows


def _aligned(cells: Sequence[tuple[str, str, str, str]]) -> list[Line]:
    wide = [min(40, max((width(row[column]) for row in cells), default=0)) for column in range(3)]
    rows: list[Line] = []
    for index, (rule, subject, verdict, why) in enumerate(cells):
        stem = "└─ " if index == len(cells) - 1 else "├─ "
        style = "green" if verdict in GOOD else "red" if verdict in BAD else "yellow" if verdict in WARN else "dim"
        rows.append(
            [
                Span(stem, "dim"),
                Span(f"{padded(rule, wide[0])}  {padded(subject, wide[1])}  "),
                Span(padded(verdict, wide[2]), style),
                Span(f"  {why}"),
            ]
        )
    return rows


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"
