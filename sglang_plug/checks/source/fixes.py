"""Changes that are safe to make by a machine: an outdated group's name, a renamed platform method. Makes new text; writes nothing."""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.contract.renames import change_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sglang_plug.checks.model import Finding


@dataclass(frozen=True)
class Change:
    """One file's new text."""

    path: Path
    shown: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return "".join(
            difflib.unified_diff(
                self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), f"a/{self.shown}", f"b/{self.shown}"
            )
        )


def changes(root: Path, findings: Iterable[Finding], releases: tuple[str, ...]) -> list[Change]:
    """Return what can be put right without a doubt, file by file.

    Args:
        root: the project's folder.
        findings: what was found.
        releases: those that were checked; a method is renamed only when all of them know the new name alone.
    """
    texts: dict[str, str] = {}
    for finding in findings:
        place = finding.location
        if place is None or not place.line:
            continue
        file = root / place.path
        if place.path not in texts:
            try:
                texts[place.path] = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                continue
        new = _fixed(texts[place.path], finding, place.line, releases)
        if new is not None:
            texts[place.path] = new
    found = []
    for shown, after in texts.items():
        before = (root / shown).read_text(encoding="utf-8")
        if before != after:
            found.append(Change(root / shown, shown, before, after))
    return sorted(found, key=lambda change: change.shown)


def _fixed(text: str, finding: Finding, line: int, releases: tuple[str, ...]) -> str | None:
    if finding.code == "SP204" and finding.data.get("meant"):
        return _rename_group(text, finding.subject["group"], str(finding.data["meant"]))
    if finding.code == "SP408":
        return _rename_method(text, finding, line, releases)
    return None


def _rename_group(text: str, old: str, new: str) -> str | None:
    """Spell a group's name anew, in TOML headers and tables, setup.cfg and setup.py; nowhere else."""
    quoted = re.compile(rf"""(["']){re.escape(old)}\1(?=\s*(\]|=|:))""")
    bare = re.compile(rf"^({re.escape(old)})(?=\s*=\s*$)", re.MULTILINE)
    result = bare.sub(new, quoted.sub(lambda match: f"{match[1]}{new}{match[1]}", text))
    return result if result != text and new not in text else None


def _rename_method(text: str, finding: Finding, line: int, releases: tuple[str, ...]) -> str | None:
    old = finding.subject["name"].rpartition(".")[2]
    changed = [change_of(finding.subject.get("runtime", "srt"), old, release) for release in releases]
    new = {change.new for change in changed if change is not None}
    if None in changed or len(new) != 1 or not (name := next(iter(new))):
        return None
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == old]
    defined = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in {old, name}]
    if used or len(defined) != 1:
        return None  # the plugin's own code calls it, or has the new one beside it
    lines = text.splitlines(keepends=True)
    lines[line - 1] = re.sub(rf"\bdef {re.escape(old)}\b", f"def {name}", lines[line - 1], count=1)
    return "".join(lines)
