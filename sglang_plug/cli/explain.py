"""`sglang-plug explain`: print the page of a rule, or the table of all."""

from __future__ import annotations

from typing import Annotated

import typer

from sglang_plug.cli.page import Page

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(cls=Page)
def explain(
    code: Annotated[
        str | None,
        typer.Argument(help="A rule's code or name, such as SP301 or does-not-load; without one, all rules are listed.", metavar="CODE"),
    ] = None,
) -> None:
    """Print the page of a rule: what it says, why it hurts, an example, and how to repair it.

    Examples:

    \b
      sglang-plug explain
      sglang-plug explain SP301
      sglang-plug explain does-not-load

    Exit status: 0 printed, 2 wrong usage (no such rule).
    """
    from sglang_plug.report.rules import listing, page

    typer.echo(listing() if code is None else page(code), nl=False)
