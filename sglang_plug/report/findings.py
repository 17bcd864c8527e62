"""The table of formats in which findings are written, and the one way to a file."""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.errors import SglangPlugError

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

#: format -> the module of this package whose `render(report)` writes it
FORMATS = {"json": "findings_json", "sarif": "sarif", "junit": "junit", "markdown": "markdown", "github": "github", "html": "html"}


def render(report: Report, kind: str, *, verbose: bool = False) -> str:
    """Return a report in one of the formats, or as plain text."""
    if kind == "text":
        from sglang_plug.report import findings_text

        return findings_text.plain(findings_text.lines(report, verbose=verbose))
    module = importlib.import_module(f"sglang_plug.report.{FORMATS[kind]}")
    text: str = module.render(report)
    return text


def save(text: str, path: Path) -> None:
    """Write text beside the file, then put it in its place.

    Raises:
        SglangPlugError: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_text(text, encoding="utf-8")
            return
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            part = Path(folder) / path.name
            part.write_text(text, encoding="utf-8")  # with the mode that the umask gives any new file
            os.replace(part, path)
    except OSError as exc:
        raise SglangPlugError(
            "the answer cannot be written", subject=str(path), cause=str(exc), hint="give --output a file in a folder that exists"
        ) from exc
