"""Where a hook fires, as a table or as JSON. Values in, words out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.report.decision_json import SCHEMA, dumps
from sglang_plug.report.escape import visible
from sglang_plug.report.text import Span
from sglang_plug.report.text import write as to_screen
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from sglang_plug.probe.reach import Reach
    from sglang_plug.report.decision_tree import Line

STYLES = {"yes": "green", "no": "red", "maybe": "yellow"}


def document(found: Reach, release: str) -> str:
    """Return {"schema", "release", "hook": {…}} as JSON text."""
    symbol = found.symbol
    hook = {
        "target": found.target,
        "runtime": found.runtime,
        "exists": symbol is not None,
        "kind": symbol.kind.value if symbol else None,
        "signature": symbol.signature if symbol else None,
        "near": list(found.near),
        "processes": [
            {
                "role": place.process.role,
                "entry": place.process.entry,
                "plugins": place.process.plugins,
                "fires": place.fires,
                "why": place.why,
            }
            | ({"note": place.process.note} if place.process.note else {})
            for place in found.places
        ],
        "notes": [{"level": note.level, "text": note.text, "instead": note.instead} for note in found.notes],
    }
    return dumps({"schema": SCHEMA, "release": release, "hook": hook})


def write(found: Reach, release: str) -> None:
    """Write the sentence, the notes and the processes to stdout."""
    to_screen(_head(found, release) + ([] if found.is_dead else _table(found)))


def _head(found: Reach, release: str) -> list[Line]:
    target = visible(found.target)
    if found.symbol is None:
        rows = [[Span(f"SGLang {release} has no {target}: a hook on it is logged as failed and the server starts without it", "bold red")]]
        return rows + [[Span("hint: ", "cyan"), Span("did you mean " + visible(name) + "?")] for name in found.near]
    sure = [place.process.role for place in found.places if place.fires == "yes"]
    what = f"the {found.symbol.kind.value} {target}"
    label = "Diffusion" if found.runtime == "diffusion" else "SRT"
    if found.is_dead:
        text, style = f"A hook on {what} does not work in SGLang {release}", "bold red"
    elif sure:
        text, style = (
            f"A hook on {what} fires in {counted(len(sure), 'kind')} of {label} process of SGLang {release}: {', '.join(sure)}",
            "bold green",
        )
    elif found.fires_nowhere:
        text, style = f"A hook on {what} fires in no process of SGLang {release}", "bold red"
    else:
        text, style = f"It is not known for certain that a hook on {what} fires in any process of SGLang {release}", "bold yellow"
    rows = [[Span(text, style)]]
    if found.symbol.signature:
        rows.append([Span(f"{found.symbol.name.rpartition('.')[2]}{visible(found.symbol.signature)}", "dim")])
    for note in found.notes:
        rows.append([Span(f"{note.level}: ", "red" if note.level == "dead" else "yellow"), Span(f"SGLang {release} {note.text}")])
        if note.instead:
            rows.append([Span("hint: ", "cyan"), Span(f"hook {note.instead} instead")])
    return rows


def _table(found: Reach) -> list[Line]:
    wide = max((len(place.process.role) for place in found.places), default=0)
    return [
        [
            Span("├─ " if index < len(found.places) - 1 else "└─ ", "dim"),
            Span(f"{place.process.role:<{wide}}  "),
            Span(f"{place.fires:<5}", STYLES[place.fires]),
            Span(f"  {place.why}"),
        ]
        for index, place in enumerate(found.places)
    ]
