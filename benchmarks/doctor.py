"""`sglang-plug doctor` over forty light plugins; with real SGLang beside one `import sglang`: medians and the ratio are printed.

    python benchmarks/doctor.py [ENGINE_PYTHON] [ROUNDS]

Claims: forty light plugins without SGLang take at most 3 s on two cores; with real SGLang installed, doctor takes at most 1.3 times one
`import sglang`, whatever the number of plugins. Numbers mean something only on an idle machine: the script says how busy it was.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLATFORM = """
from sglang.srt.platforms.interface import SRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum
class Plat(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = "light"
    device_type = "cpu"
    def get_device(self, device_id=0): return "cpu"
"""
HOOK = """
from sglang.srt.plugins.hook_registry import HookRegistry, HookType
def register():
    HookRegistry.register("textwrap.{target}", lambda original, *args, **kwargs: original(*args, **kwargs), HookType.AROUND)
"""
TARGETS = ("dedent", "fill", "indent", "shorten", "wrap")


def install(site: Path, count: int) -> None:
    """Write `count` plugins: one platform that activates, platforms whose hardware is absent, and hooks."""
    for number in range(count):
        name = f"light{number}"
        platform = number < count // 2
        module = site / name
        module.mkdir(parents=True)
        if platform:
            module.joinpath("__init__.py").write_text(f"def activate():\n    return {f'{name}.plat.Plat' if number == 0 else None!r}\n")
            module.joinpath("plat.py").write_text(PLATFORM)
        else:
            module.joinpath("__init__.py").write_text(HOOK.format(target=TARGETS[number % len(TARGETS)]))
        info = site / f"{name}_dist-1.0.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-dist\nVersion: 1.0\n")
        group, function = ("sglang.srt.platforms", "activate") if platform else ("sglang.srt.plugins", "register")
        info.joinpath("entry_points.txt").write_text(f"[{group}]\n{name} = {name}:{function}\n")


def seconds(command: list[str], env: dict[str, str], *, allowed: tuple[int, ...] = (0,)) -> float:
    """Run a command and return how long it took."""
    started = time.perf_counter()
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode in allowed, (command, done.returncode)
    return time.perf_counter() - started


def main() -> None:
    engine = sys.argv[1] if len(sys.argv) > 1 else None
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    tool = [str(Path(sys.executable).with_name("sglang-plug")), "doctor", "--format", "json"]
    base = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "SGL_"))}
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder), 40)
        env = base | {"PYTHONPATH": folder}
        found = (0, 1)  # the light platform leaves methods out, which doctor says
        alone = [seconds(tool, env, allowed=found) for _ in range(rounds)]
        print(f"40 light plugins, no SGLang: {statistics.median(alone):.2f} s (claim: at most 3 s)")
        if engine is not None:
            command = [*tool, "--python", os.path.abspath(engine)]
            host = [engine, "-c", "import sglang"]
            seconds(host, env)  # warm the file cache for both
            pairs = [(seconds(host, env), seconds(command, env, allowed=found)) for _ in range(rounds)]
            imports, doctors = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratio = statistics.median(b / a for a, b in pairs)
            print(f"import sglang {imports:.2f} s, doctor with 40 plugins {doctors:.2f} s, ratio {ratio:.2f} (claim: at most 1.3)")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
