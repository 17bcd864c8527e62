"""`sglang-plug hooks DIR`: did the hooks of a recorded launch arrive, and fire?"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sglang_plug.cli import options
from sglang_plug.cli.page import Page

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Format(StrEnum):
    """How the recording is shown."""

    TEXT = "text"
    JSON = "json"
    TRACE = "trace"


Folder = Annotated[Path, typer.Argument(metavar="DIR", help="What `serve --record DIR` wrote; the engine may still run.")]
Everything = Annotated[
    bool, typer.Option("--all", help="Show hooks in the processes that never call them, too.", rich_help_panel=options.ANSWER)
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 as well when a hook never fired.", rich_help_panel=options.ANSWER)]
FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        help="text: a table; trace: Chrome trace JSON, for chrome://tracing or Perfetto.",
        rich_help_panel=options.ANSWER,
    ),
]


@app.command(cls=Page)
def hooks(
    folder: Folder,
    *,
    everything: Everything = False,
    strict: Strict = False,
    output_format: FormatOption = Format.TEXT,
    output: options.Output = None,
) -> None:
    """Show which hooks were registered, applied and fired, in which process, how often and at what cost.

    Cost is what a hook spends itself: an AROUND hook's does not hold the original.

    Examples:

    \b
      sglang-plug hooks ./run
      sglang-plug hooks ./run --format trace -o trace.json
      sglang-plug hooks ./run --strict --format json

    Exit status: 0 nothing failed, 1 a hook or a plugin failed or nothing was recorded (--strict: or a hook never fired), 2 wrong usage.
    """
    from sglang_plug.launch import recording
    from sglang_plug.report import hooks as report
    from sglang_plug.report.findings import save
    from sglang_plug.report.text import plain, write

    found = recording.read(folder)
    if output_format is Format.TEXT:
        rows = report.table(found, everything=everything)
        save(plain(rows), output) if output is not None else write(rows)
    else:
        facts = report.as_json(found) if output_format is Format.JSON else recording.chrome_trace(found)
        text = json.dumps(facts, indent=None if output_format is Format.TRACE else 2) + "\n"
        save(text, output) if output is not None else typer.echo(text, nl=False)
    bad = recording.failed(found) or any(process.plugins_failed for process in found.processes) or found.damaged or not found.processes
    if bad or (strict and recording.silent(found)):
        raise typer.Exit(1)
