"""The words of a launch, on stderr: the screen before it, the milestones of the start, and the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sglang_plug.report.escape import visible
from sglang_plug.report.text import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_plug.launch.obituary import Obituary
    from sglang_plug.launch.tree import Process


class Narrator:
    """Tells on stderr how a launch goes, one line an event, each marked as ours among the engine's log lines."""

    def __init__(self) -> None:
        self._console = console(stderr=True)

    def say(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self._console.print(Text("sglang-plug: ", style="bold cyan").append(visible(text), style=style))
        sys.stderr.flush()

    def reached(self, milestone: str, seconds: float) -> None:
        self.say(f"{seconds:6.1f} s  {milestone}")

    def still_waiting(self, phase: str, seconds: float, line: str) -> None:
        self.say(f"{seconds:6.1f} s  nothing heard for a minute, after: {phase}. The last line was: {line[:200]}", "yellow")

    def ready(self, url: str, seconds: float) -> None:
        self.say(f"{seconds:6.1f} s  ready: {url} answered a request", "bold green")

    def not_answering(self, why: str) -> None:
        self.say(f"the server is up, but refused the first request: {why}", "yellow")

    def stopping(self, reason: str) -> None:
        self.say(f"stopping the engine: {reason}")

    def killed(self, processes: Sequence[Process]) -> None:
        names = ", ".join(f"{p.title} ({p.pid})" for p in processes)
        self.say(f"ended by force, for they did not stop in time: {names}", "yellow")

    def died(self, obituary: Obituary) -> None:
        """Say why the engine died: what, which process, its last error, what that means."""
        self.say(f"the engine ended with {obituary.ended}", "bold red")
        if obituary.process:
            self.say(f"  process: {obituary.process}")
        if obituary.error:
            self.say(f"  error: {obituary.error}")
        if obituary.meaning:
            self.say(f"  meaning: {obituary.meaning}")
        if obituary.hint:
            self.say(f"  hint: {obituary.hint}")
