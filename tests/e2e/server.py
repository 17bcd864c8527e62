"""Starts `sglang-plug serve` as a user does, waits for its word, and sees that nobody is left."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOOL = Path(sys.executable).with_name("sglang-plug")
MARK = "SGLANG_PLUG_TEST"
READY = "answered a request"
SMALL = ("--dtype", "float32", "--mem-fraction-static", "0.3", "--max-total-tokens", "4096")


@dataclass
class Server:
    """One running `sglang-plug serve`.

    Attributes:
        process: the tool.
        port: where the engine listens.
        lines: all that the tool and the engine wrote to stderr so far.
    """

    process: subprocess.Popen[str]
    port: int
    mark: str
    lines: list[str] = field(default_factory=list)
    status: int | None = None
    seen: dict[int, int] = field(default_factory=dict)
    _ready: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return "".join(self.lines)

    def read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if READY in line:
                self._ready.set()
        self._ready.set()

    def wait_ready(self, limit: float) -> None:
        assert self._ready.wait(limit), f"not ready after {limit} s:\n{self.log}"
        assert READY in self.log, self.log
        self.processes()

    def wait_end(self, limit: float) -> int:
        self.status = self.process.wait(limit)
        return self.status

    def processes(self) -> dict[int, str]:
        """Return pid -> title of everything that this launch started, the tool and its watcher included.

        SGLang's processes write their title over their environment, so that who was seen once is remembered.
        """
        found: dict[int, int] = {}
        parents: dict[int, int] = {}
        starts: dict[int, int] = {}
        titles: dict[int, str] = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                titles[int(name)] = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                marked = f"{MARK}={self.mark}".encode() in Path("/proc", name, "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # gone, or somebody else's
            parents[int(name)], starts[int(name)] = int(stat[1]), int(stat[19])
            if titles[int(name)] and (marked or self.seen.get(int(name)) == int(stat[19])):  # a zombie has no title
                found[int(name)] = int(stat[19])
        for pid, parent in sorted(parents.items()):  # children have the higher numbers, but for a wrap
            if parent in found and pid not in found and titles[pid]:
                found[pid] = starts[pid]
        self.seen.update(found)
        return {pid: titles[pid] for pid in found}

    def pid_of(self, title: str) -> int:
        return next(pid for pid, name in self.processes().items() if name.startswith(title))


@contextlib.contextmanager
def serving(
    *arguments: str, env: Mapping[str, str] | None = None, ready: bool = True, limit: float = 600.0, status: int | None = 0
) -> Iterator[Server]:
    """Serve until the block ends, then press Ctrl-C, wait, and check that nobody is left.

    Args:
        arguments: of `serve`, without `--port`.
        env: variables that are added.
        ready: wait for the first answer.
        limit: seconds for that.
        status: what it must end with; None where the block has seen to it.
    """
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    mark = uuid.uuid4().hex
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "SGL_"))}
    process = subprocess.Popen(
        [str(TOOL), "serve", "--port", str(port), *arguments],
        env={**clean, "HF_HUB_OFFLINE": "1", "NO_COLOR": "1", MARK: mark, **(env or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    server = Server(process, port, mark)
    reader = threading.Thread(target=server.read, daemon=True)
    reader.start()
    try:
        if ready:
            server.wait_ready(limit)
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        began = time.monotonic()
        ended = process.wait(60)
        took = time.monotonic() - began
        reader.join(10)
        assert process.stderr is not None
        process.stderr.close()
    assert server.processes() == {}
    if status is not None:
        assert ended == status, server.log
        assert took < 15, f"the shutdown took {took:.1f} s"  # ten seconds, and some for a busy machine
