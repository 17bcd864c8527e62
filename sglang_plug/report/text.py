"""Words for people: the only module that imports rich. Colours when the stream is a terminal, none otherwise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sglang_plug.report.escape import visible

if TYPE_CHECKING:
    from rich.console import Console

    from sglang_plug.errors import SglangPlugError


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
