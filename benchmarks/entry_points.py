"""Enumerating entry points over 1,000 distributions, beside what SGLang's loaders do: one `entry_points(group=…)` a question.

    python benchmarks/entry_points.py

Claim: each metadata file is read at most once in a process, however many groups are asked for and however often. Counts the files that the
interpreter opens, by its own audit events.
"""

from __future__ import annotations

import collections
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DISTS, ROUNDS = 1_000, 5
QUESTIONS = 2  # how often each group is asked for: selection, exclusion and loading ask for the platform group again

CHILD = """
import sys, time, json, importlib.metadata as metadata
site, ours, questions = sys.argv[1], sys.argv[2] == "ours", int(sys.argv[3])
from sglang_plug.core import entrypoints
sys.path.insert(0, site)
opened = []
def watch(event, args):
    if event == "open" and str(args[0]).startswith(site):
        opened.append(str(args[0]))
sys.addaudithook(watch)
begin = time.perf_counter()
for _ in range(questions):
    for group in entrypoints.GROUPS:
        if ours:
            found = [(c.name, c.dist) for c in entrypoints.installed(group)]
        else:
            found = [(e.name, e.dist.name) for e in metadata.entry_points(group=group)]
seconds = time.perf_counter() - begin
json.dump({"seconds": seconds, "opened": opened, "found": len(found)}, sys.stdout)
"""


def install(site: Path) -> None:
    """Write the distributions: every tenth has plugins, the others a console script."""
    for number in range(DISTS):
        info = site / f"dist_{number}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist-{number}\nVersion: 1.0\n")
        groups = ("sglang.srt.platforms", "sglang.srt.plugins", "sglang.multimodal_gen.platforms", "sglang.multimodal_gen.plugins")
        plugins = "".join(f"[{group}]\np{number} = mod{number}:f\n" for group in groups) if number % 10 == 0 else ""
        (info / "entry_points.txt").write_text(f"[console_scripts]\ntool{number} = mod{number}:main\n{plugins}")


def run(site: Path, who: str) -> dict[str, object]:
    """Ask all groups in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", CHILD, str(site), who, str(QUESTIONS)], check=True, capture_output=True, text=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def main() -> None:
    """Print counts, medians and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        install(site)
        medians = {}
        for who in ("ours", "stdlib"):
            answers = [run(site, who) for _ in range(ROUNDS)]
            times = collections.Counter(answers[0]["opened"])  # type: ignore[arg-type]
            medians[who] = statistics.median(float(answer["seconds"]) for answer in answers)  # type: ignore[arg-type]
            most = max(times.values())
            print(
                f"{who:8} {medians[who] * 1e3:8.1f} ms   {len(times):,} files, {sum(times.values()):,} reads, one file {most} times at most"
            )
        print(f"stdlib/ours {medians['stdlib'] / medians['ours']:.1f}")


if __name__ == "__main__":
    main()
