"""How the scaffolding commands show and write files: the listing, the dry run, the question before an overwrite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_plug.scaffold.tree import Plan

PANEL = "Writing"
Output = Annotated[Path, typer.Option(help="The folder to make the package's folder in.", metavar="DIR", rich_help_panel=PANEL)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be written; write nothing.", rich_help_panel=PANEL)]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Write over files, and into a folder that is not empty. What would change is listed first.", rich_help_panel=PANEL
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; take the defaults.", rich_help_panel=PANEL)]
Release = Annotated[
    str | None,
    typer.Option(
        "--sglang",
        help="The SGLang release that is followed. [default: the installed one, else the newest known]",
        metavar="VERSION",
        rich_help_panel="SGLang",
        show_default=False,
    ),
]


def deliver(files: Mapping[str, str], target: Path, *, dry_run: bool, force: bool, ask: bool, beside: bool = False) -> bool:
    """Write `files` at `target`, or only show them; tell what happened. Return True when they were written.

    Args:
        files: path below the target, to text.
        target: the folder.
        dry_run: only show.
        force: write over files that differ, and into a folder that is not empty.
        ask: ask before anything is written over.
        beside: the folder is somebody's project, so other files in it are no obstacle.

    Raises:
        ScaffoldError: something is in the way; nothing was written.
        typer.Abort: the user said no.
    """
    from sglang_plug.scaffold import tree

    if dry_run:
        _show(files, target)
        return False
    if force:
        planned = tree.plan(files, target)
        _list_changes(planned)
        if planned.change and ask and not typer.confirm("Overwrite them?", default=False, err=True):
            raise typer.Abort
    done = tree.write(files, target, force=force, beside=beside)
    typer.echo(target)
    for name in files:
        mark = "=" if name in done.keep else "~" if name in done.change else "+"
        typer.echo(f"  {mark} {name}")
    return True


def _list_changes(planned: Plan) -> None:
    if planned.change:
        typer.echo(f"these files in {planned.target} will be overwritten:", err=True)
        for name in planned.change:
            typer.echo(f"  {name}", err=True)


def _show(files: Mapping[str, str], target: Path) -> None:
    typer.echo(f"{target}/")
    for name in files:
        typer.echo(f"  {name}")
    for name, text in files.items():
        typer.echo(f"\n--- {target / name}")
        typer.echo(text, nl=not text.endswith("\n"))


def show_difference(path: Path, before: str, after: str) -> None:
    """Print what would change in one file, as a unified diff."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    typer.echo("\n" + "\n".join(lines))
