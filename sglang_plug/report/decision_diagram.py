"""A survey as a picture: a Mermaid flowchart for Markdown pages, or a self-contained SVG. Every text is escaped for its format."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

from sglang_plug.report.decision_tree import BAD, GOOD, WARN
from sglang_plug.report.escape import brief
from sglang_plug.report.headline import headline

if TYPE_CHECKING:
    from sglang_plug.core.resolution import Step
    from sglang_plug.probe.decision import Survey

FILL = {"good": "#d9f2e0", "bad": "#fbdcdc", "warn": "#fdf0cd", "none": "#eef0f2"}
EDGE = {"good": "#2f855a", "bad": "#c53030", "warn": "#b7791f", "none": "#8a94a0"}
WIDTH, ROW, LINE, GAP, PAD, TITLE = 520, 46, 14, 16, 20, 58
INNER = WIDTH - 24  # what a line of text may take in its box
NARROW, BROAD = set(" .,:;'|!ijlft()[]/\\\"`"), set("_@%mwMW+=<>~—…")
LABEL = 240  # characters of a text in a Mermaid box: renderers refuse documents above 50,000


class Box(NamedTuple):
    """One rule of the trail as it is drawn."""

    title: str
    detail: str
    tone: str


def mermaid(survey: Survey) -> str:
    """Return a flowchart with one column per runtime."""
    rows = ["flowchart TD"]
    for runtime in survey.decisions:
        found = headline(survey, runtime)
        rows.append(f'  subgraph {runtime}["{survey.decisions[runtime].policy.label}"]')
        boxes = _boxes(survey, runtime)
        for index, box in enumerate(boxes):
            rows.append(f'    {runtime}{index}["{_quoted(box.title)}<br/><small>{_quoted(box.detail)}</small>"]:::{box.tone}')
            if index:
                rows.append(f"    {runtime}{index - 1} --> {runtime}{index}")
        tone = {"good": "good", "warn": "warn", "bad": "bad"}[found.tone]
        rows.append(f'    {runtime}end(["{_quoted(found.text, 4 * LABEL)}"]):::{tone}')
        if boxes:
            rows.append(f"    {runtime}{len(boxes) - 1} ==> {runtime}end")
        rows.append("  end")
    rows += [f"  classDef {tone} fill:{FILL[tone]},stroke:{EDGE[tone]},color:#1a202c" for tone in FILL]
    return "\n".join(rows)


def _quoted(text: str, limit: int = LABEL) -> str:
    return "".join(char if char.isalnum() or char in " .,:;/+-_=()" else f"#{ord(char)};" for char in brief(text, limit))


def _boxes(survey: Survey, runtime: str) -> list[Box]:
    return [
        Box(f"{step.rule} {step.verdict}: {step.subject}", step.why, _tone(step)) for step in survey.decisions[runtime].resolution.steps
    ]


def _tone(step: Step) -> str:
    if step.verdict in GOOD:
        return "good"
    if step.verdict in BAD:
        return "bad"
    return "warn" if step.verdict in WARN else "none"


def svg(survey: Survey) -> str:
    """Return an SVG image with one column per runtime, top to bottom in the order in which the rules were tried."""
    columns = {runtime: _boxes(survey, runtime) for runtime in survey.decisions}
    tallest = max((sum(_height(box) + GAP for box in boxes) for boxes in columns.values()), default=0)
    wide = len(columns) * (WIDTH + PAD) + PAD
    tall = TITLE + tallest + ROW + GAP + 2 * PAD + 18 * 6
    size = f'viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="system-ui, sans-serif" font-size="13">',
        "<title>The platform that SGLang will use, and the way to it</title>",
        f'<rect width="{wide}" height="{tall}" fill="#ffffff"/>',
    ]
    for index, (runtime, boxes) in enumerate(columns.items()):
        parts += _column(survey, runtime, boxes, PAD + index * (WIDTH + PAD))
    return "\n".join([*parts, "</svg>"])


def _column(survey: Survey, runtime: str, boxes: list[Box], left: int) -> list[str]:
    found = headline(survey, runtime)
    label = survey.decisions[runtime].policy.label
    parts = [f'<text x="{left}" y="{PAD + 18}" font-size="18" font-weight="600" fill="#1a202c">{escape(label)}</text>']
    top = TITLE
    for box in boxes:
        parts += _box(box, left, top)
        top += _height(box)
        parts.append(_arrow(left + WIDTH // 2, top))
        top += GAP
    lines = _fitted(found.text, 14.5, 6)  # bold letters are broader
    box_height = 18 * len(lines) + 20
    look = f'fill="{FILL[found.tone]}" stroke="{EDGE[found.tone]}" stroke-width="2"'
    parts.append(f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{box_height}" rx="14" {look}/>')
    parts += [
        f'<text x="{left + 12}" y="{top + 24 + 18 * row}" font-weight="600" fill="#1a202c">{escape(line)}</text>'
        for row, line in enumerate(lines)
    ]
    return parts


def _height(box: Box) -> int:
    return ROW + LINE * (len(_detail(box)) - 1)


def _detail(box: Box) -> list[str]:
    return _fitted(box.detail, 11, 4)


def _box(box: Box, left: int, top: int) -> list[str]:
    look = f'fill="{FILL[box.tone]}" stroke="{EDGE[box.tone]}"'
    return [
        f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{_height(box)}" rx="6" {look}/>',
        f'<text x="{left + 12}" y="{top + 19}" fill="#1a202c">{escape(_fitted(box.title, 13)[0])}</text>',
        *(
            f'<text x="{left + 12}" y="{top + 36 + LINE * row}" font-size="11" fill="#4a5568">{escape(line)}</text>'
            for row, line in enumerate(_detail(box))
        ),
    ]


def _arrow(centre: int, top: int) -> str:
    tip = top + GAP
    head = f"M{centre - 4} {tip - 6}L{centre} {tip}L{centre + 4} {tip - 6}Z"
    return f'<path d="M{centre} {top}V{tip - 4}" stroke="#8a94a0"/><path d="{head}" fill="#8a94a0"/>'


def _fitted(text: str, size: float, rows: int = 1) -> list[str]:
    """Return `text` in at most so many lines that fit a box; an ellipsis ends what does not."""
    words = [word for word in re.split(r"(?<=[ ./:,])", brief(text)) if word]
    lines = [""]
    while words and len(lines) <= rows:
        word = words.pop(0)
        if _pixels(lines[-1] + word, size) <= INNER:
            lines[-1] += word
        elif lines[-1] and _pixels(word, size) <= INNER and rows > 1:
            lines.append(word)
        else:  # a word longer than a line, or the only line: what fits of it
            fits = next(count for count in range(len(word), -1, -1) if _pixels(lines[-1] + word[:count], size) <= INNER)
            lines[-1] += word[:fits]
            lines.append("")
            words.insert(0, word[fits:])
    if len(lines) > rows:
        last = lines[rows - 1].rstrip()
        while _pixels(last + "…", size) > INNER:
            last = last[:-1]
        lines = [*lines[: rows - 1], last + "…"]
    return lines


def _pixels(text: str, size: float) -> float:
    """Estimate how wide a text is drawn, by a broad sans-serif font."""
    return size * sum(
        0.4 if char in NARROW else 0.8 if char in BROAD or char.isupper() else 0.62 if char.isascii() else 1.0 for char in text
    )
