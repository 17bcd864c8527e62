"""In which processes of a release a hook on a target fires. Owns which process runs which part of SGLang; the rest is the catalogue's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.contract import peculiarities

if TYPE_CHECKING:
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Process, Symbol

DIFFUSION = "sglang.multimodal_gen."
SCHEDULERS = r"scheduler|Ray scheduler|main: bench_one_batch|mindspore"
# Which processes run the code of a module, by their role in the catalogue; the first row that fits a target counts.
RUNS: tuple[tuple[str, str], ...] = (
    (r"sglang\.srt\.server_args\.(ServerArgs\.(add_cli_args|from_cli_args)|prepare_server_args)", r"main: (sglang serve|python -m)"),
    (r"sglang\.srt\.(server_args|arg_groups)\.", r"main: "),
    (
        r"sglang\.srt\.(entrypoints|managers\.(tokenizer_manager|template_manager|io_struct))\b",
        r"main: (subprocess|sglang|http|Ray)|.*tokenizer worker",
    ),
    (r"sglang\.srt\.managers\.data_parallel_controller\.", r"data-parallel controller"),
    (r"sglang\.srt\.managers\.detokenizer_manager\.", r"detokenizer$"),
    (r"sglang\.srt\.disaggregation\.encoder\.", r"encoder"),
    (r"sglang\.srt\.(layers|models|multimodal|distributed)\.", SCHEDULERS + r"|encoder"),
    (
        r"sglang\.srt\.(managers|model_executor|mem_cache|model_loader|sampling|speculative|lora|constrained|eplb|batch_overlap)\.",
        SCHEDULERS,
    ),
    (r"sglang\.multimodal_gen\.runtime\.entrypoints\.", r"main: |HTTP child|disaggregated head"),
    (r"sglang\.multimodal_gen\.runtime\.(managers|pipelines|pipelines_core|models|layers|loader|distributed)\.", r"GPU worker"),
)


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
    notes = peculiarities.of(release, dotted) if symbol is not None else ()
    places = tuple(_place(process, dotted) for process in release.processes(runtime))
    if symbol is None or any(note.level == "dead" for note in notes):
        why = "there is no such target" if symbol is None else "see the notes"
        places = tuple(Place(place.process, "no", why) for place in places)
    return Reach(dotted, runtime, symbol, near, places, notes)


def _place(process: Process, target: str) -> Place:
    runs = _runs(process, target)
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


def _runs(process: Process, target: str) -> bool | None:
    """Tell whether a process runs the code of a target; None where no rule speaks of it."""
    own = process.entry.partition(":")[0] + "."
    for pattern, roles in RUNS:
        if re.match(pattern, target):
            return re.match(roles, process.role) is not None
    return True if target.startswith(own) else None
