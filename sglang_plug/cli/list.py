"""`sglang-plug list`: the entry points of an environment, from metadata alone."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Runtime(StrEnum):
    """Whose entry points are listed."""

    SRT = "srt"
    DIFFUSION = "diffusion"
    ALL = "all"


class Format(StrEnum):
    """How the list is written."""

    TEXT = "text"
    JSON = "json"


@app.command("list")
def list_(
    *,
    runtime: Annotated[Runtime, typer.Option(help="Whose entry points.", rich_help_panel="Where")] = Runtime.ALL,
    python: Annotated[
        str | None,
        typer.Option(
            help="Look into this interpreter or virtual environment.", metavar="PATH", rich_help_panel="Where", show_default=False
        ),
    ] = None,
    output_format: Annotated[
        Format, typer.Option("--format", "-f", help="How the list is written.", rich_help_panel="Answer")
    ] = Format.TEXT,
) -> None:
    """List the plugins that are installed here, in the order in which SGLang enumerates them.

    Reads metadata only: no plugin, no SGLang and no torch is imported.

    Examples:

    \b
      sglang-plug list
      sglang-plug list --python /opt/venv
      sglang-plug list --runtime srt --format json

    Exit status: 0 the metadata could be read, 1 a file is so broken that SGLang cannot read any, 2 wrong usage.
    """
    from sglang_plug.probe.environment import Environment
    from sglang_plug.probe.headstart import FIRST, take
    from sglang_plug.report import inventory

    with take(Environment.here(python)) as probe:
        facts = probe.require(FIRST)
    rows = inventory.rows(facts, None if runtime is Runtime.ALL else runtime.value)
    for line in inventory.troubles(facts):
        typer.echo(line, err=True)
    if output_format is Format.JSON:
        typer.echo(inventory.dumps(facts, rows))
    else:
        inventory.write(facts, rows)
    if any(problem["fatal"] for problem in facts["problems"]):
        raise typer.Exit(1)
