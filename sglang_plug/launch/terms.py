"""The terms of a launch: what is wanted of it, who is told how it goes, and how it ended. Values and a protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from sglang_plug.launch.obituary import Obituary
    from sglang_plug.launch.tree import Process


class Audience(Protocol):
    """Who is told how the launch goes."""

    def reached(self, milestone: str, seconds: float) -> None: ...
    def still_waiting(self, phase: str, seconds: float, line: str) -> None: ...
    def ready(self, url: str, seconds: float, shown: str) -> None: ...
    def not_answering(self, why: str) -> None: ...
    def warned(self, what: str) -> None: ...
    def lost(self, process: Process) -> None: ...
    def stopping(self, reason: str) -> None: ...
    def killed(self, processes: Sequence[Process]) -> None: ...


@dataclass(frozen=True)
class Outcome:
    """How a launch ended.

    Attributes:
        status: the engine's exit status, 128 + N where signal N ended it, or ended us and thereby it (130 for Ctrl-C).
        ready: seconds until the first real answer; None where it never came.
        obituary: why it died, when nobody asked it to.
    """

    status: int
    ready: float | None = None
    obituary: Obituary | None = None


@dataclass(frozen=True)
class Wishes:
    """What else is wanted of a launch.

    Attributes:
        folders: removed when the launch ends, however it ends.
        ready_limit: give up when the first answer takes longer than so many seconds.
        check: called now and then during the start; a reason that it returns ends the launch.
        at_ready: called with the engine's processes when it answered.
        until_ready: stop the engine as soon as it answered (a trial start).
        plugins: import name of a plugin's package -> the plugin, to say whose code failed.
    """

    folders: tuple[Path, ...] = ()
    ready_limit: float | None = None
    check: Callable[[], str | None] | None = None
    at_ready: Callable[[list[Process]], None] | None = None
    until_ready: bool = False
    plugins: Mapping[str, str] = field(default_factory=dict)
