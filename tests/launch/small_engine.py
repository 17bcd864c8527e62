"""A very small server with SGLang's outside: log lines, `/health`, `/generate`, a child in a session of its own. Run by path."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TextIO

CHILD = """
import signal, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200 if self.path in {"/health", "/v1/models"} else 404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.server.generate_status == 0:  # type: ignore[attr-defined]
            time.sleep(600)  # in a thread that ends with the process
        self._answer(self.server.generate_status)  # type: ignore[attr-defined]

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def say(text: str, where: TextIO = sys.stderr) -> None:
    where.write(f"{text}\n")
    where.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--die", choices=["import", "oom", "scheduler"])
    parser.add_argument("--children", nargs="*", default=[])
    parser.add_argument(
        "--worker", action="store_true", help="start a child that calls itself as SGLang's schedulers do, and end it when asked"
    )
    parser.add_argument("--pids")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--default-signals", action="store_true")
    parser.add_argument("--generate-status", type=int, default=200)
    parser.add_argument("--say", nargs="*", default=["The server is fired up and ready to roll!"])
    parser.add_argument("--exit-status", type=int, default=0)
    options = parser.parse_args()
    pids = [os.getpid()]
    for kind in options.children:
        child = subprocess.Popen(
            [sys.executable, "-S", "-c", CHILD, kind],
            stdout=subprocess.PIPE,
            start_new_session=kind != "plain",
            env={} if kind == "hidden" else None,
        )
        assert child.stdout is not None
        child.stdout.readline()
        pids.append(child.pid)
    worker = None
    if options.worker:
        worker = subprocess.Popen(["sglang::scheduler", "-S", "-c", CHILD], executable=sys.executable, stdout=subprocess.DEVNULL)
    if options.pids:
        with open(options.pids + ".new", "w", encoding="utf-8") as file:
            file.write(" ".join(map(str, pids)))
        os.replace(options.pids + ".new", options.pids)
    say("[2026-01-01 00:00:00] server_args={}")
    if options.die == "import":
        raise ModuleNotFoundError("No module named 'vendor_rt'")
    if options.die == "oom":
        os.kill(os.getpid(), signal.SIGKILL)
    if options.die == "scheduler":
        say(
            "[2026-01-01 00:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
            '  File "scheduler.py", line 1, in run_scheduler_process\n    f()\n'
            "AssertionError: SGLANG_CPU_OMP_THREADS_BIND is not set, in this case, the total number of ranks\n"
            "[2026-01-01 00:00:00] Received sigquit from a child process. It usually means the child failed."
        )
        raise SystemExit(1)
    if not options.default_signals:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if options.deaf else lambda *_: os._exit(options.exit_status))
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.generate_status = options.generate_status  # type: ignore[attr-defined]
    if worker is not None:
        signal.signal(signal.SIGUSR1, lambda *_: worker.kill())
    for line in options.say:
        say(line)
    say("on stdout", sys.stdout)
    server.serve_forever()
    time.sleep(600)


if __name__ == "__main__":
    main()
