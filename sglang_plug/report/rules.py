"""Rules for people: the table of all, and the page of one, which lies in the shipped documentation."""

from __future__ import annotations

import re

from sglang_plug.checks.table import FAMILIES, RULES, Rule, near, rule
from sglang_plug.data import data_dir
from sglang_plug.errors import SglangPlugError, UsageError


def find(word: str) -> Rule:
    """Return the rule that a code or name stands for.

    Raises:
        UsageError: there is none.
    """
    try:
        return rule(word)
    except KeyError as exc:
        meant = () if re.fullmatch(r"SP\d+", word.upper()) else near(word)  # another number is another rule, not a slip
        found = " or ".join(f"`sglang-plug explain {name}`" for name in meant)
        hint = f"did you mean {found}?" if found else "`sglang-plug explain` lists all rules"
        raise UsageError(f"no rule is called {word!r}", hint=hint) from exc


def page(word: str) -> str:
    """Return the page of the rule that a code or name stands for.

    Raises:
        UsageError: there is no such rule.
        SglangPlugError: its page is not installed.
    """
    entry = find(word)
    path = data_dir("rules") / f"{entry.code}.md"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as exc:
        raise SglangPlugError("the rule's page is not there", subject=str(path), hint="pip install --force-reinstall sglang-plug") from exc


def listing() -> str:
    """Return the table of all rules by family."""
    rows: list[str] = []
    wide = max(len(entry.slug) for entry in RULES)
    for digit, family in FAMILIES.items():
        found = [entry for entry in RULES if entry.code[2] == digit]
        if found:
            rows += ["", f"SP{digit}xx  {family}"] if rows else [f"SP{digit}xx  {family}"]
            rows += [f"  {entry.code}  {entry.level.value:<7}  {entry.slug:<{wide}}  {entry.summary}" for entry in found]
    return "\n".join(rows) + "\n"
