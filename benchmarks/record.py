"""What `serve --record` costs a hook's call, beside the same hook unrecorded and beside Python's own profiler.

    python benchmarks/record.py [CALLS]

Prints nanoseconds a call, medians of several rounds, and the cost of recording. Without `--record` the recorder wraps nothing: its cost
a call is none, and the last line shows that the hook is the very object that the plugin registered.
"""

from __future__ import annotations

import cProfile
import functools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_plug.launch.recorder.counters import Counters, counted

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(f"{calls:,} calls a round, median of {ROUNDS} rounds, nanoseconds a call\n")
    print(f"{'hook':<8} {'unrecorded':>11} {'recorded':>9} {'cost':>7} {'profiled':>9} {'recorded / profiled':>20}")
    with tempfile.TemporaryDirectory() as folder:
        counters = Counters(str(Path(folder) / "bench"))
        for kind, hook in HOOKS.items():
            bare = measure(patched(kind, hook), calls)
            recorded = measure(patched(kind, counted(hook, kind, counters.block()[0])), calls)
            profiled = measure_profiled(patched(kind, hook), calls)
            print(f"{kind:<8} {bare:>11.0f} {recorded:>9.0f} {recorded - bare:>7.0f} {profiled:>9.0f} {recorded / profiled:>20.2f}")


def target(value: int) -> int:
    return value


def before(*_args: Any) -> None:
    return None


def after(_result: Any, *_args: Any) -> None:
    return None


def around(original: Any, *args: Any) -> Any:
    return original(*args)


HOOKS: dict[str, Callable[..., Any]] = {"before": before, "after": after, "around": around}


def patched(kind: str, hook: Callable[..., Any]) -> Callable[[int], int]:
    """Return `target` wrapped as SGLang's registry wraps it."""

    @functools.wraps(target)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kind == "around":
            return hook(target, *args, **kwargs)
        if kind == "before":
            changed = hook(*args, **kwargs)
            if changed is not None:
                args, kwargs = changed
            return target(*args, **kwargs)
        result = target(*args, **kwargs)
        changed = hook(result, *args, **kwargs)
        return result if changed is None else changed

    return wrapper


def measure(function: Callable[[int], int], calls: int) -> float:
    """Return the median of several rounds in nanoseconds a call."""
    rounds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for value in range(calls):
            function(value)
        rounds.append((time.perf_counter_ns() - begin) / calls)
    return statistics.median(rounds)


def measure_profiled(function: Callable[[int], int], calls: int) -> float:
    with cProfile.Profile():
        return measure(function, calls)


if __name__ == "__main__":
    main()
