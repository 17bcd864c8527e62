"""Lanes: every task is answered once, in order, whatever the others do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sglang_plug.probe.inside import lanes

RUN = """
import os, sys
sys.path.insert(0, {root!r})
from sglang_plug.probe.inside import lanes
def task(n):
    if n % 7 == 3: os._exit(n % 100)
    return n
replies = lanes.run_all([lambda n=n: task(n) for n in range({count})], timeout=20, memory=None, jobs={jobs})
for n, reply in enumerate(replies):
    if n % 7 == 3: assert reply["ended"] == {{"kind": "exit", "code": n % 100, "stack": []}}, reply
    else: assert reply["value"] == n, (n, reply)
print(len(replies))
"""


@pytest.mark.parametrize(("count", "jobs"), [(0, 2), (1, 2), (9, 1), (9, 3), (lanes.MOST + 5, 4)])
def test_every_task_is_answered(count, jobs):
    root = str(Path(lanes.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(root=root, count=count, jobs=jobs)], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == str(count), done.stderr
