"""Records of hooks: a temporary distribution that makes one launch write them, and the reading of what it wrote.

Nothing is installed: the distribution is a folder on the PYTHONPATH of that launch alone, and an allowlist is extended for it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_plug import __version__
from sglang_plug.core import environ
from sglang_plug.errors import LaunchError
from sglang_plug.launch import recorder
from sglang_plug.probe.environment import variables_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_plug.launch.plan import Plan

PLUGIN = "sglang_plug_recorder"
LAUNCH = "launch.json"
_ENTRY_POINTS = f"""\
[sglang.srt.plugins]
{PLUGIN} = {PLUGIN}:srt

[sglang.multimodal_gen.plugins]
{PLUGIN} = {PLUGIN}:diffusion
"""


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
    platform: dict[str, str] | None = None
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


# -- writing -----------------------------------------------------------------------------------------------------------------------


def prepare(plan: Plan, folder: Path | None) -> tuple[Plan, Path, Path]:
    """Return the plan with the recorder on its path, the temporary folder to remove afterwards, and where the records go.

    Args:
        plan: the launch.
        folder: where the user wants the records, calls counted; None keeps them in the temporary folder, without counting.

    Raises:
        LaunchError: the folder cannot be written, or holds the records of another launch.
    """
    records = None if folder is None else _claim(folder.absolute())
    temporary = Path(tempfile.mkdtemp(prefix="sglang-plug-"))
    site = temporary / "site"
    info = site / f"{PLUGIN}-{__version__}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PLUGIN}\nVersion: {__version__}\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS, encoding="utf-8")
    shutil.copy(recorder.__file__, site / f"{PLUGIN}.py")
    if records is None:
        records = temporary / "records"
        records.mkdir()
    environment = plan.environment
    changes = {
        recorder.FOLDER: str(records),
        recorder.COUNTING: "0" if folder is None else "1",
        "PYTHONPATH": ":".join(filter(None, [str(site), environment.env.get("PYTHONPATH", "")])),
        **_allowing(environment.env.get),
    }
    return replace(plan, environment=environment.with_variables(changes)), temporary, records


def _allowing(get: Any) -> dict[str, str | None]:
    """Return the variables that add the recorder to an allowlist; none where there is no allowlist."""
    listed = get(environ.PLUGINS.replace("SGLANG_", "SGL_", 1)) or get(environ.PLUGINS)
    return variables_for(plugins=f"{listed},{PLUGIN}") if listed else {}


def _claim(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LAUNCH).touch(exist_ok=False)
    except FileExistsError as exc:
        raise LaunchError(
            "the folder holds the records of another launch" if (folder / LAUNCH).exists() else "not a folder",
            subject=f"--record {folder}",
            hint=f"name another folder, or remove this one: rm -r {folder}",
        ) from exc
    except OSError as exc:
        raise LaunchError(
            "the records cannot be written", subject=f"--record {folder}", cause=str(exc), hint="name a folder that can be written"
        ) from exc
    return folder


def write_launch(folder: Path, facts: dict[str, Any]) -> None:
    """Write the facts of the launch beside its records.

    Raises:
        OSError: they cannot be written.
    """
    beside = folder / (LAUNCH + ".new")
    beside.write_text(json.dumps({"schema": 1, **facts}, indent=1), encoding="utf-8")
    beside.replace(folder / LAUNCH)


# -- reading -----------------------------------------------------------------------------------------------------------------------


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
    except (OSError, ValueError) as exc:
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
            processes.append(_process(json.loads(path.read_text(encoding="utf-8")), folder))
        except (OSError, ValueError, KeyError, TypeError) as exc:
            damaged.append((path.name, f"{type(exc).__name__}: {exc}"))
    processes.sort(key=lambda p: (p.role != "main", p.role, sorted(p.rank.items()), p.pid))
    return tuple(processes), tuple(damaged)


def _process(facts: dict[str, Any], folder: Path) -> ProcessRecord:
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


def _hook(entry: dict[str, Any], folder: Path) -> HookRecord:
    failure = entry.get("failure") or {}
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
    where = entry.get("counter")
    return record if where is None else _with_counts(record, folder / Path(where["file"]).name, int(where["word"]))


def _with_counts(record: HookRecord, path: Path, word: int) -> HookRecord:
    with path.open("rb") as file:
        file.seek(word * 8)
        words = memoryview(file.read(recorder.BLOCK * 8)).cast("Q")
    if len(words) < recorder.BLOCK:
        raise ValueError(f"{path.name} is shorter than its record says")
    kept = min(words[recorder.DONE], recorder.EVENTS)
    step = recorder.EVENT_WORDS
    events = [tuple(words[recorder.RING + i * step : recorder.RING + i * step + step]) for i in range(kept)]
    return replace(
        record,
        counted=True,
        count=words[recorder.COUNT],
        done=words[recorder.DONE],
        raised=words[recorder.RAISED],
        own=words[recorder.OWN],
        spent=words[recorder.SPENT],
        longest=words[recorder.LONGEST],
        first=words[recorder.FIRST],
        last=words[recorder.LAST],
        events=tuple(sorted((b, n, t) for b, n, t in events)),
    )


# -- judging -----------------------------------------------------------------------------------------------------------------------


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
