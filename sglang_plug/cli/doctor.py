"""`sglang-plug doctor`: find what is wrong with the installed plugins, and why."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Runtime(StrEnum):
    """Whose plugins are examined."""

    SRT = "srt"
    DIFFUSION = "diffusion"
    ALL = "all"


class Format(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    GITHUB = "github"
    HTML = "html"


class Launch(StrEnum):
    """How SGLang is started: it decides what stands first on sys.path."""

    SCRIPT = "script"
    MODULE = "module"


class Isolation(StrEnum):
    """In what kind of process each plugin is tried."""

    AUTO = "auto"
    FORK = "fork"
    SPAWN = "spawn"


@app.command()
def doctor(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Entry points or distributions; those named are examined even where SGLang leaves them alone.",
            metavar="NAME…",
            show_default=False,
        ),
    ] = None,
    *,
    runtime: Annotated[
        Runtime | None,
        typer.Option(help="LLM serving, image and video generation, or both. [default: all]", rich_help_panel="Where", show_default=False),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            help="Examine this interpreter or virtual environment; sglang-plug need not be installed there.",
            metavar="PATH",
            rich_help_panel="Where",
        ),
    ] = None,
    launch: Annotated[
        Launch,
        typer.Option(
            help="script: the `sglang` command; module: `python -m`, which puts the working directory first.", rich_help_panel="Where"
        ),
    ] = Launch.SCRIPT,
    timeout: Annotated[
        float | None,
        typer.Option(
            help="Seconds that one plugin may take. [default: 20; 90 on real SGLang]", min=0.1, rich_help_panel="Limits", show_default=False
        ),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(
            help="MiB that one plugin may allocate; 0 for no limit. [default: 4096]",
            min=0,
            metavar="MIB",
            rich_help_panel="Limits",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", help="Plugins examined at a time. [default: one a core]", min=1, rich_help_panel="Limits", show_default=False
        ),
    ] = None,
    isolation: Annotated[
        Isolation | None,
        typer.Option(
            help="Try plugins in forks of one process that imported SGLang, or in interpreters of their own that import it again "
            "(slow). auto: forks where they are safe. [default: auto]",
            rich_help_panel="Limits",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these rules: codes, their beginnings (SP5) or names.", metavar="CODES", rich_help_panel="Rules", show_default=False
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Not these rules.", metavar="CODES", rich_help_panel="Rules", show_default=False)
    ] = None,
    strict: Annotated[
        bool | None, typer.Option("--strict/--no-strict", help="Warnings fail too.", rich_help_panel="Rules", show_default=False)
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show tracebacks.", rich_help_panel="Answer")] = False,
    output_format: Annotated[
        Format, typer.Option("--format", "-f", help="How the answer is written.", rich_help_panel="Answer")
    ] = Format.TEXT,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the answer to a file instead of stdout.",
            metavar="FILE",
            rich_help_panel="Answer",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Find what is wrong with the installed plugins, and why.

    Every plugin that SGLang would run here is tried in a child process, in SGLang's own order; then SGLang (or, where it is not
    installed, the stand-in) is watched as it decides. Defaults can stand in `[tool.sglang-plug]` of the folder's pyproject.toml.

    Examples:

    \b
      sglang-plug doctor
      sglang-plug doctor my_platform --verbose
      sglang-plug doctor --python /opt/venv --format sarif -o doctor.sarif

    Exit status: 0 no errors (with --strict: no warnings either), 1 findings, 2 wrong usage.
    """
    from sglang_plug.checks.configuration import configured
    from sglang_plug.checks.doctor import examine
    from sglang_plug.checks.selection import codes, kept
    from sglang_plug.probe.environment import Environment

    environment = Environment.here(python, launch=launch.value)
    options = configured(
        Path(environment.cwd),
        runtime=runtime.value if runtime else None,
        timeout=timeout,
        memory=memory,
        jobs=jobs,
        isolation=isolation.value if isolation else None,
        select=select,
        ignore=ignore,
        strict=strict,
    )
    codes((*options.select, *options.ignore))  # a slip is told before the work
    report = examine(
        environment,
        tuple(names or ()),
        runtimes=options.runtimes,
        limits=options.limits,
        explicit_python=python is not None,
        progress=_progress,
    )
    report = kept(report, options.select, options.ignore)
    _write(report, output_format, output, verbose=verbose)
    if report.failed(strict=options.strict):
        raise typer.Exit(1)


def _progress(text: str) -> None:
    import sys

    if sys.stderr.isatty():
        from sglang_plug.report.escape import visible

        typer.echo(f"… {visible(text)}", err=True)


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
