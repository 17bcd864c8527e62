"""`sglang-plug new-hook [NAME] --target …`: a hook plugin of its own, or one more hook for a package that exists."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sglang_plug.cli.page import Page
from sglang_plug.cli.writing import PANEL as PANEL_WRITING
from sglang_plug.cli.writing import DryRun, Force, Output, Release, Yes, deliver, show_difference

if TYPE_CHECKING:
    from sglang_plug.scaffold.hook import Addition, HookAnswers

app = typer.Typer(rich_markup_mode=None, add_completion=False)


PANEL = "The hook"


class Type(StrEnum):
    """How the hook meets its target."""

    BEFORE = "before"
    AFTER = "after"
    AROUND = "around"
    REPLACE = "replace"


class Runtime(StrEnum):
    """Whose registry takes the hook."""

    SRT = "srt"
    DIFFUSION = "diffusion"


HookName = Annotated[
    str | None,
    typer.Argument(
        help="The package's name; with --into the module's. [default with --into: from the target]", metavar="NAME", show_default=False
    ),
]
Target = Annotated[
    str | None, typer.Option(help="What to hook: package.module.Class.method.", metavar="DOTTED", rich_help_panel=PANEL, show_default=False)
]
Kind = Annotated[Type, typer.Option("--type", help="How the hook meets its target.", rich_help_panel=PANEL)]
RuntimeOption = Annotated[
    Runtime | None, typer.Option(help="Whose registry takes it. [default: the target's]", rich_help_panel=PANEL, show_default=False)
]
Into = Annotated[
    Path | None,
    typer.Option(
        help="A project to add the hook to; of its files, only pyproject.toml gains lines.",
        metavar="DIR",
        rich_help_panel=PANEL_WRITING,
        show_default=False,
    ),
]


@app.command(cls=Page)
def new_hook(
    name: HookName = None,
    *,
    target: Target = None,
    kind: Kind = Type.AROUND,
    runtime: RuntimeOption = None,
    sglang: Release = None,
    into: Into = None,
    output: Output = Path(),
    dry_run: DryRun = False,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Make a hook whose signature is the target's own.

    As it comes, the hook changes nothing: edit its body. A target that is unknown, or on which no hook has an effect, is refused.

    Examples:

    \b
      sglang-plug new-hook my-metrics \\
        --target sglang.srt.managers.scheduler.Scheduler.run_batch
      sglang-plug new-hook my-policy --type before \\
        --target sglang.srt.managers.scheduler.Scheduler.get_next_batch_to_run
      sglang-plug new-hook --into ./my-chip --type after \\
        --target sglang.srt.managers.tp_worker.TpModelWorker.__init__

    Exit status: 0 made, 1 refused (nothing was written), 2 wrong usage.
    """
    from sglang_plug.errors import UsageError
    from sglang_plug.scaffold import hook, releases
    from sglang_plug.scaffold.answers import judge_name
    from sglang_plug.scaffold.occupied import refuse_taken

    ask = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if target is None:
        if not ask:
            raise UsageError("a target is missing", hint="--target sglang.srt.managers.scheduler.Scheduler.run_batch")
        target = typer.prompt("Target (dotted)", err=True)
    if name is None and into is None:
        if not ask:
            raise UsageError("a name is missing", hint="`sglang-plug new-hook my-hook --target …`, or --into an existing project")
        name = typer.prompt("Name of the package", err=True)
    if into is not None and output != Path():
        raise UsageError("--into and --output exclude each other", hint="--into adds to a project where it is")
    judged = judge_name(name, command="new-hook") if into is None and name is not None else None
    if judged is not None and not force:
        refuse_taken(judged, output / judged.distribution, command="new-hook")
    release, note = releases.choose(sglang)
    if note:
        typer.echo(f"note: {note}", err=True)
    answers = hook.judge_target(target, kind.value, runtime.value if runtime else None, release)
    if not force:
        hook.refuse_dead(answers)
    added = hook.addition(answers, into, name) if into is not None else None
    for warning in hook.warnings(answers):
        typer.echo(f"warning: {warning}", err=True)
    if added is not None:
        _add(added, answers, dry_run=dry_run, force=force, ask=ask)
    elif judged is not None:
        _make(hook.package(answers, judged), output / judged.distribution, dry_run=dry_run, force=force, ask=ask)


def _make(files: dict[str, str], target: Path, *, dry_run: bool, force: bool, ask: bool) -> None:
    import shlex

    if deliver(files, target, dry_run=dry_run, force=force, ask=ask):
        typer.echo("\nnext:", err=True)
        typer.echo(f"  pip install -e {shlex.quote(f'{target}[test]')}", err=True)
        typer.echo("  sglang-plug doctor", err=True)


def _add(added: Addition, answers: HookAnswers, *, dry_run: bool, force: bool, ask: bool) -> None:
    project = added.project
    files = {**added.files, project.path.name: added.text}
    written = deliver(files, project.path.parent, dry_run=dry_run, force=force, ask=ask, edits=[project.path.name])
    if not written:
        show_difference(project.path, project.text, added.text)
        return
    typer.echo(f"\nnext: install the project again, so that {added.entry_point} is found; then `sglang-plug doctor`", err=True)
    typer.echo(f"  the hook is {answers.function} on {answers.target}", err=True)
