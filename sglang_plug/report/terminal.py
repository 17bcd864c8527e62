"""What a stream can show: characters that it cannot encode are spelled in ASCII, a reader who leaves is no failure, and columns are cells.

Standard library only, for every answer passes here, the quickest too.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from typing import Any, TextIO

from sglang_plug.errors import SglangPlugError

#: Our own signs, and what stands for them where the encoding has none; everything else becomes an escape.
_SPELLINGS = {"├": "|", "└": "`", "│": "|", "─": "-", "…": "...", "·": ".", "×": "x", "µ": "u", "–": "-", "—": "-", "→": "->", "’": "'"}
_JOINING = range(0x1160, 0x1200)  # Hangul vowels and finals, drawn into the syllable before them
_HANDLER = "sglang_plug.spell"


def settle() -> None:
    """Make this process's stdout and stderr able to take any text, and indifferent to a reader who has left, or was never there."""
    _fill_standard_files()
    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _fill_standard_files() -> None:
    """Open what the caller has closed of stdin, stdout and stderr, to nowhere: otherwise the next file or pipe would take its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one
            if getattr(sys, name) is None:
                setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def spelled(text: str, encoding: str | None = None) -> str:
    """Return `text` as a stream of that encoding (by default stdout's) shows it."""
    name = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    return text if text.isascii() else text.encode(name, _HANDLER).decode(name)


def width(text: str) -> int:
    """Return how many cells of stdout's terminal `text` takes: wide characters two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_cells, spelled(text)))


def padded(text: str, cells: int, *, right: bool = False) -> str:
    """Return `text` filled with spaces to so many cells; `right` sets it to the right."""
    space = " " * (cells - width(text))
    return space + text if right else text + space


def _cells(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"} or ord(char) in _JOINING:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    """Stand in for what the stream's encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    bad = error.object[error.start : error.end]
    return "".join(_SPELLINGS.get(char) or char.encode("ascii", "backslashreplace").decode() for char in bad), error.end


codecs.register_error(_HANDLER, _spell)


class _PatientFile(io.FileIO):
    """A file that throws away what nobody reads any more, so that a verdict does not depend on who looks at it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as exc:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(exc, BrokenPipeError):
                return memoryview(data).nbytes
            raise SglangPlugError("the answer cannot be written", cause=exc.strerror, hint="free some space, or write elsewhere") from exc


def _patient(stream: TextIO) -> TextIO:
    """Return the same stream over a patient file; anything but the process's own streams is returned as it is."""
    if stream not in {sys.__stdout__, sys.__stderr__} or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    raw = _PatientFile(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
