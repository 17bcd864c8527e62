"""`sglang-plug serve`: check, launch, watch."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sglang_plug.cli.page import Page
from sglang_plug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

    from sglang_plug.launch.preflight import Preflight
    from sglang_plug.launch.session import Options

app = typer.Typer(rich_markup_mode=None, add_completion=False)
#: How like one of our options a slip is; no option of any program in SGLang comes so near.
NEAR = 0.85


class Runtime(StrEnum):
    """Which of SGLang's runtimes serves."""

    AUTO = "auto"
    SRT = "srt"
    DIFFUSION = "diffusion"


class Engine(StrEnum):
    """Which program serves."""

    AUTO = "auto"
    SGLANG = "sglang"
    STANDIN = "standin"


class Format(StrEnum):
    """How the launch is written down."""

    SHELL = "shell"
    JSON = "json"
    DOCKERFILE = "dockerfile"
    SYSTEMD = "systemd"
    KUBERNETES = "kubernetes"


Platform = Annotated[str | None, typer.Option(help="Serve on this platform plugin, or refuse.", metavar="NAME", rich_help_panel="Plugins")]
Plugins = Annotated[str | None, typer.Option(help="Load only these plugins (SGLANG_PLUGINS).", metavar="A,B", rich_help_panel="Plugins")]
RuntimeOption = Annotated[Runtime, typer.Option("--runtime", help="auto: told by the model.", rich_help_panel="Engine")]
EngineOption = Annotated[
    Engine, typer.Option("--engine", help="auto: SGLang where it is installed, else the stand-in.", rich_help_panel="Engine")
]
Python = Annotated[
    str | None, typer.Option(help="The interpreter, or the virtual environment, of the engine.", metavar="PATH", rich_help_panel="Engine")
]
NoPreflight = Annotated[bool, typer.Option("--no-preflight", help="Start without any check.", rich_help_panel="Preflight")]
Allow = Annotated[
    list[str] | None, typer.Option(help="Start in spite of this finding. Repeatable.", metavar="CODE", rich_help_panel="Preflight")
]
Fingerprint = Annotated[
    str | None,
    typer.Option(
        "--expect-fingerprint",
        help="Refuse when SGLang, plugins or variables differ from the node that printed this.",
        metavar="HASH",
        rich_help_panel="Preflight",
    ),
]
Record = Annotated[
    str | None, typer.Option(help="Write down which hooks fire, for the `hooks` command.", metavar="DIR", rich_help_panel="Launch")
]
ReadyTimeout = Annotated[
    float | None,
    typer.Option(help="Give up when no request is answered after so many seconds.", metavar="SECONDS", rich_help_panel="Launch"),
]
PrintCommand = Annotated[
    bool, typer.Option("--print-command", help="Print variables and arguments; start nothing.", rich_help_panel="Deployment")
]
FormatOption = Annotated[Format, typer.Option("--format", help="How --print-command writes them.", rich_help_panel="Deployment")]


class ServePage(Page):
    """What is not ours goes to the engine, which may ignore it: so a slip in one of our options is told, unless it stands after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        import difflib

        ours = [flag for param in self.params for flag in param.opts]
        for word in args[: args.index("--")] if "--" in args else args:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in ours and (near := difflib.get_close_matches(flag, ours, n=1, cutoff=NEAR)):
                raise UsageError(f"no such option: {flag}", hint=f"did you mean {near[0]}? What is meant for the engine goes after `--`")
        return super().parse_args(ctx, args)


@app.command(
    cls=ServePage,
    options_metavar="[OPTIONS] [[--] ENGINE ARGUMENTS...]",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(
    context: typer.Context,
    *,
    platform: Platform = None,
    plugins: Plugins = None,
    runtime: RuntimeOption = Runtime.AUTO,
    engine: EngineOption = Engine.AUTO,
    python: Python = None,
    no_preflight: NoPreflight = False,
    allow: Allow = None,
    expect_fingerprint: Fingerprint = None,
    record: Record = None,
    ready_timeout: ReadyTimeout = None,
    print_command: PrintCommand = False,
    output_format: FormatOption = Format.SHELL,
) -> None:
    """Check first, then launch SGLang (or the stand-in engine), and watch it.

    Every other argument goes to the engine untouched, after `--` or without it.

    Examples:

    \b
      sglang-plug serve --platform mydev --model-path ./model --port 30000
      sglang-plug serve --record ./run --engine standin
      sglang-plug serve --print-command --format kubernetes -- \\
        --model-path /models/llama --tp-size 8

    Exit status: the engine's own; 1 the preflight refuses, 2 wrong usage.
    """
    from sglang_plug.checks.selection import codes
    from sglang_plug.launch import preflight, supervise
    from sglang_plug.launch.arguments import EngineArguments
    from sglang_plug.launch.preflight import Request
    from sglang_plug.launch.session import Options
    from sglang_plug.probe.environment import Environment
    from sglang_plug.report.launch import Narrator

    if platform == "":
        raise UsageError("--platform names no platform", hint="leave the option out for SGLang's own choice")
    if record == "":
        raise UsageError("--record names no folder", hint="name one, or leave the option out")
    if ready_timeout is not None and not ready_timeout > 0:
        raise UsageError(f"not a time to wait: {ready_timeout:g}", subject="--ready-timeout", hint="name seconds, more than none")
    allowed = codes(allow or ())
    arguments = EngineArguments(tuple(context.args))
    if not arguments.asks_for_help:
        arguments.require_port()
        arguments.require_counts()
    request = Request(Environment.here(python), arguments.tokens, engine.value, runtime.value, platform, plugins, expect_fingerprint)
    if print_command:
        flight = preflight.skip(request) if expect_fingerprint is None else preflight.examine(request)
        if other := [finding for finding in flight.refusals(allowed) if finding.code == "SP059"]:
            Narrator().finding(other[0])
            raise typer.Exit(1)
        if record:
            Narrator().say("--record is left out: hooks are recorded where sglang-plug itself launches the engine", "yellow")
        _print(flight, output_format)
        return
    if arguments.asks_for_help:
        raise typer.Exit(supervise.run_plainly(preflight.skip(request).plan))
    options = Options(allowed, not no_preflight, Path(record) if record else None, ready_timeout)
    flight = preflight.skip(request) if no_preflight else preflight.examine(request)
    if not no_preflight and not _cleared(flight, options.allowed):
        raise typer.Exit(1)
    raise typer.Exit(_launch(flight, options))


def _print(flight: Preflight, form: Format) -> None:
    from sglang_plug.report import deployment
    from sglang_plug.report.launch import Narrator

    if flight.plan.engine == "standin" and form in {Format.DOCKERFILE, Format.SYSTEMD, Format.KUBERNETES}:
        what = "this starts the stand-in engine of this machine (see PYTHONPATH), not SGLang"
        Narrator().say(f"{what}. For SGLang: --python of an environment that has it", "yellow")
    typer.echo(deployment.render(flight.plan, form.value), nl=False)


def _cleared(flight: Preflight, allowed: Collection[str]) -> bool:
    """Show the screen; tell whether nothing forbids the start."""
    from sglang_plug.launch.processes import expected
    from sglang_plug.report.headline import headline
    from sglang_plug.report.launch import Narrator

    narrator = Narrator()
    sentence = headline(flight.survey, flight.plan.runtime).text if flight.survey is not None else None
    narrator.screen(flight, expected(flight.plan), sentence)
    refusals = flight.refusals(allowed)
    if refusals:
        codes = sorted({finding.code for finding in refusals})
        anyway = "" if "SP050" in codes else f". To start all the same: {' '.join(f'--allow {code}' for code in codes)}, or --no-preflight"
        narrator.say(f"not started: {', '.join(codes)}{anyway}", "bold red")
    return not refusals


def _launch(flight: Preflight, options: Options) -> int:
    """Run the engine to its end and return its status."""
    from sglang_plug.launch import session
    from sglang_plug.report.launch import Narrator

    narrator = Narrator()
    outcome = session.run(flight, narrator, options, out=sys.stdout.buffer, err=sys.stderr.buffer)
    if outcome.obituary is not None:
        narrator.died(outcome.obituary)
    return outcome.status
