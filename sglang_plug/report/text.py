"""Words for people. Colours when the stream is a terminal or FORCE_COLOR is set, none otherwise."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Literal, NamedTuple

from sglang_plug.report.escape import visible
from sglang_plug.report.terminal import padded, spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console
    from rich.text import Text

    from sglang_plug.errors import SglangPlugError


NARROWEST_CELL = 24
INDENTED = re.compile(r"    (?:(?:cause|hint|at): +| {7})?(?=\S)|  \w+ +(?=\S)")
#: A command that breaks into lines could not be copied.
TO_COPY = re.compile(r"`|sglang-plug |pip |export |unset ")


class Span(NamedTuple):
    """A piece of a line and its style."""

    text: str
    style: str = ""


def plain(rows: Iterable[Sequence[Span]]) -> str:
    """Return lines as text without styles."""
    return "".join("".join(span.text for span in row).rstrip() + "\n" for row in rows)


def write(rows: Iterable[Sequence[Span]]) -> None:
    """Write lines to stdout: styled on a terminal, plain elsewhere, so that rich is imported only for someone who sees it.

    On a terminal, what does not fit goes on below itself: the last cell of a line of three or more spans, which is a table's, and the
    words of a line that is indented.
    """
    if not sys.stdout.isatty() and not os.environ.get("FORCE_COLOR"):
        sys.stdout.write(plain(rows))
        return
    from rich.text import Text

    screen = console()
    for row in rows:
        line = Text.assemble(*row)
        screen.print(_hung(line, cells, screen) if (cells := _cells(row)) and screen.is_terminal and sys.stdout.isatty() else line)


def _cells(row: Sequence[Span]) -> Sequence[Span]:
    """Return a line as its head and what goes on below itself; nothing where it is to stay as it is."""
    if len(row) != 1:
        return row if len(row) > 2 else ()
    head = INDENTED.match(row[0].text)
    if head is None or TO_COPY.search(row[0].text):
        return ()
    return (row[0]._replace(text=head[0]), row[0]._replace(text=row[0].text[head.end() :]))


def _hung(line: Text, row: Sequence[Span], screen: Console) -> Text:
    """Return a line whose last span is broken into lines below each other, where there is room for that."""
    from rich.text import Text

    lead = line.cell_len - Text(row[-1].text.lstrip()).cell_len
    if line.cell_len <= screen.width or screen.width - lead < NARROWEST_CELL:
        return line
    stem = spelled("│") if row[0].text[:1] == "├" else ""
    first, *others = Text(row[-1].text.strip(), style=row[-1].style).wrap(screen, screen.width - lead)
    for part in (first, *others):
        part.rstrip()
    lines = [Text.assemble(*row[:-1], row[-1].text[: len(row[-1].text) - len(row[-1].text.lstrip())], first)]
    lines += [Text.assemble((padded(stem, lead), "dim"), part) for part in others]
    return Text("\n").join(lines)


def console(*, stderr: bool = False) -> Console:
    """Return a console that respects NO_COLOR, pipes and TERM=dumb, and interprets no markup in strangers' text."""
    from rich.console import Console

    colors: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"  # without colours: neither bold nor dim
    return Console(stderr=stderr, color_system=colors, markup=False, highlight=False, emoji=False, soft_wrap=True)


def print_error(error: SglangPlugError) -> None:
    """Write `error: what [subject]`, its cause and a hint to stderr."""
    from rich.text import Text

    out = console(stderr=True)
    subject = f" [{visible(error.subject)}]" if error.subject else ""
    out.print(Text("error: ", style="bold red").append(visible(error.message) + subject, style="bold"))
    if error.cause:
        out.print(Text("  cause: ").append(visible(error.cause, keep_newlines=True)))
    if error.hint:
        out.print(Text("  hint: ", style="cyan").append(visible(error.hint, keep_newlines=True)))
    sys.stderr.flush()
