"""Words for people. Colours when the stream is a terminal or FORCE_COLOR is set, none otherwise."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from sglang_plug.report.escape import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from sglang_plug.errors import SglangPlugError


class Span(NamedTuple):
    """A piece of a line and its style."""

    text: str
    style: str = ""


def plain(rows: Iterable[Sequence[Span]]) -> str:
    """Return lines as text without styles."""
    return "".join("".join(span.text for span in row).rstrip() + "\n" for row in rows)


def write(rows: Iterable[Sequence[Span]]) -> None:
    """Write lines to stdout: styled on a terminal, plain elsewhere, so that rich is imported only for someone who sees it."""
    if not sys.stdout.isatty() and not os.environ.get("FORCE_COLOR"):
        sys.stdout.write(plain(rows))
        return
    from rich.text import Text

    screen = console()
    for row in rows:
        screen.print(Text.assemble(*row))


def console(*, stderr: bool = False) -> Console:
    """Return a console that respects NO_COLOR, pipes and TERM=dumb, and interprets no markup in strangers' text."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)


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
