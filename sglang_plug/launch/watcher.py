"""The last witness: a small process that ends a launch whose supervisor was killed outright.

It reads a pipe whose other end only the supervisor holds. A closed pipe without the farewell means that nobody is left to clean up.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

from sglang_plug.launch import tree

FAREWELL = b"."
GRACE = 2.0


class Watcher:
    """Handle of the watching process; `dismiss` it when everything was cleaned up."""

    def __init__(self, mark: str, folders: tuple[Path, ...] = ()) -> None:
        self._told: dict[int, int] = {}
        env = {name: value for name, value in os.environ.items() if name != tree.MARK}
        package = str(Path(__file__).parents[2])
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [package, env.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, mark, *map(str, folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a terminal's Ctrl-C is not for it
            env=env,
        )

    def watch(self, known: dict[int, int]) -> None:
        """Tell the launch's processes that were seen so far, pid -> start time, the root first."""
        new = {pid: started for pid, started in known.items() if self._told.get(pid) != started}
        self._told.update(new)
        if new:
            self._say("".join(f"{pid} {started}\n" for pid, started in new.items()).encode())

    def dismiss(self) -> None:
        """End the watch: nothing is left to do."""
        self._say(FAREWELL)
        self._pipe.close()
        try:
            self._process.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:  # stopped by somebody: it must not outlive us, nor hold us
            self._process.kill()
            self._process.wait()

    @property
    def _pipe(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def _say(self, words: bytes) -> None:
        try:
            self._pipe.write(words)
            self._pipe.flush()
        except BrokenPipeError:
            return  # somebody killed the watcher: the supervisor still cleans up


def main(argv: list[str]) -> int:
    """Wait for the supervisor's farewell, or for its death; in the latter case end the launch and remove its folders."""
    mark, folders = argv[0], argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    said = sys.stdin.buffer.read()
    if said.endswith(FAREWELL):
        return 0
    known = {int(pid): int(started) for pid, started in (line.split() for line in said.decode().splitlines())}
    tree.Family(next(iter(known), 0), mark, known).end(grace=GRACE)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
