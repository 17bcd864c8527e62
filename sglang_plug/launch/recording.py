"""What the recorder wrote about one launch: read, judged, and turned into a trace. Changes no file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_plug.errors import LaunchError
from sglang_plug.launch.recorder import counters

if TYPE_CHECKING:
    from collections.abc import Iterable

LAUNCH = "launch.json"

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError)
_TEXT = (str, type(None))
# What a record must look like: anybody may have written it.
_PROCESS: dict[str, Any] = {"role": str, "pid": int, "runtime": str, "rank": dict, "parent": int, "sglang": _TEXT}
_PROCESS |= {"platform": (dict, type(None)), "plugins_failed": list, "hooks": list}
_HOOK: dict[str, Any] = {"target": str, "type": str, "hook": str, "plugin": _TEXT, "dist": _TEXT, "applied": bool, "is_class": bool}
_PLATFORM = {"qualname": str, "device_name": str, "device_type": str}
_FAILURE = {"error": str, "cause": str}


@dataclass(frozen=True)
class HookRecord:
    """One hook in one process.

    Attributes:
        target, type, hook, plugin, dist: as registered.
        applied: whether its target was patched.
        error, cause: why not, and the root of it.
        is_class: a replacement class; its use is not counted.
        counted: whether its calls were counted.
        count, done, raised: calls, how many of them have ended, and how many of these raised.
        own, spent, longest: nanoseconds outside the original, in all, and of the most expensive call.
        first, last: when, on the machine's monotonic clock.
        events: (begin, nanoseconds, thread) of the last calls.
    """

    target: str
    type: str
    hook: str
    plugin: str | None
    dist: str | None
    applied: bool
    error: str | None = None
    cause: str | None = None
    is_class: bool = False
    counted: bool = False
    count: int = 0
    done: int = 0
    raised: int = 0
    own: int = 0
    spent: int = 0
    longest: int = 0
    first: int = 0
    last: int = 0
    events: tuple[tuple[int, int, int], ...] = ()

    @property
    def mean(self) -> float | None:
        """Mean own cost of a call in seconds."""
        return self.own / self.done / 1e9 if self.done else None


@dataclass(frozen=True)
class ProcessRecord:
    """One runtime in one process."""

    role: str
    pid: int
    runtime: str
    rank: dict[str, int] = field(default_factory=dict)
    parent: int = 0
    sglang: str | None = None
    platform: dict[str, Any] | None = None
    plugins_failed: tuple[dict[str, str], ...] = ()
    hooks: tuple[HookRecord, ...] = ()

    @property
    def title(self) -> str:
        """Role and rank in words: `scheduler TP1`. The only pipeline stage, or the first of several, goes without saying."""
        ranks = [f"{name.removesuffix('_rank').upper()}{value}" for name, value in self.rank.items() if value or name != "pp_rank"]
        return " ".join([self.role, *ranks])


@dataclass(frozen=True)
class Recording:
    """What one launch wrote.

    Attributes:
        launch: the facts of the launch: engine, release, arguments, and the processes that were there when it was ready.
        processes: the records, main first.
        damaged: files that could not be read, with the reason.
    """

    launch: dict[str, Any] = field(default_factory=dict)
    processes: tuple[ProcessRecord, ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()


def read(folder: Path) -> Recording:
    """Read what a launch wrote; files that cannot be read are told, not skipped in silence.

    Raises:
        LaunchError: there is no recording.
    """
    if not (folder / LAUNCH).is_file():
        raise LaunchError(
            "no recording here", subject=str(folder), hint=f"make one: sglang-plug serve --record {folder} …, then send requests"
        )
    damaged: tuple[tuple[str, str], ...] = ()
    try:
        launch = json.loads((folder / LAUNCH).read_text(encoding="utf-8") or "{}")
        for process in _shaped(launch, {}).get("processes", ()):
            _shaped(process, {"pid": int, "title": str})
    except _UNREADABLE as exc:
        launch, damaged = {}, ((LAUNCH, f"{type(exc).__name__}: {exc}"),)
    processes, unreadable = read_processes(folder)
    return Recording(launch, processes, damaged + unreadable)


def read_processes(folder: Path) -> tuple[tuple[ProcessRecord, ...], tuple[tuple[str, str], ...]]:
    """Return the records of a folder, main first, and the files that cannot be read, with the reason."""
    processes, damaged = [], []
    for path in sorted(folder.glob("*.json")):
        if path.name == LAUNCH:
            continue
        try:
            if not path.is_file():
                raise ValueError("not a file")
            processes.append(_process(json.loads(path.read_text(encoding="utf-8")), folder))
        except _UNREADABLE as exc:
            damaged.append((path.name, f"{type(exc).__name__}: {exc}"))
    processes.sort(key=lambda p: (p.role != "main", p.role, sorted(p.rank.items()), p.pid))
    return tuple(processes), tuple(damaged)


def _shaped(facts: Any, shape: dict[str, Any]) -> Any:
    """Return `facts` where they are an object with these members.

    Raises:
        KeyError, TypeError: they are not.
    """
    if not isinstance(facts, dict):
        raise TypeError(f"{type(facts).__name__} where an object belongs")
    for name, kind in shape.items():
        if not isinstance(facts[name], kind):
            raise TypeError(f"{name} is {type(facts[name]).__name__}")
    return facts


def _process(facts: Any, folder: Path) -> ProcessRecord:
    _shaped(facts, _PROCESS)
    _shaped(facts["rank"], dict.fromkeys(facts["rank"], int))
    if facts["platform"] is not None:
        _shaped(facts["platform"], _PLATFORM)
    for failure in facts["plugins_failed"]:
        _shaped(failure, {"plugin": str, "phase": str, **_FAILURE})
    return ProcessRecord(
        role=facts["role"],
        pid=facts["pid"],
        runtime=facts["runtime"],
        rank=dict(facts["rank"]),
        parent=facts["parent"],
        sglang=facts["sglang"],
        platform=facts["platform"],
        plugins_failed=tuple(facts["plugins_failed"]),
        hooks=tuple(_hook(entry, folder) for entry in facts["hooks"]),
    )


def _hook(entry: Any, folder: Path) -> HookRecord:
    _shaped(entry, _HOOK)
    failure = _shaped(entry["failure"], _FAILURE) if entry.get("failure") else {}
    record = HookRecord(
        target=entry["target"],
        type=entry["type"],
        hook=entry["hook"],
        plugin=entry["plugin"],
        dist=entry["dist"],
        applied=entry["applied"],
        error=failure.get("error"),
        cause=failure.get("cause"),
        is_class=entry["is_class"],
    )
    if (where := entry.get("counter")) is None:
        return record
    _shaped(where, {"file": str, "word": int})
    return _with_counts(record, folder / Path(where["file"]).name, where["word"])


def _with_counts(record: HookRecord, path: Path, word: int) -> HookRecord:
    if not path.is_file():
        raise ValueError(f"{path.name} is not there")
    with path.open("rb") as file:
        file.seek(word * 8)
        words = memoryview(file.read(counters.BLOCK * 8)).cast("Q")
    if len(words) < counters.BLOCK:
        raise ValueError(f"{path.name} is shorter than its record says")
    kept = min(words[counters.DONE], counters.EVENTS)
    step = counters.EVENT_WORDS
    events = [tuple(words[counters.RING + i * step : counters.RING + i * step + step]) for i in range(kept)]
    return replace(
        record,
        counted=True,
        count=words[counters.COUNT],
        done=words[counters.DONE],
        raised=words[counters.RAISED],
        own=words[counters.OWN],
        spent=words[counters.SPENT],
        longest=words[counters.LONGEST],
        first=words[counters.FIRST],
        last=words[counters.LAST],
        events=tuple(sorted((b, n, t) for b, n, t in events)),
    )


def identity(hook: HookRecord) -> tuple[str, str, str]:
    """Return what is the same for one hook in all processes."""
    return hook.target, hook.type, hook.hook


def silent(recording: Recording) -> list[HookRecord]:
    """Return the hooks that fired in none of the processes in which they were applied, one of each."""
    fired = {identity(hook) for hook in _all(recording) if hook.count}
    quiet = {identity(hook): hook for hook in _all(recording) if hook.applied and hook.counted}
    return [hook for key, hook in quiet.items() if key not in fired]


def failed(recording: Recording) -> list[tuple[ProcessRecord, HookRecord]]:
    """Return the hooks that could not be applied, with their process."""
    return [(process, hook) for process in recording.processes for hook in process.hooks if not hook.applied]


def last_words(processes: Iterable[ProcessRecord]) -> str | None:
    """Return in words which hook was called last, of those that raised or whose call never ended; None where all went well."""
    called = [(hook.last, process, hook) for process in processes for hook in process.hooks if hook.raised or hook.count > hook.done]
    if not called:
        return None
    _, process, hook = max(called, key=lambda entry: entry[0])
    how = f"its call in {process.title} had not ended" if hook.count > hook.done else f"it raised in {process.title}"
    return f"hook {hook.hook} of {hook.plugin or 'an unknown plugin'} on {hook.target}: {how}, as the record says"


def without_plugins(recording: Recording) -> list[tuple[str, int]]:
    """Return title and pid of the engine's processes in which no plugin was loaded. Helpers of Python and of the shell do not count."""
    recorded = {process.pid for process in recording.processes}
    engine = [p for p in recording.launch.get("processes", ()) if p["title"].startswith(("sglang", "ray::"))]
    return [(p["title"], p["pid"]) for p in engine if p["pid"] not in recorded]


def _all(recording: Recording) -> Iterable[HookRecord]:
    return (hook for process in recording.processes for hook in process.hooks)


def chrome_trace(recording: Recording) -> dict[str, Any]:
    """Return the recorded calls in Chrome's trace format (chrome://tracing, Perfetto). Times are microseconds."""
    events: list[dict[str, Any]] = []
    for process in recording.processes:
        events.append({"ph": "M", "name": "process_name", "pid": process.pid, "tid": 0, "args": {"name": process.title}})
        for hook in process.hooks:
            name = ".".join(hook.target.replace(":", ".").split(".")[-2:])
            events += [
                {
                    "ph": "X",
                    "name": name,
                    "cat": hook.type,
                    "ts": begin / 1000,
                    "dur": spent / 1000,
                    "pid": process.pid,
                    "tid": thread % (1 << 31),
                    "args": {"hook": hook.hook, "plugin": hook.plugin},
                }
                for begin, spent, thread in hook.events
            ]
    return {"traceEvents": events, "displayTimeUnit": "ms"}
