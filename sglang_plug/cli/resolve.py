"""`sglang-plug resolve`: which platform will be used here, and why."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sglang_plug.cli import options
from sglang_plug.cli.page import Page

if TYPE_CHECKING:
    from sglang_plug.probe.decision import Survey
    from sglang_plug.probe.environment import Environment

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Format(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"


Release = Annotated[
    str | None,
    typer.Option(
        "--sglang",
        help="Decide by the rules of this release (0.5.11 and later). [default: the installed one's]",
        metavar="RELEASE",
        rich_help_panel=options.WHAT_IF,
        show_default=False,
    ),
]
Platform = Annotated[
    str | None,
    typer.Option(
        help="As if the platform selector named this (of each runtime that has such a platform).",
        metavar="NAME",
        rich_help_panel=options.WHAT_IF,
        show_default=False,
    ),
]
Plugins = Annotated[
    str | None, typer.Option(help="As if SGLANG_PLUGINS were this.", metavar="A,B", rich_help_panel=options.WHAT_IF, show_default=False)
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        help="As if this variable were set; NAME alone removes it. Repeatable.",
        metavar="KEY=VALUE",
        rich_help_panel=options.WHAT_IF,
        show_default=False,
    ),
]
Hook = Annotated[
    str | None,
    typer.Option(
        help="Answer another question: in which processes does a hook on this target fire?",
        metavar="TARGET",
        rich_help_panel=options.ANSWER,
        show_default=False,
    ),
]
Verify = Annotated[
    bool, typer.Option("--verify", help="Run the real host in a child too; a difference is an error.", rich_help_panel=options.ANSWER)
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 when a platform plugin failed on the way.", rich_help_panel=options.ANSWER)]
Timeout = Annotated[
    float,
    typer.Option(help="How long one callback may take.", min=0.1, metavar="SECONDS", rich_help_panel=options.LIMITS),
]


@app.command(cls=Page)
def resolve(
    *,
    runtime: options.RuntimeOption = options.Runtime.ALL,
    python: options.Python = None,
    launch: options.LaunchOption = options.Launch.SCRIPT,
    sglang: Release = None,
    platform: Platform = None,
    plugins: Plugins = None,
    env: Variables = None,
    hook: Hook = None,
    verify: Verify = False,
    strict: Strict = False,
    output_format: Annotated[Format, options.FORMAT] = Format.TEXT,
    timeout: Timeout = 20.0,
) -> None:
    """Show which platform SGLang will use here, each rule that was tried, and why.

    Callbacks run in a child process; SGLang itself is not imported unless a callback needs it or --verify asks for it.

    Examples:

    \b
      sglang-plug resolve
      sglang-plug resolve --runtime srt --platform mydev --sglang 0.5.17
      sglang-plug resolve --python ./venv --verify --format json

    Exit status: 0 a platform was decided for every runtime, 1 a decision is an error (or, with --strict, a plugin failed), 2 wrong usage.
    """
    from sglang_plug.probe.decision import runtimes_with, survey
    from sglang_plug.probe.environment import Environment, other_engine, variables_for
    from sglang_plug.probe.inquiry import Limits
    from sglang_plug.report.escape import visible
    from sglang_plug.report.progress import tell

    runtimes = runtime.names
    environment = Environment.here(python, launch=launch.value)
    if hook is not None:
        _answer_hook(hook, environment, sglang, output_format)
        return
    named = runtimes_with(environment, platform, runtimes) if platform is not None and len(runtimes) > 1 else runtimes
    changed = environment.with_variables(variables_for(platform=platform, plugins=plugins, env=env or (), runtimes=named))
    found = survey(changed, runtimes, release=sglang, verify=verify, limits=Limits(timeout=timeout), progress=tell)
    if python is None and (other := other_engine(changed, found.facts["interpreter"]["prefix"])) is not None:
        typer.echo(f"warning: the sglang command on PATH runs {visible(other)}; to look there, add --python {visible(other)}", err=True)
    _warn_of_slips(changed, found.release)
    _write(found, output_format)
    failed = any(decision.resolution.error is not None for decision in found.decisions.values())
    if failed or (strict and _has_failures(found)):
        raise typer.Exit(1)


def _warn_of_slips(environment: Environment, release: str) -> None:
    """Say which variables nobody reads, and which were meant."""
    from sglang_plug.core.environ import VARIABLES

    if not any(name.upper().startswith(("SG", "GL", "SL")) and name not in VARIABLES for name in environment.env):
        return  # the common case pays for no import
    from sglang_plug.checks.rules.variables import near_misses
    from sglang_plug.contract import catalogue
    from sglang_plug.report.escape import visible

    near = near_misses(environment.env)
    real = catalogue.load(catalogue.nearest(release)).environment if near else frozenset()
    for name, meant in near:
        if name not in real:
            typer.echo(f"warning: {visible(name)} is read by nobody; did you mean {meant}?", err=True)


def _has_failures(survey: Survey) -> bool:
    from sglang_plug.report.headline import failures

    return any(failures(decision) for decision in survey.decisions.values())


def _write(survey: Survey, output_format: Format) -> None:
    from sglang_plug.report import headline
    from sglang_plug.report.escape import brief

    for runtime, decision in survey.decisions.items():
        for line in headline.warnings(decision):
            typer.echo(f"warning: {brief(line)}", err=True)
        if decision.resolution.error is not None and output_format is not Format.TEXT:
            typer.echo(f"error: {brief(headline.headline(survey, runtime).text)}", err=True)
    if output_format is Format.JSON:
        from sglang_plug.report import decision_json

        typer.echo(decision_json.dumps(decision_json.document(survey)))
    elif output_format is Format.TEXT:
        from sglang_plug.report import decision_tree, text

        text.write(decision_tree.lines(survey))
    else:
        from sglang_plug.report.decision_diagram import mermaid, svg

        typer.echo(mermaid(survey) if output_format is Format.MERMAID else svg(survey))


def _answer_hook(target: str, environment: Environment, wanted: str | None, output_format: Format) -> None:
    """Say in which processes a hook on `target` fires, by the release asked for, the installed one's, or the newest known."""
    from sglang_plug.contract import catalogue
    from sglang_plug.errors import UsageError
    from sglang_plug.probe.decision import choose_release
    from sglang_plug.probe.headstart import FIRST, take
    from sglang_plug.probe.reach import reach
    from sglang_plug.report import hook_reach
    from sglang_plug.report.escape import visible

    if output_format not in {Format.TEXT, Format.JSON}:
        raise UsageError(f"--hook is answered as text or json, not as {output_format.value}", hint="add --format json")
    if not re.match(r"\s*sglang[.:]\w", target):
        raise UsageError(
            f"{target!r} is no part of SGLang, so which processes run it is not known",
            subject="--hook",
            hint="name something of SGLang's: sglang-plug contract targets 'sglang.srt.managers.*'",
        )
    if wanted is None:
        with take(environment) as probe:
            here = choose_release(probe.require(FIRST)["sglang"], None)[0]
        release = catalogue.load(catalogue.nearest(here))
        if release.version != here:
            typer.echo(f"note: SGLang {visible(here)} is not in the catalogue; this is {release.version}", err=True)
    else:
        release = catalogue.load(choose_release({}, wanted)[0])
    found = reach(release, target)
    if output_format is Format.JSON:
        typer.echo(hook_reach.document(found, release.version))
    else:
        hook_reach.write(found, release.version)
    if found.is_dead or found.fires_nowhere:
        raise typer.Exit(1)
