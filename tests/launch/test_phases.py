"""Milestones of a start, read from lines that SGLang 0.5.23 and the stand-in wrote."""

from __future__ import annotations

from sglang_plug.launch.phases import Progress

SGLANG = """\
[2026-01-01 11:59:24] The current platform does not support Intel AMX, will fallback to torch_native backend.
[2026-01-01 11:59:25] server_args={'model_path': '/tmp/tiny', 'port': 32010}
[2026-01-01 11:59:32] Init parallel begin.
[2026-01-01 11:59:32] Init parallel ends. elapsed=0.03 s
[2026-01-01 11:59:33] Load weight begin. avail mem=21.54 GB
[2026-01-01 11:59:33] Load weight end. elapsed=0.05 s, type=LlamaForCausalLM, avail mem=21.54 GB, mem usage=0.00 GB.
[2026-01-01 11:59:34] KV Cache is allocated. dtype: torch.float32, #tokens: 4096, K size: 0.00 GB, V size: 0.00 GB
[2026-01-01 11:59:34] Memory pool end. avail mem=21.53 GB
[2026-01-01 11:59:34] INFO:     Application startup complete.
[2026-01-01 11:59:34] INFO:     Uvicorn running on http://127.0.0.1:32010 (Press CTRL+C to quit)
[2026-01-01 11:59:35] The server is fired up and ready to roll!
"""
STANDIN = """\
[2026-01-01 12:24:10,955 scheduler_TP0] INFO sglang.srt.model_executor.model_runner: KV cache: 262144 tokens in pages of 16
[2026-01-01 12:24:11,341 MainProcess] INFO sglang.srt.entrypoints.http_server: ready: http://127.0.0.1:38747
INFO:     Application startup complete.
"""


def follow(log: str) -> list[str]:
    progress = Progress()
    return [said for second, line in enumerate(log.splitlines()) if (said := progress.read(line, float(second)))]


def test_each_milestone_is_told_once_and_in_order():
    assert follow(SGLANG) == [
        "arguments resolved",
        "processes joined",
        "weights loading",
        "weights loaded",
        "cache allocated",
        "HTTP listening",
        "engine says ready",
    ]


def test_the_stand_in():
    assert follow(STANDIN) == ["cache allocated", "engine says ready", "HTTP listening"]


def test_where_a_start_stands():
    progress = Progress()
    assert progress.last == "imports"
    progress.read("[x] Load weight begin. avail mem=1 GB", 3.0)
    assert progress.last == "weights loading"
    assert progress.reached == {"weights loading": 3.0}
