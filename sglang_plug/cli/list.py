"""`sglang-plug list`: the entry points of an environment, from metadata alone."""

from __future__ import annotations

import typer

from sglang_plug.cli import options
from sglang_plug.cli.page import Page

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command("list", cls=Page)
def list_(
    *,
    runtime: options.RuntimeOption = options.Runtime.ALL,
    python: options.Python = None,
    output_format: options.TextOrJsonOption = options.TextOrJson.TEXT,
) -> None:
    """List the plugins that are installed here, in the order in which SGLang enumerates them.

    Reads metadata only: no plugin, no SGLang and no torch is imported.

    Examples:

    \b
      sglang-plug list
      sglang-plug list --python ./venv
      sglang-plug list --runtime srt --format json

    Exit status: 0 the metadata could be read, 1 a file is so broken that SGLang cannot read any, 2 wrong usage.
    """
    from sglang_plug.probe.environment import Environment
    from sglang_plug.probe.headstart import FIRST, take
    from sglang_plug.report import inventory

    with take(Environment.here(python)) as probe:
        facts = probe.require(FIRST)
    rows = inventory.rows(facts, None if runtime is options.Runtime.ALL else runtime.value)
    for line in inventory.troubles(facts):
        typer.echo(line, err=True)
    if output_format is options.TextOrJson.JSON:
        typer.echo(inventory.dumps(facts, rows))
    else:
        inventory.write(facts, rows)
    if any(problem["fatal"] for problem in facts["problems"]):
        raise typer.Exit(1)
