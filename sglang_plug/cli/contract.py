"""`sglang-plug contract …`: what each SGLang release expects of a plugin, and what can be hooked."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sglang_plug.cli import options
from sglang_plug.cli.options import TextOrJson
from sglang_plug.cli.page import GroupPage, Page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_plug.contract.catalogue import Release as Contract
    from sglang_plug.errors import CatalogueError
    from sglang_plug.report.findings_text import Line

HELP = """Show what each SGLang release expects of a plugin, and what can be hooked.

Examples:

\b
  sglang-plug contract show --method get_device
  sglang-plug contract diff 0.5.21 0.5.22
  sglang-plug contract targets run_batch

Exit status: 0 shown, 1 no such release, member or target, 2 wrong usage.
"""

app = typer.Typer(
    cls=GroupPage,
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    help=HELP,
)


WHAT = "What"
RuntimeOption = Annotated[options.Runtime, typer.Option("--runtime", help=options.RUNTIME_HELP, rich_help_panel=WHAT)]
Method = Annotated[
    str | None, typer.Option(help="One member's history over all releases.", metavar="NAME", rich_help_panel=WHAT, show_default=False)
]
Release = Annotated[str | None, typer.Argument(help="A release. [default: the newest known]", metavar="VERSION", show_default=False)]
Platform = Annotated[bool, typer.Option("--platform", help="The platform contract (the default).", rich_help_panel=WHAT)]
Targets = Annotated[
    str | None, typer.Option(help="What can be hooked, by a pattern.", metavar="PATTERN", rich_help_panel=WHAT, show_default=False)
]
Pattern = Annotated[str, typer.Argument(help="A dotted name, `*` for any part; a bare word is looked for everywhere.", metavar="PATTERN")]
OfRelease = Annotated[
    str | None,
    typer.Option("--sglang", help="A release. [default: the newest known]", metavar="VERSION", rich_help_panel=WHAT, show_default=False),
]
Limit = Annotated[int, typer.Option(help="Show no more than so many.", min=1, metavar="N", rich_help_panel=options.ANSWER)]
Sources = Annotated[list[str], typer.Argument(help="Versions (downloaded with pip), wheels, or folders.", metavar="VERSION|WHEEL|PATH")]
Called = Annotated[
    str | None,
    typer.Option("--release", help="What to call a source that does not say.", metavar="VERSION", rich_help_panel=WHAT, show_default=False),
]
CatalogueFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="One file for all sources. [default: one each, in the user's cache]",
        metavar="FILE",
        rich_help_panel=options.ANSWER,
        show_default=False,
    ),
]


@app.command(cls=Page)
def show(
    version: Release = None,
    *,
    method: Method = None,
    runtime: RuntimeOption = options.Runtime.ALL,
    output_format: options.TextOrJsonOption = TextOrJson.TEXT,
) -> None:
    """Show what a release expects of a platform class.

    The runtime's processes are listed too, and in which of them plugins are loaded.

    Examples:

    \b
      sglang-plug contract show
      sglang-plug contract show 0.5.21 --runtime srt
      sglang-plug contract show --method get_device

    Exit status: 0 shown, 1 no such release or member, 2 wrong usage.
    """
    from sglang_plug.contract import catalogue
    from sglang_plug.errors import CatalogueError
    from sglang_plug.report import contract as words
    from sglang_plug.report import findings_text

    runtimes = runtime.names
    if method is not None:
        versions = (_known(version),) if version else catalogue.releases()
        found = [contract for name in runtimes for release in versions if (contract := catalogue.load(release).platform_contract(name))]
        if not any(method in contract.members for contract in found):
            names = {name for contract in found for name in contract.members}
            near = difflib.get_close_matches(method, sorted(names), n=2)
            meant = f"did you mean {' or '.join(near)}?" if near else "see `sglang-plug contract show`"
            raise CatalogueError("no platform class has this member", subject=method, hint=meant)
        found = [contract for contract in found if any(method in other.members for other in found if other.runtime == contract.runtime)]
        history = [{"release": c.release, "runtime": c.runtime, "member": c.members.get(method)} for c in found]
        _answer(output_format, words.member_lines(found, method), words.dumps(method=method, history=history))
        return
    release = catalogue.load(_known(version) if version else catalogue.newest())
    contracts = [contract for name in runtimes if (contract := release.platform_contract(name))]
    lines: list[Line] = [] if contracts else [findings_text.Line(f"SGLang {release.version} has no platform class to derive from")]
    for contract in contracts:
        lines += [*words.platform_lines(contract, release.processes(contract.runtime)), findings_text.Line("")]
    processes = {contract.runtime: release.processes(contract.runtime) for contract in contracts}
    text = words.dumps(release=release.version, contracts=contracts, processes=processes, environment=sorted(release.environment))
    _answer(output_format, lines, text)


@app.command(cls=Page)
def diff(
    old: Annotated[str, typer.Argument(help="The older release.", metavar="OLD")],
    new: Annotated[str, typer.Argument(help="The newer release.", metavar="NEW")],
    *,
    platform: Platform = False,
    targets: Targets = None,
    runtime: RuntimeOption = options.Runtime.ALL,
    output_format: options.TextOrJsonOption = TextOrJson.TEXT,
) -> None:
    """Show what changed between two releases, and what to do.

    Examples:

    \b
      sglang-plug contract diff 0.5.21 0.5.22
      sglang-plug contract diff 0.5.17 0.5.23 \\
        --targets "sglang.srt.managers.scheduler.Scheduler.*"
      sglang-plug contract diff 0.5.22 0.5.23 --platform --format json

    Exit status: 0 shown, 1 no such release or nothing matches, 2 wrong usage.
    """
    from sglang_plug.contract import catalogue
    from sglang_plug.contract.diff import compare_names, compare_platforms, matching_names
    from sglang_plug.report import contract as words

    before, after = catalogue.load(_known(old)), catalogue.load(_known(new))
    if catalogue.releases().index(before.version) > catalogue.releases().index(after.version):
        typer.echo(f"note: {before.version} is newer than {after.version}: this is the way back", err=True)
    runtimes = runtime.names
    groups = {f"{name} platform": compare_platforms(before, after, name) for name in runtimes} if platform or targets is None else {}
    if targets is not None:
        groups[targets] = compare_names(before, after, targets)
        if not groups[targets] and not any(any(matching_names(page, targets)) for page in (before, after)):
            raise _nothing_to_hook(after, targets, before)
    lines = words.difference_lines(before.version, after.version, groups)
    _answer(output_format, lines, words.dumps(old=before.version, new=after.version, changes=groups))


@app.command(cls=Page)
def targets(
    pattern: Pattern,
    *,
    sglang: OfRelease = None,
    limit: Limit = 200,
    output_format: options.TextOrJsonOption = TextOrJson.TEXT,
) -> None:
    """Show what can be hooked, and in which processes it runs.

    Each target is told with its kind, its signature, and since which release it is there.

    Examples:

    \b
      sglang-plug contract targets \\
        sglang.srt.managers.scheduler.Scheduler.run_batch
      sglang-plug contract targets "sglang.srt.managers.*.process_batch_result"
      sglang-plug contract targets all_reduce --sglang 0.5.21

    Exit status: 0 shown, 1 no such release or nothing matches, 2 wrong usage.
    """
    from sglang_plug.contract import catalogue
    from sglang_plug.contract.targets import targets as matching
    from sglang_plug.report import contract as words

    release = catalogue.load(_known(sglang) if sglang else catalogue.newest())
    found, total = matching(release, pattern, limit=limit)
    if not found:
        raise _nothing_to_hook(release, pattern)
    _answer(output_format, words.target_lines(release.version, found, total), words.dumps(release=release.version, targets=found))
    if total > len(found) and output_format is TextOrJson.JSON:
        typer.echo(f"note: {len(found)} of {total} targets; more with --limit {total}", err=True)


def _nothing_to_hook(release: Contract, pattern: str, *others: Contract) -> CatalogueError:
    """Return the error of a pattern that no hookable name of a release (or of the others) fits: with what may be meant."""
    from sglang_plug.core.words import a
    from sglang_plug.errors import CatalogueError

    cause = f"in SGLang {' or '.join(page.version for page in (*others, release))}"
    if (there := release.find(pattern)) is not None:
        return CatalogueError(f"{a(there.label)} cannot be hooked", subject=pattern, cause=cause, hint="hook what uses it")
    fixed, star, _ = pattern.partition(".*")
    near = [f"{name}{star}" for name in release.near(fixed)] if release.find(fixed) is None else []
    hint = f"look at {' or '.join(near)}" if near else "use `*` for any part of a name"
    return CatalogueError("nothing that can be hooked matches", subject=pattern, cause=cause, hint=hint)


@app.command(cls=Page)
def build(
    sources: Sources,
    *,
    release: Called = None,
    output: CatalogueFile = None,
) -> None:
    """Add releases to the catalogue, from their source.

    Nothing is imported.

    Examples:

    \b
      sglang-plug contract build 0.5.24
      sglang-plug contract build sglang-0.5.24-py3-none-any.whl
      sglang-plug contract build ~/src/sglang --release 0.5.24.dev1

    Exit status: 0 added, 1 a source cannot be read, 2 wrong usage.
    """
    from sglang_plug.contract import catalogue
    from sglang_plug.contract.build import build as make
    from sglang_plug.contract.build import build_into
    from sglang_plug.errors import UsageError

    def progress(line: str) -> None:
        typer.echo(line, err=True)

    if output is not None:
        if output.is_dir():
            raise UsageError("this is a folder", subject=str(output), hint=f"give --output a file: {output / 'catalogue.zip'}")
        built = make(sources, output, release=release, progress=progress)
        typer.echo(f"{output}: {', '.join(built)}")
        return
    for source in sources:
        path = build_into(catalogue.cache_folder(), source, release=release, progress=progress)
        typer.echo(path)
    catalogue.forget()


@app.command(cls=Page)
def releases(*, output_format: options.TextOrJsonOption = TextOrJson.TEXT) -> None:
    """List the releases that the catalogue knows, oldest first.

    Examples:

    \b
      sglang-plug contract releases
      sglang-plug contract releases --format json
      sglang-plug contract releases | tail -1

    Exit status: 0 listed, 2 wrong usage.
    """
    from sglang_plug.contract import catalogue
    from sglang_plug.report import contract as words
    from sglang_plug.report import findings_text

    known = catalogue.releases()
    _answer(output_format, [findings_text.Line(version) for version in known], words.dumps(releases=known))


def _known(version: str) -> str:
    """Return the known release that `version` names; where only a suffix differs, say so, and refuse any other."""
    from sglang_plug.contract import catalogue
    from sglang_plug.report.escape import visible

    release = catalogue.named(version)
    if release != version:
        asked = visible(version)
        typer.echo(f"note: {asked} is not in the catalogue; this is {release}. To add it: sglang-plug contract build {asked}", err=True)
    return release


def _answer(kind: TextOrJson, lines: Iterable[Line], text: str) -> None:
    from sglang_plug.report import findings_text

    if kind is TextOrJson.JSON:
        sys.stdout.write(text)
    else:
        findings_text.write(lines)
