"""What the signature of a hook target does not tell: where a hook never fires, breaks the start, fires too often or runs nowhere.

Measured on releases; each rule is written so that it follows the catalogue where it can (bases, processes), and names targets only
where nothing in the source gives them away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.contract.catalogue import Release

_PROCESS_ENTRY = re.compile(r"sglang\.srt\..*\.run_\w*process")
_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
_HOT = {f"{_SCHEDULER}.{name}" for name in ("get_next_batch_to_run", "recv_requests", "process_input_requests", "self_check_during_idle")}


@dataclass(frozen=True)
class Note:
    """One thing to know before a target is hooked.

    Attributes:
        level: `dead` (the hook has no effect, or stops the start), or `caution`.
        text: what happens, as a sentence about SGLang without its subject.
        instead: a better target, where there is one.
    """

    level: Literal["dead", "caution"]
    text: str
    instead: str = ""


def of(release: Release, target: str, *, replaces: bool = False) -> tuple[Note, ...]:
    """Return the notes on a dotted target, the gravest first.

    Args:
        release: where the target lives.
        target: its dotted name.
        replaces: the hook is REPLACE.
    """
    return tuple(sorted(_notes(release, target, replaces=replaces), key=lambda note: note.level != "dead"))


def _notes(release: Release, target: str, *, replaces: bool) -> Iterator[Note]:
    parent, _, name = target.rpartition(".")
    owner = release.find(parent)
    if (
        name in {"__init__", "__post_init__"}
        and owner is not None
        and any(made.startswith("msgspec.") for made in (owner.value, *owner.bases))
    ):
        instead = f"{parent}.resolve_once"
        yield Note(
            "dead",
            f"never calls a patched {name} of a msgspec struct, which keeps the original from the time when the class was made",
            instead if release.find(instead) else "",
        )
    if _PROCESS_ENTRY.fullmatch(target):
        yield Note(
            "dead",
            "has looked the function up before plugins load in that process; under sglang.Engine the start fails with PicklingError",
            f"{_SCHEDULER}.__init__" if name == "run_scheduler_process" else "",
        )
    if replaces and target == "sglang.srt.managers.detokenizer_manager.DetokenizerManager":
        yield Note("dead", "keeps the original class in a default argument", f"{target}.event_loop")
    if target in _HOT:
        yield Note(
            "caution",
            "calls it in the scheduler's idle loop, hundreds to thousands of times a second at rest: print or write nothing in it",
        )
    if target.startswith("sglang.srt.model_executor.model_runner."):
        yield Note(
            "caution",
            "imports the module wherever plugins load, to find the target; that import runs the platform's init_backend() there too",
        )
    yield from _nowhere(release, target)


def _nowhere(release: Release, target: str) -> Iterator[Note]:
    """A module that is some process's own, where no such process loads plugins."""
    runtime = "diffusion" if target.startswith("sglang.multimodal_gen.") else "srt"
    here = [
        process
        for process in release.processes(runtime)
        if target.startswith(process.entry.partition(":")[0].replace("/", ".").removesuffix(".py") + ".")
    ]
    if here and all(process.plugins == "no" for process in here):
        roles = ", ".join(sorted({process.role for process in here}))
        yield Note("caution", f"loads no plugins in the process that this code belongs to ({roles})")
