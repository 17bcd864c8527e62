"""The words of a launch, on stderr: the screen before it, the milestones of the start, and the end."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from rich.text import Text

from sglang_plug.checks.model import Level
from sglang_plug.core.entrypoints import DIFFUSION_PLUGINS, SRT_PLUGINS
from sglang_plug.launch.processes import place_of
from sglang_plug.report.escape import visible
from sglang_plug.report.text import console
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglang_plug.checks.model import Finding
    from sglang_plug.launch.foresight import Foreseen
    from sglang_plug.launch.obituary import Obituary
    from sglang_plug.launch.preflight import Preflight
    from sglang_plug.launch.processes import Expected
    from sglang_plug.launch.recording import ProcessRecord
    from sglang_plug.launch.tree import Process

PLUGINS = {"srt": SRT_PLUGINS, "diffusion": DIFFUSION_PLUGINS}
STYLES = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.INFO: ""}


class Narrator:
    """Tells on stderr how a launch goes, one line an event, each marked as ours among the engine's log lines."""

    def __init__(self) -> None:
        self._console = console(stderr=True)

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Text("sglang-plug: ", style="cyan").append(visible(text), style=style))
        sys.stderr.flush()

    # -- before

    def screen(self, flight: Preflight, expected: Sequence[Expected], sentence: str | None) -> None:
        """Show on one screen what will be launched."""
        plan = flight.plan
        what = f"SGLang {plan.release}" if plan.engine == "sglang" else "the stand-in engine (for bring-up, not for throughput)"
        self._row("engine", f"{what}, {plan.runtime} runtime, {plan.environment.python}")
        if sentence is not None:
            self._row("platform", sentence)
        for index, line in enumerate(_plugins(flight)):
            self._row("" if index else "plugins", line)
        for index, line in enumerate(_processes(expected, flight.hooks)):
            self._row("" if index else "processes", line)
        shown = [f"{name}={shlex.quote(value)}" for name, value in flight.variables.items()]
        self._row("variables", " ".join(shown) or "none of SGLang's is set")
        if flight.fingerprint is not None:
            self._row("fingerprint", f"{flight.fingerprint}, to compare with other nodes: --expect-fingerprint")
        path = plan.changes.get("PYTHONPATH")  # where the stand-in is found
        self._row("command", (f"PYTHONPATH={shlex.quote(path)} " if path else "") + shlex.join(plan.argv))
        for finding in flight.findings:
            self.finding(finding)

    def _row(self, label: str, text: str) -> None:
        self._console.print(
            Text(f"{label:<11} " if len(label) > 10 else f"{label:<11}", style="bold").append(visible(text), style="not bold")
        )

    def finding(self, finding: Finding) -> None:
        """Show one finding: code, what, cause and hint."""
        self._console.print(Text(f"{finding.level.value} {finding.code}: ", style=STYLES[finding.level]).append(visible(finding.message)))
        if finding.cause:
            self._console.print(Text("  cause: ").append("\n         ".join(map(visible, finding.cause.splitlines()))))
        if finding.hint:
            self._console.print(Text("  hint: ", style="cyan").append(visible(finding.hint)))

    # -- while it starts

    def process(self, record: ProcessRecord) -> None:
        """Tell which hooks one process has."""
        applied = sum(hook.applied for hook in record.hooks)
        failed = len(record.hooks) - applied
        platform = f", {record.runtime} platform {record.platform['qualname']}" if record.platform else ""
        self.say(
            f"          {record.title} ({record.pid}): {counted(applied, 'hook')} applied{f', {failed} failed' if failed else ''}{platform}"
        )

    def reached(self, milestone: str, seconds: float) -> None:
        self.say(f"{seconds:6.1f} s  {milestone}")

    def still_waiting(self, phase: str, seconds: float, line: str) -> None:
        self.say(f"{seconds:6.1f} s  nothing heard for a minute, after: {phase}. The last line was: {line[:200]}", "yellow")

    def ready(self, url: str, seconds: float, shown: str) -> None:
        self.say(f"{seconds:6.1f} s  ready: {url} answered a request: {shown}", "bold green")

    def not_answering(self, why: str) -> None:
        self.say(f"the server is up, but does not serve the first request: {why}", "yellow")

    def warned(self, what: str) -> None:
        self.say(what, "yellow")

    # -- the end

    def lost(self, process: Process) -> None:
        self.say(f"{process.title} ({process.pid}) has ended; the engine should notice, and end too", "bold red")

    def stopping(self, reason: str) -> None:
        self.say(f"stopping the engine: {reason}")

    def killed(self, processes: Sequence[Process]) -> None:
        names = ", ".join(f"{p.title} ({p.pid})" for p in processes)
        self.say(f"ended by force, for they did not stop in time: {names}", "yellow")

    def died(self, obituary: Obituary) -> None:
        """Say why the engine died: what, which process, its last error, what that means."""
        self.say(f"the engine ended with {obituary.ended}", "bold red")
        for label in ("process", "error", "raised", "meaning", "hint"):
            if text := getattr(obituary, label):
                self.say(f"  {label}: {text}")


def _plugins(flight: Preflight) -> Iterator[str]:
    installed = flight.survey.facts["entry_points"] if flight.survey is not None else ()
    found = [row for row in installed if row["group"] == PLUGINS[flight.plan.runtime]]
    if not flight.choices and not found:
        yield "none installed"
    for row in () if flight.choices else found:
        yield f"open     {row['name']} ({row['dist']} {row['version'] or ''}): not decided, for no platform is"
    for choice in flight.choices:
        candidate = choice.candidate
        verdict = "load" if choice.verdict == "load" else choice.verdict
        yield f"{verdict:<8} {candidate.name} ({candidate.dist} {candidate.version or ''}): {choice.why}"


def _processes(expected: Sequence[Expected], hooks: Sequence[Foreseen]) -> Iterator[str]:
    """Yield a line a process: whether plugins are loaded there, and the hooks that the plugins' source names for it."""
    rows = list(expected)
    for row in rows:
        count = f"{row.count} × " if row.count > 1 else ""
        here = [hook for hook in hooks if hook.target is not None and place_of(hook.target, rows) == row.title]
        named = ", ".join(f"{_short(hook.target or '')} ({hook.type or '?'}, {hook.plugin})" for hook in here)
        lost = " never fires" if here and not row.hooks else ""
        yield f"{'hooks' if row.hooks else 'no hooks':<8} {count}{row.title}: {named or row.what}{lost}"
    computed = sorted({hook.plugin for hook in hooks if hook.target is None})
    if computed:
        yield f"         the source of {', '.join(computed)} computes targets: they are told once they are applied"


def _short(target: str) -> str:
    return ".".join(target.replace(":", ".").split(".")[-2:])
