"""Writes the reference pages that are read off the tool itself. Run: python docs/make_reference.py [--check]."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ |= {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"}

import typer

from sglang_plug.checks.table import FAMILIES, RULES
from sglang_plug.cli.app import COMMANDS
from sglang_plug.cli.app import app as root
from sglang_plug.contract.catalogue import load, releases

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- written by docs/make_reference.py -->\n"


def commands() -> str:
    """Return the help pages of all commands as one page."""
    group: Any = typer.main.get_command(root)
    parts = [
        NOTE,
        "# Commands\n",
        "Exit statuses are the same everywhere: 0 clean, 1 findings or a user's error, 2 wrong usage, 3 a defect of ",
    ]
    parts.append("sglang-plug (with a log file), 130 interrupted. stdout is the answer, stderr everything else. `NO_COLOR` is respected.\n")
    for name in COMMANDS:
        command = group.get_command(None, name)
        parts += _page(command, name)
        for word, inner in getattr(command, "commands", {}).items():
            parts += _page(inner, f"{name} {word}")
    return "\n".join(parts)


def _page(command: Any, name: str) -> list[str]:
    context = command.make_context(f"sglang-plug {name}", [], resilient_parsing=True)
    text = command.get_help(context).rstrip()
    return [f"## {name}\n", f"```text\n{text}\n```\n"]


def rules() -> str:
    """Return the table of all rules, by family."""
    lines = [
        NOTE,
        "# Rules\n",
        "`sglang-plug explain CODE` prints a rule's page. The level is the usual one; the runtime and an explicit selection may",
    ]
    lines.append("make it milder or harder.\n")
    family = ""
    for rule in RULES:
        if rule.code[2] != family:
            family = rule.code[2]
            lines += [f"\n## SP{family}xx: {FAMILIES[family]}\n", "| rule | name | level | what |", "|---|---|---|---|"]
        lines.append(f"| [{rule.code}](../rules/{rule.code}.md) | {rule.slug} | {rule.level.value} | {_cell(rule.summary)} |")
    return "\n".join(lines) + "\n"


def contracts() -> str:
    """Return what each release expects of a platform: one table a runtime, one column a release that changed something."""
    lines = [NOTE, "# The platform contract, release by release\n"]
    lines += [
        "How many places of SGLang's core use a member of the platform; `raises` where the base class refuses, `–` where the",
        "release has no such member. A member that is used nowhere has no effect when it is overridden.",
        "`sglang-plug contract show --method NAME` lists the places.\n",
    ]
    versions = [version for version in releases() if "post" not in version]
    for runtime, title in (("srt", "SRT"), ("diffusion", "Diffusion")):
        tables = {version: load(version).platform_contract(runtime) for version in versions}
        known = {version: table for version, table in tables.items() if table is not None and table.accepts_plugins}
        names = sorted({name for table in known.values() for name in table.members if not name.startswith("_")})
        lines += [f"\n## {title}\n", f"| member | {' | '.join(known)} |", "|---|" + "---|" * len(known)]
        lines += [f"| `{name}` | {' | '.join(_use(table.members.get(name)) for table in known.values())} |" for name in names]
    return "\n".join(lines) + "\n"


def _use(member: Any) -> str:
    if member is None:
        return "–"
    return f"{member.uses}{' raises' if member.raises else ''}"


def formats() -> str:
    """Return the page of JSON answers and their schemas."""
    lines = [
        NOTE,
        "# JSON answers\n",
        'Every command that answers with `--format json` writes one document with `"schema": 1`. New keys may come without a new',
    ]
    lines += ["number; none goes or changes its meaning. Names from outside are as they were read: escape them before you print them.\n"]
    lines += ["| answer of | schema |", "|---|---|"]
    for path in sorted((REFERENCE / "schemas").glob("*.schema.json")):
        lines.append(f"| `{json.loads(path.read_text())['title']}` | [{path.name}](schemas/{path.name}) |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


PAGES = {"commands.md": commands, "rules.md": rules, "contracts.md": contracts, "json.md": formats}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a page is not what the tool says")
    check = parser.parse_args().check
    stale = []
    for name, make in PAGES.items():
        path, text = REFERENCE / name, make()
        if check and (not path.exists() or path.read_text() != text):
            stale.append(name)
        elif not check:
            path.write_text(text)
    if stale:
        print(f"stale: {', '.join(stale)}; run: python docs/make_reference.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
