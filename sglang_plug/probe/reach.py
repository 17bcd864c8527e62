"""In which processes of a release a hook on a target fires: what runs where and loads plugins is the catalogue's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.contract import homes, hookable, peculiarities

if TYPE_CHECKING:
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Process, Symbol

DIFFUSION = "sglang.multimodal_gen."


@dataclass(frozen=True)
class Place:
    """One process, and what becomes of the hook there.

    Attributes:
        process: the catalogue's facts.
        fires: `yes`, `no`, or `maybe` where it is not known whether the process runs that code, or plugins load only by way of its parent.
        why: in words.
    """

    process: Process
    fires: str
    why: str


@dataclass(frozen=True)
class Reach:
    """What is known about hooks on one target.

    Attributes:
        target: dotted.
        runtime: whose registry applies it.
        symbol: what it is in that release; None where it does not exist.
        near: names that may be meant instead.
        places: the processes of that runtime.
        notes: what the release does with hooks there, the gravest first.
    """

    target: str
    runtime: str
    symbol: Symbol | None
    near: tuple[str, ...]
    places: tuple[Place, ...]
    notes: tuple[peculiarities.Note, ...]

    @property
    def is_dead(self) -> bool:
        """Whether the hook surely has no effect: the target is not there, or the release never calls it."""
        return self.symbol is None or any(note.level == "dead" for note in self.notes)

    @property
    def fires_nowhere(self) -> bool:
        """Whether every process is known not to run it."""
        return all(place.fires == "no" for place in self.places)


def reach(release: Release, target: str) -> Reach:
    """Return where a hook on `target` (dotted, or with a colon) fires in a release."""
    dotted = target.strip().replace(":", ".")
    runtime = "diffusion" if dotted.startswith(DIFFUSION) else "srt"
    symbol = release.find(dotted)
    near = () if symbol is not None else release.near(dotted)
    notes = (*hookable.obstacles(release, target, symbol), *peculiarities.of(release, dotted)) if symbol is not None else ()
    if symbol is None or any(note.level == "dead" for note in notes):
        why = "there is no such target" if symbol is None else "see the notes"
        places = tuple(Place(process, "no", why) for process in release.processes(runtime))
    else:
        places = tuple(_place(process, symbol) for process in release.processes(runtime))
    return Reach(dotted, runtime, symbol, near, places, notes)


def _place(process: Process, symbol: Symbol) -> Place:
    runs = homes.runs(process, symbol)
    if process.plugins == "no":
        why = "runs this code, but loads no plugins" if runs else "loads no plugins"
        return Place(process, "no", why)
    loaded = {
        "yes": "loads plugins",
        "indirect": "loads plugins through a function that it calls",
        "parent": "has plugins only where the launching command loaded them before",
    }[process.plugins]
    if runs is False:
        return Place(process, "no", f"{loaded}, but does not run this code")
    if runs is None:
        return Place(process, "maybe", f"{loaded}; whether it runs this code is not known")
    return Place(process, "maybe" if process.plugins == "parent" else "yes", f"{loaded} and runs this code")
