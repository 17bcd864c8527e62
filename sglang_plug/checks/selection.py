"""Which findings are kept: codes, their beginnings, and rules' names, chosen or left out. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sglang_plug.checks.table import RULES, near
from sglang_plug.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_plug.checks.doctor import Report


def codes(words: Iterable[str]) -> frozenset[str]:
    """Return the codes that words stand for; a word is a code, the beginning of one, a rule's name, or several of them with commas.

    Raises:
        UsageError: a word stands for no rule.
    """
    found: set[str] = set()
    for text in words:
        for word in filter(None, (part.strip() for part in text.split(","))):
            hits = {rule.code for rule in RULES if rule.code.startswith(word.upper()) or rule.slug == word.lower()}
            if not hits:
                meant = f"did you mean {' or '.join(near(word))}? " if near(word) else ""
                raise UsageError(f"no rule is called {word!r}", hint=f"{meant}`sglang-plug explain` lists them all")
            found |= hits
    return frozenset(found)


def kept(report: Report, select: Iterable[str], ignore: Iterable[str]) -> Report:
    """Return the report without the findings that are not selected, or are ignored.

    Raises:
        UsageError: a word stands for no rule.
    """
    wanted, unwanted = codes(select), codes(ignore)
    rest = tuple(f for f in report.findings if (not wanted or f.code in wanted) and f.code not in unwanted)
    return replace(report, findings=rest)
