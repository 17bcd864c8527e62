"""A recording of hooks for people and for machines: values in, words out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sglang_plug.launch import recording as recordings
from sglang_plug.report.escape import visible
from sglang_plug.report.terminal import padded, width
from sglang_plug.report.text import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sglang_plug.launch.recording import HookRecord, Recording

HEAD = ("calls", "mean", "longest", "raised", "state", "type", "target", "plugin")
_RIGHT = 4  # so many columns hold numbers


def table(recording: Recording, *, everything: bool = False) -> Iterator[list[Span]]:
    """Yield the lines of a table a process, then what deserves attention. Never cut to the terminal's width: it is meant for pipes too.

    Args:
        recording: what to show.
        everything: also hooks that are applied in a process where they are not called, but fire in another.
    """
    silent = {recordings.identity(hook) for hook in recordings.silent(recording)}
    for process in recording.processes:
        platform = f", platform {process.platform['qualname']}" if process.platform else ""
        yield [Span(visible(f"{process.title} (pid {process.pid}, {process.runtime}{platform})"), "bold")]
        shown = [hook for hook in process.hooks if everything or hook.count or not hook.applied or recordings.identity(hook) in silent]
        if hidden := len(process.hooks) - len(shown):
            yield [Span(f"  {hidden} applied here and called in other processes only", "dim")]
        if not process.hooks:
            yield [Span("  no hook is registered here", "dim")]
        cells = [HEAD, *map(_row, sorted(shown, key=lambda hook: (hook.target, hook.plugin or "")))] if shown else []
        for index, line in enumerate(_aligned(cells)):
            yield [Span(line, "dim" if index == 0 else "")]
    for line, style in remarks(recording):
        yield [Span(visible(line), style)]


def _row(hook: HookRecord) -> tuple[str, ...]:
    counted = hook.counted and hook.applied
    fired = counted and hook.count > 0
    return (
        f"{hook.count:,}" if counted else "-",
        duration(hook.mean) if fired else "-",
        duration(hook.longest / 1e9) if fired else "-",
        f"{hook.raised:,}" if fired else "-",
        state(hook),
        visible(hook.type),
        visible(hook.target),
        visible(hook.plugin or "-"),
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [padded(cell, w, right=i < _RIGHT) for i, (cell, w) in enumerate(zip(row, widths, strict=True))]
        yield "  " + "  ".join(cells).rstrip()


def state(hook: HookRecord) -> str:
    """Return a hook's state in a word or two."""
    if not hook.applied:
        return "failed"
    if hook.is_class:
        return "class, not counted"
    if not hook.counted:
        return "not counted"
    return "fired" if hook.count else "silent"


def duration(seconds: float | None) -> str:
    """Return a duration in the unit that reads best."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def remarks(recording: Recording) -> Iterator[tuple[str, str]]:
    """Yield what deserves attention, each with its style: failures with their cause, silent hooks, processes without plugins."""
    if not recording.processes:
        yield "no process wrote a record: no plugins were loaded, or the disk was full (the engine's log says so)", "yellow"
    for process, hook in recordings.failed(recording):
        why = hook.cause or hook.error or "not applied"
        yield f"failed in {process.title} ({process.pid}): {hook.target} of {hook.plugin or 'unknown'}: {why}", "bold red"
    for process in recording.processes:
        for failure in process.plugins_failed:
            yield f"plugin {failure['plugin']} failed in {process.title} ({process.pid}): {failure['cause']}", "bold red"
    for process in recording.processes:
        for hook in process.hooks:
            if hook.raised:
                calls = f"{hook.raised:,} of {hook.done:,} calls"
                yield f"raised in {process.title} ({process.pid}): {hook.target} of {hook.plugin or 'unknown'}, in {calls}", "bold red"
    for hook in recordings.silent(recording):
        yield f"never fired: {hook.target} ({hook.type}, {hook.plugin or 'unknown'})", "yellow"
    for title, pid in recordings.without_plugins(recording):
        yield f"no plugins are loaded in {title} ({pid}): hooks do not exist there", "yellow"
    for name, why in recording.damaged:
        yield f"cannot be read: {name}: {why}", "yellow"


def as_json(recording: Recording) -> dict[str, Any]:
    """Return the recording as plain JSON values; seconds, not nanoseconds."""
    return {
        "schema": 1,
        "launch": recording.launch,
        "processes": [
            {
                "role": process.role,
                "title": process.title,
                "pid": process.pid,
                "rank": process.rank,
                "runtime": process.runtime,
                "sglang": process.sglang,
                "platform": process.platform and {key: value for key, value in process.platform.items() if key != "promised"},
                "plugins_failed": list(process.plugins_failed),
                "hooks": [_hook(hook) for hook in process.hooks],
            }
            for process in recording.processes
        ],
        "silent": [{"target": hook.target, "type": hook.type, "plugin": hook.plugin} for hook in recordings.silent(recording)],
        "without_plugins": [{"title": title, "pid": pid} for title, pid in recordings.without_plugins(recording)],
        "damaged": [{"file": name, "why": why} for name, why in recording.damaged],
    }


def _hook(hook: HookRecord) -> dict[str, Any]:
    facts = {name: value for name, value in asdict(hook).items() if name not in {"events", "own", "spent", "longest", "first", "last"}}
    seconds = {
        "mean_seconds": hook.mean,
        "own_seconds": hook.own / 1e9,
        "spent_seconds": hook.spent / 1e9,
        "longest_seconds": hook.longest / 1e9,
    }
    return {**facts, "state": state(hook), **seconds}
