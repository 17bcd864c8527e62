"""How much later an engine is ready through `sglang-plug serve` than when its own command starts it.

    python benchmarks/serve.py                       the stand-in engine
    python benchmarks/serve.py PYTHON                real SGLang of that interpreter, on the CPU, with the tiny model
    python benchmarks/serve.py PYTHON ROUNDS FOLDER  FOLDER holds an installed platform (`pip install --target`)

Both ways are taken in turn, from the start of the command to the first 200 of `/health`, asked by this script. Prints seconds and ratios.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOOL = str(Path(sys.executable).with_name("sglang-plug"))
SMALL = ["--dtype", "float32", "--mem-fraction-static", "0.3", "--max-total-tokens", "4096", "--sleep-on-idle"]


def main(python: str | None = None, rounds: str = "3", folder: str | None = None) -> None:
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    if folder is not None:
        env["PYTHONPATH"] = folder
    if python is None:
        own = [sys.executable, "-m", "sglang_plug.standin", "serve"]
        ours = [TOOL, "serve", "--engine", "standin"]
    else:
        from sglang_plug.standin.models import tiny_llama

        model = ["--model-path", str(tiny_llama()), *SMALL]
        own = [str(Path(python).with_name("sglang")), "serve", *model]
        ours = [TOOL, "serve", "--python", python, *model]
    times: dict[str, list[float]] = {"alone": [], "serve": []}
    for turn in range(int(rounds)):
        order = [("alone", own), ("serve", ours)]
        for name, command in order if turn % 2 == 0 else reversed(order):
            times[name].append(time_to_ready(command, env))
            print(f"{name:<6} {times[name][-1]:6.2f} s   load {os.getloadavg()[0]:.1f}", flush=True)
    alone, serve = (statistics.median(values) for values in times.values())
    best = min(times["serve"]) / min(times["alone"])
    print(f"\nmedian: alone {alone:.2f} s, serve {serve:.2f} s, ratio {serve / alone:.3f}; of the best times {best:.3f}")


def time_to_ready(command: list[str], env: dict[str, str]) -> float:
    """Start a server, wait until it is healthy, stop it; return the seconds to health."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    begin = time.monotonic()
    with subprocess.Popen([*command, "--port", str(port)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not healthy(port):
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
            time.sleep(0.05)
        seconds = time.monotonic() - begin
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    return seconds


def healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False


if __name__ == "__main__":
    main(*sys.argv[1:])
