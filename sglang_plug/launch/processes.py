"""Which processes a launch will have, and in which of them hook plugins are loaded, as SGLang's releases do it. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.probe.decision import numbers

if TYPE_CHECKING:
    from sglang_plug.launch.plan import Plan

HOOKS_EVERYWHERE = (0, 5, 22)  # the detokenizer and the data-parallel controller load plugins since
DIFFUSION_PLUGINS = (0, 5, 21)


@dataclass(frozen=True)
class Expected:
    """One kind of process. `count` of them; `hooks` tells whether hook plugins are loaded there, `what` which hooks take effect."""

    title: str
    count: int
    hooks: bool
    what: str


def expected(plan: Plan) -> list[Expected]:
    """Return the processes of a launch, main first."""
    release = numbers(plan.release) if plan.release else (99,)
    arguments = plan.arguments
    if plan.runtime == "diffusion":
        loads = release >= DIFFUSION_PLUGINS
        rows = [
            Expected("main", 1, loads, "ServerArgs, HTTP server"),
            Expected("diffusion worker", arguments.number("gpus"), loads, "GPUWorker, Scheduler, pipelines, models"),
            Expected("HTTP server", int(arguments.on("webui")), loads, "HTTP server"),
        ]
        return [row for row in rows if row.count]
    late = release >= HOOKS_EVERYWHERE
    tokenizers = arguments.number("tokenizers")
    ranks = arguments.number("tp") * arguments.number("pp") * arguments.number("dp")
    rows = [
        Expected("main", 1, True, "ServerArgs" if tokenizers > 1 else "ServerArgs, TokenizerManager, HTTP server"),
        Expected("tokenizer worker", tokenizers if tokenizers > 1 else 0, False, "TokenizerManager, HTTP server"),
        Expected("data-parallel controller", int(arguments.number("dp") > 1), late, "DataParallelController"),
        Expected("scheduler", ranks, not arguments.on("ray"), "Scheduler, TpModelWorker, ModelRunner, layers, models"),
        Expected("detokenizer", arguments.number("detokenizers"), late, "DetokenizerManager"),
        Expected("detokenizer router", int(arguments.number("detokenizers") > 1), False, "nothing"),
    ]
    return [row for row in rows if row.count]


# Where the code behind a target runs, by the start of its name; the first match counts.
_PLACES = (
    ("sglang.srt.managers.detokenizer_manager", "detokenizer"),
    ("sglang.srt.managers.data_parallel_controller", "data-parallel controller"),
    ("sglang.srt.managers.tokenizer_manager", "tokenizer worker"),
    ("sglang.srt.managers.template_manager", "tokenizer worker"),
    ("sglang.srt.entrypoints", "tokenizer worker"),
    ("sglang.srt.parser", "tokenizer worker"),
    ("sglang.srt.server_args", "main"),
    ("sglang.srt.arg_groups", "main"),
    ("sglang.srt", "scheduler"),
    ("sglang.multimodal_gen.runtime.server_args", "main"),
    ("sglang.multimodal_gen.runtime.entrypoints", "main"),
    ("sglang.multimodal_gen.runtime.launch_server", "main"),
    ("sglang.multimodal_gen", "diffusion worker"),
)


def place_of(target: str, rows: list[Expected]) -> str | None:
    """Return the title of the process in which the code behind a target runs; None where that is not SGLang's code."""
    dotted = target.replace(":", ".")
    place = next((title for prefix, title in _PLACES if dotted.startswith(prefix + ".")), None)
    titles = {row.title for row in rows}
    return "main" if place == "tokenizer worker" and place not in titles else place
