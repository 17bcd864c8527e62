"""How the scaffolding commands show and write files: the listing, the dry run, the question before an overwrite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sglang_plug.report.escape import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

PANEL = "Writing"
Output = Annotated[Path, typer.Option(help="The folder to make the package's folder in.", metavar="DIR", rich_help_panel=PANEL)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be written; write nothing.", rich_help_panel=PANEL)]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Make it against advice; write over files, and into a folder that is not empty. What would change is listed first.",
        rich_help_panel=PANEL,
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


def deliver(files: Mapping[str, str], target: Path, *, dry_run: bool, force: bool, ask: bool, edits: Collection[str] | None = None) -> bool:
    """Write `files` at `target`, or only show them; tell what happened. Return True when they were written.

    Args:
        files: path below the target, to text.
        target: the folder.
        dry_run: only show.
        force: write over files that differ, and into a folder that is not empty.
        ask: ask before anything is written over.
        edits: the folder is somebody's project: its other files are no obstacle, and of its files these gain lines.

    Raises:
        ScaffoldError: something is in the way; nothing was written.
        typer.Abort: the user said no.
    """
    from sglang_plug.scaffold import tree

    differing = [name for name in tree.plan(files, target).change if name not in (edits or ())]
    if dry_run:
        _show({name: text for name, text in files.items() if name not in (edits or ())}, target)
        _list(differing, f"these files in {target} are there and differ: only --force writes over them")
        return False
    if force:
        _list(differing, f"these files in {target} will be overwritten")
        if differing and ask and not typer.confirm("Overwrite them?", default=False, err=True):
            raise typer.Abort
    done = tree.write(files, target, force=force, edits=edits)
    typer.echo(visible(str(target)))
    for name in files:
        mark = "=" if name in done.keep else "~" if name in done.change else "+"
        typer.echo(f"  {mark} {name}")
    return True


def _list(names: list[str], heading: str) -> None:
    if names:
        typer.echo("\n  ".join([f"{heading}:", *names]), err=True)


def _show(files: Mapping[str, str], target: Path) -> None:
    typer.echo(f"{visible(str(target))}/")
    for name in files:
        typer.echo(f"  {name}")
    for name, text in files.items():
        typer.echo(f"\n--- {visible(str(target / name))}")
        typer.echo(text, nl=not text.endswith("\n"))


def show_difference(path: Path, before: str, after: str) -> None:
    """Print what would change in one file, as a unified diff."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    typer.echo("\n" + "\n".join(lines))
