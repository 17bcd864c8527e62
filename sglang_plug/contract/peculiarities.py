"""What the signature of a hook target does not tell: where a hook never fires, breaks the start, fires too often or runs nowhere.

Measured on releases; each rule is written so that it follows the catalogue where it can (bases, processes), and names targets only
where nothing in the source gives them away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sglang_plug.contract.homes import without_plugins
from sglang_plug.contract.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol

_PROCESS_ENTRY = re.compile(r"sglang\.srt\..*\.run_\w*process")
_MANAGERS = "sglang.srt.managers"
_SCHEDULER = f"{_MANAGERS}.scheduler.Scheduler"
_DETOKENIZER = f"{_MANAGERS}.detokenizer_manager.DetokenizerManager"
_INSIDE = {
    "run_scheduler_process": f"{_SCHEDULER}.__init__",
    "run_detokenizer_process": f"{_DETOKENIZER}.__init__",
    "run_data_parallel_controller_process": f"{_MANAGERS}.data_parallel_controller.DataParallelController.__init__",
}
_ROUTE = re.compile(r"(?:\w+\.)*\w*(?:app|router)\.(?:get|post|put|delete|patch|websocket|api_route|exception_handler|middleware)\b.*")
_IDLE_LOOP = {"get_next_batch_to_run", "ingest_requests", "recv_requests", "process_input_requests", "on_idle", "self_check_during_idle"}


@dataclass(frozen=True)
class Note:
    """One thing to know before a target is hooked.

    Attributes:
        trap: which of the kinds of mishap it is.
        level: `dead` (the hook has no effect, or stops the start), or `caution`.
        text: what happens, as a sentence about SGLang without its subject.
        instead: a better target, where there is one.
    """

    trap: Literal["struct", "entrance", "default", "idle-loop", "model-runner", "route", "no-plugins", "kind"]
    level: Literal["dead", "caution"]
    text: str
    instead: str = ""


def of(release: Release, target: str, *, replaces: bool = False) -> tuple[Note, ...]:
    """Return the notes on a target, the gravest first; none where the release has no such name.

    Args:
        release: where the target lives.
        target: its name, dotted or with a colon.
        replaces: the hook is REPLACE.
    """
    symbol = release.find(target.replace(":", ".", 1))
    if symbol is None:
        return ()
    return tuple(sorted(_notes(release, symbol, replaces=replaces), key=lambda note: note.level != "dead"))


def _notes(release: Release, symbol: Symbol, *, replaces: bool) -> Iterator[Note]:
    parent, _, name = symbol.name.rpartition(".")
    if name in {"__init__", "__post_init__"} and "msgspec.Struct" in release.lookup.linearize(_origin(release, parent)):
        instead = f"{parent}.resolve_once"
        yield Note(
            "struct",
            "dead",
            f"never calls a patched {name} of a msgspec struct, which keeps the original from the time when the class was made",
            instead if release.find(instead) else "",
        )
    if symbol.kind is Kind.FUNCTION and _PROCESS_ENTRY.fullmatch(symbol.origin):
        yield Note(
            "entrance",
            "dead",
            "has looked the function up before plugins load in that process; under sglang.Engine the start fails with PicklingError",
            _INSIDE.get(symbol.origin.rpartition(".")[2], ""),
        )
    if replaces and symbol.origin == _DETOKENIZER:
        yield Note("default", "dead", "keeps the original class in a default argument", f"{_DETOKENIZER}.event_loop")
    if (symbol.holder or parent) == _SCHEDULER and name in _IDLE_LOOP:
        yield Note(
            "idle-loop",
            "caution",
            "calls it in the scheduler's idle loop, hundreds to thousands of times a second at rest: print or write nothing in it",
        )
    if (symbol.holder or symbol.name).startswith("sglang.srt.model_executor.model_runner."):
        yield Note(
            "model-runner",
            "caution",
            "imports the module wherever plugins load, to find the target; that import runs the platform's init_backend() there too",
        )
    if any(_ROUTE.fullmatch(decorator) for decorator in symbol.decorators):
        yield Note("route", "caution", "gave the function to the HTTP server when the module was imported: requests pass a hook by")
    if process := without_plugins(release, symbol):
        yield Note("no-plugins", "caution", f"loads no plugins in the process that this code belongs to ({process})")


def _origin(release: Release, name: str) -> str:
    found = release.find(name)
    return found.origin if found is not None else name
