"""`sglang-plug doctor`: find what is wrong with the installed plugins, and why."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sglang_plug.cli import options
from sglang_plug.cli.page import Page

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Format(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    GITHUB = "github"
    HTML = "html"


class Isolation(StrEnum):
    """In what kind of process each plugin is tried."""

    AUTO = "auto"
    FORK = "fork"
    SPAWN = "spawn"


Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Entry points or distributions; those named are examined even where SGLang leaves them alone.",
        metavar="NAME",
        show_default=False,
    ),
]
RuntimeOption = Annotated[
    options.Runtime | None,
    typer.Option("--runtime", help=f"{options.RUNTIME_HELP} [default: all]", rich_help_panel=options.WHERE, show_default=False),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        help="How long one plugin may take. [default: 20; 90 on real SGLang]",
        min=0.1,
        metavar="SECONDS",
        rich_help_panel=options.LIMITS,
        show_default=False,
    ),
]
Memory = Annotated[
    int | None,
    typer.Option(
        help="What one plugin may allocate; 0 for no limit. [default: 4096]",
        min=0,
        metavar="MIB",
        rich_help_panel=options.LIMITS,
        show_default=False,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        help="Plugins examined at a time. [default: one a core]",
        min=1,
        metavar="N",
        rich_help_panel=options.LIMITS,
        show_default=False,
    ),
]
IsolationOption = Annotated[
    Isolation | None,
    typer.Option(
        "--isolation",
        help="Try plugins in forks of one process that imported SGLang, or in interpreters of their own that import it again "
        "(slow). auto: forks where they are safe. [default: auto]",
        rich_help_panel=options.LIMITS,
        show_default=False,
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show tracebacks.", rich_help_panel=options.ANSWER)]


@app.command(cls=Page)
def doctor(
    names: Names = None,
    *,
    runtime: RuntimeOption = None,
    python: options.Python = None,
    launch: options.LaunchOption = options.Launch.SCRIPT,
    select: options.Select = None,
    ignore: options.Ignore = None,
    strict: options.Strict = None,
    timeout: Timeout = None,
    memory: Memory = None,
    jobs: Jobs = None,
    isolation: IsolationOption = None,
    verbose: Verbose = False,
    output_format: Annotated[Format, options.FORMAT] = Format.TEXT,
    output: options.Output = None,
) -> None:
    """Find what is wrong with the installed plugins, and why.

    Every plugin that SGLang would run here is tried in a child process, in SGLang's own order; then SGLang (or, where it is not
    installed, the stand-in) is watched as it decides. Defaults can stand in `[tool.sglang-plug]` of the folder's pyproject.toml.

    Examples:

    \b
      sglang-plug doctor
      sglang-plug doctor mydev --verbose
      sglang-plug doctor --python ./venv --format sarif -o doctor.sarif

    Exit status: 0 no errors (with --strict: no warnings either), 1 findings, 2 wrong usage.
    """
    from sglang_plug.checks.configuration import configured
    from sglang_plug.checks.doctor import examine
    from sglang_plug.checks.selection import codes, kept
    from sglang_plug.probe.environment import Environment
    from sglang_plug.report.progress import tell

    environment = Environment.here(python, launch=launch.value)
    given = {"runtime": runtime, "timeout": timeout, "memory": memory, "jobs": jobs, "isolation": isolation}
    chosen = configured(Path(environment.cwd), **given, select=select, ignore=ignore, strict=strict)
    codes((*chosen.select, *chosen.ignore))  # a slip is told before the work
    report = examine(
        environment,
        tuple(names or ()),
        runtimes=chosen.runtimes,
        limits=chosen.limits,
        explicit_python=python is not None,
        progress=tell,
    )
    report = kept(report, chosen.select, chosen.ignore)
    _write(report, output_format, output, verbose=verbose)
    if report.failed(strict=chosen.strict):
        raise typer.Exit(1)


def _write(report: Report, output_format: Format, output: Path | None, *, verbose: bool) -> None:
    from sglang_plug.report import findings, findings_text

    if output is None and output_format is Format.TEXT:
        findings_text.write(findings_text.lines(report, verbose=verbose))
        return
    text = findings.render(report, output_format.value, verbose=verbose)
    if output is None:
        typer.echo(text, nl=False)
    else:
        findings.save(text, output)
