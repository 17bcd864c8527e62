"""`sglang-plug resolve` beside the question it answers, asked of SGLang itself: runs of both alternate, medians and the ratio are printed.

    python benchmarks/resolve.py ENGINE_PYTHON [ROUNDS]

Claims, with a light `activate()` and real SGLang installed: resolve takes less than 0.35 s, and is at least 30 times faster than
`python -c "from sglang.srt.platforms import current_platform"`; `--version` takes at most 2.5 bare interpreter starts, `--help` 0.25 s.
Numbers mean something only on an idle machine: the script says how busy it was.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ASK_HOST = "from sglang.srt.platforms import current_platform; assert type(current_platform).__name__ == 'Plat'"
PLATFORM = """
from sglang.srt.platforms.interface import SRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum
class Plat(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = "light"
    device_type = "cpu"
"""


def install(site: Path) -> None:
    """Write a platform plugin whose callback is light."""
    (site / "light").mkdir(parents=True)
    (site / "light" / "__init__.py").write_text("def activate():\n    return 'light.plat.Plat'\n")
    (site / "light" / "plat.py").write_text(PLATFORM)
    info = site / "light_dist-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: light-dist\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sglang.srt.platforms]\nlight = light:activate\n")


def seconds(command: list[str], env: dict[str, str]) -> float:
    """Run a command, which must succeed, and return how long it took."""
    started = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    engine = os.path.abspath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    tool = str(Path(sys.executable).with_name("sglang-plug"))
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder))
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "SGL_"))} | {"PYTHONPATH": folder}
        commands = {
            "host": [engine, "-c", ASK_HOST],
            "resolve": [tool, "resolve", "--runtime", "srt", "--python", engine, "--format", "json"],
            "list": [tool, "list", "--python", engine],
            "bare start": [sys.executable, "-c", "pass"],
            "--version": [tool, "--version"],
            "--help": [tool, "--help"],
        }
        seconds(commands["host"], env)  # files into the cache, bytecode onto the disk
        seconds(commands["resolve"], env)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(seconds(command, env))
    medians = {name: statistics.median(found) for name, found in times.items()}
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, medians of {rounds}")
    for name, found in times.items():
        print(f"{name:<11} {medians[name]:7.3f} s   (from {min(found):.3f} to {max(found):.3f})")
    ratios = sorted(host / ours for host, ours in zip(times["host"], times["resolve"], strict=True))
    print(f"resolve is {medians['host'] / medians['resolve']:.0f} times faster than the host (pairs: {ratios[0]:.0f} to {ratios[-1]:.0f})")
    print(f"--version is {medians['--version'] / medians['bare start']:.1f} bare starts")


if __name__ == "__main__":
    main()
