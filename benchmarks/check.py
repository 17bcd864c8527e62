"""`sglang-plug check` on a plugin of 150 files, against one release and against thirteen, beside merely parsing the same files.

    python benchmarks/check.py

Claim: less than 1 s for one release, less than 3 s for thirteen, on two quiet cores. Prints wall and CPU seconds: on a busy machine the
latter count.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FILES, ROUNDS = 150, 5
THIRTEEN = [f"0.5.{minor}" for minor in range(11, 24)]
PICKED = [
    ("managers.scheduler", "Scheduler"),
    ("managers.tokenizer_manager", "TokenizerManager"),
    ("layers.linear", "ColumnParallelLinear"),
    ("layers.layernorm", "RMSNorm"),
    ("model_executor.forward_batch_info", "ForwardBatch"),
    ("distributed.parallel_state", "get_tp_group"),
    ("mem_cache.memory_pool", "KVCache"),
    ("utils", "is_cuda"),
    ("server_args", "ServerArgs"),
    ("layers.quantization", "QuantizationConfig"),
    ("sampling.sampling_params", "SamplingParams"),
]
PARSE = "import ast, pathlib, sys\nfor p in pathlib.Path(sys.argv[1]).rglob('*.py'): ast.parse(p.read_bytes())"


def write_plugin(root: Path) -> None:
    """Write a plugin as vendors have them: many files, each importing some of SGLang's inside, a third with hooks."""
    (root / "plug").mkdir(parents=True)
    (root / "plug/__init__.py").write_text("")
    table = '[project]\nname = "plug"\nversion = "1"\n[project.entry-points."sglang.srt.plugins"]\nmine = "plug.m0:register"\n'
    (root / "pyproject.toml").write_text(table)
    for number in range(FILES - 1):
        picked = [PICKED[(number + step) % len(PICKED)] for step in range(4)]
        lines = [f"from sglang.srt.{module} import {name}" for module, name in picked]
        lines += ["from sglang.srt.plugins.hook_registry import HookRegistry, HookType", 'BASE = "sglang.srt.managers.scheduler.Scheduler"']
        for index in range(25):
            lines += [
                f"def function_{index}(a, b=1, *args, **kwargs):",
                "    value = [item + b for item in args]",
                "    return dict(zip(value, a))",
            ]
        lines += ["def register():"]
        if number % 3 == 0:
            lines += ["    for name in ('run_batch', 'get_next_batch_to_run', 'process_batch_result', 'gone'):"]
            lines += ["        HookRegistry.register(f'{BASE}.{name}', function_0, HookType.AROUND)"]
        lines += ["    return None"]
        (root / f"plug/m{number}.py").write_text("\n".join(lines) + "\n")


def measure(command: list[str]) -> tuple[float, float]:
    """Return the medians of wall and CPU seconds."""
    walls, cpus = [], []
    for _ in range(ROUNDS):
        before, begin = os.times(), time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)
        after = os.times()
        walls.append(time.perf_counter() - begin)
        cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return statistics.median(walls), statistics.median(cpus)


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "plugin"
        write_plugin(root)
        check = [sys.executable, "-m", "sglang_plug", "check", str(root), "--format", "json"]
        rows = [
            ("parse the files only", [sys.executable, "-c", PARSE, str(root)], None),
            ("check, 1 release", [*check, "--sglang", "0.5.23"], 1.0),
            ("check, 13 releases", [*check, *(word for version in THIRTEEN for word in ("--sglang", version))], 3.0),
        ]
        base = 0.0
        print(f"{FILES} files, {sum(path.stat().st_size for path in root.rglob('*.py')) / 1e6:.1f} MB; medians of {ROUNDS}")
        for name, command, claim in rows:
            wall, cpu = measure(command)
            base = base or cpu
            verdict = "" if claim is None else f"   claim < {claim:.0f} s: {'holds' if cpu < claim else 'MISSED'}"
            print(f"{name:<24} wall {wall:5.2f} s   cpu {cpu:5.2f} s   {cpu / base:4.1f}× parsing{verdict}")


if __name__ == "__main__":
    main()
