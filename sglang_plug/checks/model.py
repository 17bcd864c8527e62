"""What a rule reports. Values only."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """How bad a finding is, most severe first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Level).index(self)


@dataclass(frozen=True)
class Location:
    """A place in a file. Lines and columns count from 1."""

    path: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or worth knowing.

    Attributes:
        code: the rule's stable code, e.g. `SPA101`.
        level: error, warning or info.
        subject: what it is about: keys `kind` (`entry_point`, `variable`, `dist`, `hook`, `class`, `file`, `host`), `name`, and
            where they apply `group`, `value`, `dist`, `version`, `runtime`, `target`.
        message: one sentence: what is wrong, on what.
        cause: the root cause (innermost exception with file and line), not the last wrapper.
        hint: a sentence with a command or a value.
        location: where to look.
        data: further facts for machines (a traceback, SGLang's own message, both sides of a difference).
    """

    code: str
    level: Level
    subject: dict[str, str]
    message: str
    cause: str | None = None
    hint: str | None = None
    location: Location | None = None
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the finding as plain JSON values."""
        return {**asdict(self), "level": self.level.value}
