"""`sglang-plug check`: lint a plugin's source against SGLang releases, without installing any."""

from __future__ import annotations

import atexit
import gc
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from sglang_plug.cli import options
from sglang_plug.cli.page import Page
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report
    from sglang_plug.checks.source.project import Project
    from sglang_plug.checks.source.run import CheckReport

app = typer.Typer(rich_markup_mode=None, add_completion=False)
AGAINST = "Against what"
CHANGES = "Changes"


class Format(StrEnum):
    """How the answer is written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    MARKDOWN = "markdown"
    GITHUB = "github"


PathArgument = Annotated[Path, typer.Argument(help="The plugin's folder, an unpacked wheel, or one file.", metavar="PATH")]
Releases = Annotated[
    list[str] | None,
    typer.Option(
        "--sglang",
        help="`0.5.21`, `>=0.5.17`, `all`, `newest`; repeatable. [default: what the plugin requires, else what is installed]",
        metavar="SPEC",
        rich_help_panel=AGAINST,
        show_default=False,
    ),
]
RuntimeOption = Annotated[options.Runtime, typer.Option("--runtime", help=options.RUNTIME_HELP, rich_help_panel=AGAINST)]
Baseline = Annotated[
    Path | None, typer.Option(help="Leave out what this file holds.", metavar="FILE", rich_help_panel=options.RULES, show_default=False)
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(help="Write today's findings there and end.", metavar="FILE", rich_help_panel=options.RULES, show_default=False),
]
Fix = Annotated[bool, typer.Option("--fix", help="Put right what is safe: shows a diff, asks, then writes.", rich_help_panel=CHANGES)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="With --fix: do not ask.", rich_help_panel=CHANGES)]


@app.command(cls=Page)
def check(
    path: PathArgument = Path(),
    *,
    sglang: Releases = None,
    runtime: RuntimeOption = options.Runtime.ALL,
    select: options.Select = None,
    ignore: options.Ignore = None,
    strict: options.Strict = None,
    baseline: Baseline = None,
    write_baseline: WriteBaseline = None,
    fix: Fix = False,
    yes: Yes = False,
    output_format: Annotated[Format, options.FORMAT] = Format.TEXT,
    output: options.Output = None,
) -> None:
    """Lint a plugin's source against SGLang releases, without installing any.

    Nothing is imported: imports of SGLang, hook targets and signatures, platform overrides, activation, entry points and packaging are
    read from the source and compared with the catalogue. `# sglang-plug: ignore[CODE]` silences a line; defaults can stand in
    `[tool.sglang-plug]` of the plugin's pyproject.toml (`sglang`, `select`, `ignore`, `strict`).

    Examples:

    \b
      sglang-plug check
      sglang-plug check ./my_plugin --sglang ">=0.5.17"
      sglang-plug check . --sglang all --format sarif --output check.sarif

    Exit status: 0 no errors (with --strict: no warnings either), 1 findings, 2 wrong usage.
    """
    from sglang_plug.checks.selection import codes
    from sglang_plug.checks.source.baseline import without_known
    from sglang_plug.checks.source.project import read_project
    from sglang_plug.checks.source.run import check as examine
    from sglang_plug.checks.source.run import kept
    from sglang_plug.checks.source.scope import asked_releases, own_releases
    from sglang_plug.report.escape import visible

    atexit.register(gc.freeze)  # the process ends: nothing is gained by walking a plugin's syntax trees once more
    project = read_project(path)
    table = project.declared
    defaults = table.tool
    specifiers = sglang or _words(defaults.get("sglang"))
    releases, why = (asked_releases(specifiers), "asked for") if specifiers else own_releases(table)
    wanted, unwanted = codes(select or _words(defaults.get("select"))), codes(ignore or _words(defaults.get("ignore")))
    report = kept(examine(path, releases, runtimes=runtime.names, project=project), wanted, unwanted)
    if write_baseline is not None:
        _write_baseline(report, write_baseline)
        return
    if baseline is not None:
        report, gone = without_known(report, baseline)
        if gone:
            typer.echo(
                f"note: {gone} of {visible(str(baseline))} are gone; to write it again: --write-baseline {visible(str(baseline))}", err=True
            )
    if not specifiers and output_format is Format.TEXT:
        typer.echo(f"checking against {', '.join(releases) if len(releases) < 4 else f'{releases[0]} to {releases[-1]}'}: {why}", err=True)
    _answer(report, output_format, output)
    if fix:
        _fix(project, report, yes=yes)
    fails = bool(defaults.get("strict")) if strict is None else strict
    if report.failed(strict=fails):
        raise typer.Exit(1)


def _write_baseline(report: CheckReport, path: Path) -> None:
    from sglang_plug.checks.source.baseline import spell
    from sglang_plug.report.findings import save

    save(spell(report.findings), path)
    typer.echo(f"{counted(len(report.findings), 'finding')} written to {path}", err=True)


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list) else []


def _answer(report: CheckReport, kind: Format, output: Path | None) -> None:
    from sglang_plug.report import check_json, check_text, findings, findings_text

    if kind is Format.TEXT and output is None:
        findings_text.write(check_text.lines(report))
        return
    if kind is Format.TEXT:
        text = findings_text.plain(check_text.lines(report))
    elif kind is Format.JSON:
        text = check_json.render(report)
    else:
        text = findings.render(cast("Report", report), kind.value)  # the same face: host, entry_points, findings, summary
    if output is None:
        sys.stdout.write(text)
    else:
        findings.save(text, output)


def _fix(project: Project, report: CheckReport, *, yes: bool) -> None:
    from sglang_plug.checks.source.fixes import changes
    from sglang_plug.report.escape import visible

    found = changes(project, report.findings, report.releases)
    if not found:
        typer.echo("nothing here can be put right by a machine", err=True)
        return
    for change in found:
        typer.echo(visible(change.diff, keep_newlines=True), err=True)
    if not yes and not sys.stdin.isatty():
        typer.echo("nothing was written; add --yes to write it", err=True)
        return
    if yes or typer.confirm(f"Write {counted(len(found), 'file')}?", default=False, err=True):
        for change in found:
            change.write()
            typer.echo(f"wrote {visible(change.shown)}", err=True)
