"""What importing the core costs, beside an interpreter that imports nothing and one that imports what the core builds on.

    python benchmarks/import_core.py

Claim: `import sglang_plug.core.process` takes less than 30 ms and loads the standard library only. Prints processor time, medians.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 15
STARTS = {
    "an empty start": "pass",
    "re, typing, logging": "import re, typing, logging",
    "the core": "import sglang_plug.core.process",
}


def processor_ms(code: str, cache: str) -> float:
    """Return the processor time of one start, in ms."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package comes compiled
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def main() -> None:
    """Print the medians, and the core's cost over an empty start."""
    with tempfile.TemporaryDirectory() as cache:
        for code in STARTS.values():
            processor_ms(code, cache)
        rounds = [[processor_ms(code, cache) for code in STARTS.values()] for _ in range(ROUNDS)]
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        for name, value in zip(STARTS, medians, strict=True):
            print(f"{name:22} {value:6.1f} ms")
        print(f"import sglang_plug.core.process: {medians[-1] - medians[0]:.1f} ms (claim: < 30)")


if __name__ == "__main__":
    main()
