"""The options that several commands share: how they are spelt, what their help says, and under which heading. Owns no default."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Option

#: Headings of a help page.
WHERE = "Where to look"
WHAT_IF = "What if"
RULES = "Rules"
LIMITS = "Limits"
ANSWER = "Answer"


class Runtime(StrEnum):
    """Which of SGLang's runtimes is meant."""

    SRT = "srt"
    DIFFUSION = "diffusion"
    ALL = "all"

    @property
    def names(self) -> tuple[str, ...]:
        """The runtimes, each by its name."""
        return ("srt", "diffusion") if self is Runtime.ALL else (self.value,)


class Launch(StrEnum):
    """How SGLang is started: it decides what stands first on sys.path."""

    SCRIPT = "script"
    MODULE = "module"


class TextOrJson(StrEnum):
    """How an answer is written that has no other shape."""

    TEXT = "text"
    JSON = "json"


#: Each command has formats of its own: `Annotated[Format, FORMAT]`.
FORMAT = Option("--format", "-f", help="How the answer is written.", rich_help_panel=ANSWER)
RUNTIME_HELP = "LLM serving, image and video generation, or both."

RuntimeOption = Annotated[Runtime, Option("--runtime", help=RUNTIME_HELP, rich_help_panel=WHERE)]
Python = Annotated[
    str | None,
    Option(
        help="Another interpreter or virtual environment; sglang-plug need not be installed there.", metavar="PATH", rich_help_panel=WHERE
    ),
]
LaunchOption = Annotated[
    Launch,
    Option(
        "--launch",
        help="script: the `sglang` command; module: `python -m`, which puts the working directory first.",
        rich_help_panel=WHERE,
    ),
]
Select = Annotated[
    list[str] | None,
    Option(help="Only these rules: codes, their beginnings (SP5) or names.", metavar="CODES", rich_help_panel=RULES, show_default=False),
]
Ignore = Annotated[list[str] | None, Option(help="Not these rules.", metavar="CODES", rich_help_panel=RULES, show_default=False)]
Strict = Annotated[bool | None, Option("--strict/--no-strict", help="Warnings fail too.", rich_help_panel=RULES, show_default=False)]
Output = Annotated[
    Path | None,
    Option(
        "--output", "-o", help="Write the answer to a file instead of stdout.", metavar="FILE", rich_help_panel=ANSWER, show_default=False
    ),
]
TextOrJsonOption = Annotated[TextOrJson, FORMAT]
