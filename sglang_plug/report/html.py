"""Findings as one self-contained HTML page: no script, no font, no link that loads anything."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from sglang_plug import __version__
from sglang_plug.checks.model import Finding, Level
from sglang_plug.checks.table import rule
from sglang_plug.report.escape import visible
from sglang_plug.report.findings_text import WORDS, platform_of, what_became
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_plug.checks.doctor import Report

_TITLES = {Level.ERROR: "Errors", Level.WARNING: "Warnings", Level.INFO: "Notes"}
#: The browser's own word that the page loads nothing and runs nothing, whatever a plugin's message holds.
_POLICY = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
_STYLE = """
:root { color-scheme: light dark; --error: #b3261e; --warning: #8a5a00; --info: #2a5db0; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
code, pre, td { font-family: ui-monospace, monospace; font-size: .9em; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
article { border-left: 4px solid var(--info); padding: .2rem 1rem; margin: 1rem 0; }
article.error { border-color: var(--error); } article.warning { border-color: var(--warning); }
article h3 { font-size: 1rem; margin: .2rem 0; } dl { margin: .3rem 0; } dt { float: left; clear: left; width: 4rem; opacity: .7; }
dd { margin: 0 0 0 4.5rem; } pre { overflow: auto; white-space: pre-wrap; } .failed, .refused { color: var(--error); }
.chosen, .active { font-weight: bold; } label { margin-right: 1rem; white-space: nowrap; } summary { cursor: pointer; }
.scroll { overflow-x: auto; } th, .trail td:not(:last-child), .points td:nth-child(-n+2) { overflow-wrap: normal; }
.facts td:first-child { width: 6rem; overflow-wrap: normal; } details { margin: .6rem 0; } details > :not(summary) { margin-top: .3rem; }
@media (max-width: 40rem) { /* a phone: each row of a table becomes a card */
  body { margin: 1rem auto; } .points thead { display: none; }
  .trail, .points, .trail tbody, .points tbody { display: block; }
  .trail tr, .points tr { display: grid; gap: 0 .8rem; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  .trail tr { grid-template-columns: 4.5rem minmax(0, 1fr) auto; } .points tr { grid-template-columns: 4.5rem minmax(0, 1fr); }
  .trail td, .points td { border: 0; padding: 0; } .trail td:not(:last-child) { overflow-wrap: anywhere; }
  .trail td:last-child, .points td:nth-child(n+3) { grid-column: 1 / -1; } .points td:last-child { opacity: .75; }
}
body:has(#error:not(:checked)) .error, body:has(#warning:not(:checked)) .warning, body:has(#info:not(:checked)) .info { display: none; }
@media (prefers-color-scheme: dark) { :root { --error: #f2b8b5; --warning: #f5c56b; --info: #a8c7fa; } }
"""


def render(report: Report) -> str:
    """Return the page as text."""
    host, counts = report.host, report.summary
    told = ", ".join(counted(counts[level.value], word) for level, word in WORDS)
    title = f"sglang-plug {host.get('command', 'doctor')}: {told}"
    body = [f"<h1>{_text(title)}</h1>", *_host(report), *_entry_points(report)]
    if report.findings:
        body += ["<h2>Findings</h2>", "<p>show: " + "".join(map(_filter, Level)) + "</p>"]
    for level in Level:
        found = [finding for finding in report.findings if finding.level is level]
        if found:
            body += [f'<section class="{level.value}"><h2>{_TITLES[level]} ({len(found)})</h2>', *map(_finding, found), "</section>"]
    body.append(f"<footer><small>sglang-plug {_text(__version__)}</small></footer>")
    head = f'<meta charset="utf-8">{_POLICY}<meta name="viewport" content="width=device-width">'
    head += f"<title>{_text(title)}</title><style>{_STYLE}</style>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n' + "\n".join(body) + "\n</body></html>\n"


def _filter(level: Level) -> str:
    """A box that hides a level's findings, by style alone."""
    return f'<label><input type="checkbox" id="{level.value}" checked> {_TITLES[level].lower()}</label>'


def _host(report: Report) -> list[str]:
    host = report.host
    if "sglang" not in host:
        return []
    sglang = host["sglang"]
    engine = f"SGLang {sglang['version']}" if sglang["engine"] == "sglang" else f"no SGLang (stand-in, rules of {host['release']})"
    rows = [f"<p><code>{_text(host['python'])}</code>, Python {_text(host['version'])}, {_text(engine)}</p>"]
    for runtime, decision in host["platforms"].items():
        chosen = decision["error"] or platform_of(decision)
        rows.append(
            f"<details><summary>{_text(runtime)}: <code>{_text(chosen)}</code></summary>{_trail(decision.get('steps', ()))}</details>"
        )
    variables = " ".join(f"{name}={value}" for name, value in host.get("variables", {}).items()) or "none of SGLang's is set"
    facts = [("prefix", host["prefix"]), ("directory", host.get("cwd")), ("launch", host.get("launch")), ("variables", variables)]
    listed = "".join(f"<tr><td>{name}</td><td>{_text(value)}</td></tr>" for name, value in facts if value)
    return [*rows, f'<details><summary>environment</summary><table class="facts">{listed}</table></details>']


def _trail(steps: Iterable[dict[str, str]]) -> str:
    """The rules that were tried, in their order."""
    rows = [
        f'<tr class="{_text(step["verdict"])}">'
        + "".join(f"<td>{_text(step[key])}</td>" for key in ("rule", "subject", "verdict", "why"))
        + "</tr>"
        for step in steps
    ]
    return f'<div class="scroll"><table class="trail">{"".join(rows)}</table></div>'


def _entry_points(report: Report) -> list[str]:
    if not report.entry_points:
        return []
    rows = [f"<h2>Entry points ({len(report.entry_points)})</h2>", '<table class="points">']
    rows.append(
        "<thead><tr><th>outcome</th><th>kind</th><th>entry point</th><th>distribution</th><th>what became of it</th></tr></thead><tbody>"
    )
    for row in report.entry_points:
        cells = (
            row["outcome"],
            row["kind"],
            f"{row['name']} = {row['value']}",
            f"{row['dist']} {row['version']}",
            " ".join(what_became(row)),
        )
        mark = ' class="failed"' if row["outcome"] == "failed" else ""
        rows.append(f"<tr{mark}>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>")
    return [*rows, "</tbody></table>"]


def _finding(finding: Finding) -> str:
    spot = finding.location
    where = f"{spot.path}:{spot.line}" if spot and spot.line else spot.path if spot else None
    details = [("cause", finding.cause), ("at", where), ("hint", finding.hint)]
    listed = "".join(f"<dt>{name}</dt><dd><code>{_text(value)}</code></dd>" for name, value in details if value)
    trace = finding.data.get("traceback")
    shown = f"<details><summary>traceback</summary><pre>{_text(trace, block=True)}</pre></details>" if trace else ""
    name = f"{finding.code} {rule(finding.code).slug}"
    return f'<article class="{finding.level.value}"><h3>{_text(name)}</h3><p>{_text(finding.message)}</p><dl>{listed}</dl>{shown}</article>'


def _text(value: object, *, block: bool = False) -> str:
    return escape(visible(str(value), keep_newlines=block))
