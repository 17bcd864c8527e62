"""Changes that are safe to make by a machine: an outdated group's name, a renamed platform method. Makes new text; writes nothing."""

from __future__ import annotations

import ast
import difflib
import io
import os
import re
import shutil
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.checks.source.project import read_project
from sglang_plug.contract.renames import change_of
from sglang_plug.errors import SglangPlugError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.project import Project

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")  # as Python counts lines: a form feed ends none


@dataclass(frozen=True)
class Change:
    """One file's new text.

    Attributes:
        path: the file.
        shown: its path as findings spell it.
        before: its text, line ends as they are.
        after: the new text.
        encoding: of both.
    """

    path: Path
    shown: str
    before: str
    after: str
    encoding: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = (_LINE.findall(text.replace("\r\n", "\n")) for text in (self.before, self.after))
        return "".join(difflib.unified_diff(before, after, f"a/{self.shown}", f"b/{self.shown}"))

    def write(self) -> None:
        """Put the new text in the file's place, which keeps its mode; through a link, where it leads.

        Raises:
            SglangPlugError: it cannot be written, or is read-only.
        """
        place = self.path.resolve()
        try:
            if not place.stat().st_mode & 0o222:
                raise PermissionError("the file is read-only")
            with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as folder:
                part = Path(folder) / place.name
                part.write_bytes(self.after.encode(self.encoding))
                shutil.copymode(place, part)
                os.replace(part, place)
        except OSError as exc:
            raise SglangPlugError(
                "a change cannot be written",
                subject=self.shown,
                cause=exc.strerror or str(exc),
                hint=f"`chmod u+w {self.shown}`, or edit it by hand",
            ) from exc


def changes(project: Project, findings: Iterable[Finding], releases: tuple[str, ...]) -> list[Change]:
    """Return what can be put right without a doubt, file by file.

    Args:
        project: the plugin's source.
        findings: what was found.
        releases: those that were checked; a method is renamed only when all of them know the new name alone.
    """
    texts: dict[str, tuple[str, str, str]] = {}  # as it is, as it becomes, encoding
    for finding in findings:
        place = finding.location
        if place is None or not place.line or finding.code not in {"SP204", "SP408"}:
            continue
        if place.path not in texts:
            read = _text(project.root / place.path)
            if read is None:
                continue
            texts[place.path] = (read[0], read[0], read[1])
        before, text, encoding = texts[place.path]
        texts[place.path] = (before, _fixed(project, text, finding, place.line, releases) or text, encoding)
    found = [Change(project.root / shown, shown, *rest) for shown, rest in texts.items() if rest[0] != rest[1]]
    return sorted(found, key=lambda change: change.shown)


def _text(path: Path) -> tuple[str, str] | None:
    """A file's text with its line ends, and its encoding; None where it cannot be read."""
    try:
        data = path.read_bytes()
        encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0] if path.suffix == ".py" else "utf-8"
        encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else encoding
        text = data.decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError, LookupError):
        return None
    return text, encoding


def _fixed(project: Project, text: str, finding: Finding, line: int, releases: tuple[str, ...]) -> str | None:
    if finding.code == "SP204" and finding.data.get("meant"):
        return _rename_group(text, finding.subject["group"], str(finding.data["meant"]))
    if finding.code == "SP408":
        return _rename_method(project, text, finding, line, releases)
    return None


def _rename_group(text: str, old: str, new: str) -> str | None:
    """Spell a group's name anew, in TOML headers and tables, setup.cfg and setup.py; nowhere else."""
    quoted = re.compile(rf"""(["']){re.escape(old)}\1(?=\s*(\]|=|:))""")
    bare = re.compile(rf"^({re.escape(old)})(?=\s*=\s*$)", re.MULTILINE)
    result = bare.sub(new, quoted.sub(lambda match: f"{match[1]}{new}{match[1]}", text))
    return result if result != text and new not in text else None


def _rename_method(project: Project, text: str, finding: Finding, line: int, releases: tuple[str, ...]) -> str | None:
    old = finding.subject["name"].rpartition(".")[2]
    changed = [change_of(finding.subject.get("runtime", "srt"), old, release) for release in releases]
    new = {change.new for change in changed if change is not None}
    if None in changed or len(new) != 1 or not (name := next(iter(new))):
        return None
    files = read_project(project.root).files if len(project.files) == 1 else project.files  # one file may have been given alone
    if sum(len(re.findall(rf"\b{re.escape(old)}\b".encode(), file.text)) for file in files) != 1:
        return None  # the plugin's own code calls it, by name or as a text, or there are several
    lines = _LINE.findall(text)
    lines[line - 1] = re.sub(rf"\bdef {re.escape(old)}\b", f"def {name}", lines[line - 1], count=1)
    result = "".join(lines)
    try:
        defined = [node.name for node in ast.walk(ast.parse(result)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    except (SyntaxError, ValueError, RecursionError):
        return None
    return result if defined.count(name) == 1 else None  # not where the new one stands beside it
