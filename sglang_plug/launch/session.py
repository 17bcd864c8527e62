"""One launch with everything around it: the recorder on its path, the guard, and the facts for whoever reads the records later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Protocol

from sglang_plug.launch import distribution, recording, supervise, terms
from sglang_plug.launch.guard import Audience as GuardAudience
from sglang_plug.launch.guard import Guard
from sglang_plug.launch.terms import Outcome, Wishes

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from sglang_plug.launch.plan import Plan
    from sglang_plug.launch.preflight import Preflight
    from sglang_plug.launch.tree import Process

REFUSED = 1


class Audience(terms.Audience, GuardAudience, Protocol):
    """Who is told how the launch goes and what the guard sees."""

    def say(self, text: str, style: str = "") -> None: ...


@dataclass(frozen=True)
class Options:
    """How a launch is run.

    Attributes:
        allowed: codes of findings that do not stop it.
        guarded: look into the engine's processes while it starts, and end it when the wrong thing would serve.
        record: where the records of hooks go, calls counted; None for no recording.
        ready_limit: seconds until the first answer.
    """

    allowed: Collection[str] = ()
    guarded: bool = True
    record: Path | None = None
    ready_limit: float | None = None


def run(flight: Preflight, audience: Audience, options: Options, *, out: IO[bytes], err: IO[bytes]) -> Outcome:
    """Run the engine to its end. A launch that the guard ends has status 1.

    Raises:
        LaunchError: the program cannot be started, or the records cannot be written.
    """
    plugins = {choice.candidate.value.partition(":")[0].split(".")[0].strip(): choice.candidate.name for choice in flight.choices}
    if (chosen := flight.resolution) is not None and chosen.outcome == "plugin" and chosen.qualname and chosen.name:
        plugins.setdefault(chosen.qualname.replace(":", ".").partition(".")[0], chosen.name)
    wishes = Wishes(ready_limit=options.ready_limit, plugins=plugins)
    if not options.guarded and options.record is None:
        return supervise.run(flight.plan, audience, out=out, err=err, wishes=wishes)
    plan, temporary, records = distribution.prepare(
        flight.plan, options.record, chosen.qualname if chosen is not None and chosen.outcome == "plugin" else None
    )
    guard = Guard(records, flight, options.allowed, audience)
    keeper = _Keeper(plan, records, audience) if options.record is not None else None

    def at_ready(processes: list[Process]) -> None:
        if options.guarded:
            guard.conclude()
        if options.guarded and guard.blind:
            audience.say(
                f"not seen from inside: no process wrote to {records}, so platform and hooks are not confirmed; see the log", "yellow"
            )
        if keeper is not None:
            keeper.note(processes)

    wishes = replace(
        wishes,
        folders=(temporary,),
        check=guard.look if options.guarded else None,
        at_ready=at_ready,
    )
    outcome = supervise.run(plan, audience, out=out, err=err, wishes=wishes)
    if options.record is not None and outcome.obituary is not None and outcome.obituary.raised is None:  # an exit leaves no traceback
        said = recording.last_words(recording.read_processes(records)[0])
        outcome = replace(outcome, obituary=replace(outcome.obituary, raised=said))
    for finding in guard.fatal:
        audience.finding(finding)
    return replace(outcome, status=REFUSED, obituary=None) if guard.fatal else outcome


@dataclass
class _Keeper:
    """Writes down what only the supervisor knows: the launch, and which processes there are, recorded or not."""

    plan: Plan
    folder: Path
    audience: Audience

    def note(self, processes: list[Process]) -> None:
        facts: dict[str, Any] = {
            "engine": self.plan.engine,
            "release": self.plan.release,
            "runtime": self.plan.runtime,
            "argv": list(self.plan.argv),
            "processes": [{"pid": p.pid, "parent": p.parent, "title": p.title} for p in processes],
        }
        try:
            distribution.write_launch(self.folder, facts)
        except OSError as exc:
            self.audience.say(f"the facts of the launch cannot be written: {exc}. The engine goes on.", "yellow")
