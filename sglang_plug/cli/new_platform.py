"""`sglang-plug new-platform NAME`: questions in, a package out."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sglang_plug.cli.page import Page
from sglang_plug.cli.writing import DryRun, Force, Output, Release, Yes, deliver

if TYPE_CHECKING:
    from sglang_plug.scaffold.answers import PlatformAnswers

app = typer.Typer(rich_markup_mode=None, add_completion=False)


PANEL = "The package"


class Runtime(StrEnum):
    """Which engine the platform serves."""

    SRT = "srt"
    DIFFUSION = "diffusion"
    BOTH = "both"


PackageName = Annotated[str | None, typer.Argument(help="The package's name, such as my-chip.", metavar="NAME", show_default=False)]
RuntimeOption = Annotated[
    Runtime | None,
    typer.Option(
        help="LLM serving (srt), image and video generation (diffusion), or both. [default: srt]", rich_help_panel=PANEL, show_default=False
    ),
]
DeviceType = Annotated[
    str | None,
    typer.Option(
        help="The torch device type; cpu serves at once. [default: cpu]", metavar="TYPE", rich_help_panel=PANEL, show_default=False
    ),
]
Hooks = Annotated[
    bool | None, typer.Option("--hooks/--no-hooks", help="Add a hook plugin. [default: hooks]", rich_help_panel=PANEL, show_default=False)
]


@app.command(cls=Page)
def new_platform(
    name: PackageName = None,
    *,
    runtime: RuntimeOption = None,
    device_type: DeviceType = None,
    hooks: Hooks = None,
    sglang: Release = None,
    output: Output = Path(),
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Make a hardware platform package that installs, passes its own tests and serves.

    The device is the processor until you replace the lines marked VENDOR, so it serves on SGLang and on the stand-in as it is.
    Questions are asked only on a terminal.

    Examples:

    \b
      sglang-plug new-platform my-chip
      sglang-plug new-platform my-chip --runtime both --device-type mychip
      sglang-plug new-platform my-chip --dry-run

    Exit status: 0 made, 1 refused (nothing was written), 2 wrong usage.
    """
    from sglang_plug.errors import UsageError
    from sglang_plug.scaffold import platform, releases
    from sglang_plug.scaffold.answers import PlatformAnswers, judge_device_type, judge_name
    from sglang_plug.scaffold.occupied import refuse_taken

    ask = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if name is None:
        if not ask:
            raise UsageError("a name is missing", hint="`sglang-plug new-platform my-chip`")
        name = typer.prompt("Name of the package", err=True)
    judged = judge_name(name)
    if not force:
        refuse_taken(judged, output / judged.distribution, command="new-platform")
    if runtime is None:
        runtime = _runtime(typer.prompt("Runtime (srt, diffusion, both)", default="srt", err=True)) if ask else Runtime.SRT
    if device_type is None:
        device_type = typer.prompt("Torch device type (cpu serves at once)", default="cpu", err=True) if ask else "cpu"
    if hooks is None:
        hooks = typer.confirm("With a hook plugin?", default=True, err=True) if ask else True
    release, note = releases.choose(sglang)
    answers = PlatformAnswers(
        name=judged,
        srt=runtime is not Runtime.DIFFUSION,
        diffusion=runtime is not Runtime.SRT,
        device_type=judge_device_type(device_type),
        hooks=hooks,
        release=release,
    )
    if note:
        typer.echo(f"note: {note}", err=True)
    if extension := platform.extension_of(answers.device_type):
        typer.echo(
            f"note: torch itself has no device {answers.device_type!r}: the platform is active where {extension} can be imported", err=True
        )
    files = platform.files(answers)
    target = output / judged.distribution
    if deliver(files, target, dry_run=dry_run, force=force, ask=ask):
        _next_steps(target, answers)


def _runtime(answer: str) -> Runtime:
    from sglang_plug.errors import UsageError

    try:
        return Runtime(answer.strip().lower())
    except ValueError:
        raise UsageError("no such runtime", subject=answer, hint="answer srt, diffusion or both") from None


def _next_steps(target: Path, answers: PlatformAnswers) -> None:
    import shlex

    package = answers.name.package
    typer.echo("\nnext:", err=True)
    typer.echo(f"  pip install -e {shlex.quote(f'{target}[test]')}", err=True)
    typer.echo("  sglang-plug doctor", err=True)
    if answers.srt:
        typer.echo(f"  sglang-plug serve --platform {package}", err=True)
    if answers.diffusion:
        typer.echo(f"  sglang-plug serve --runtime diffusion --platform {package}", err=True)
    typer.echo(f"  grep -rn VENDOR {shlex.quote(str(target / package))}    # the lines that are yours to replace", err=True)
