"""The processes in which a name of SGLang runs. Facts as data; questions over one release."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol

#: where code runs, by the beginning of its module's name; the longest that fits counts
_HOMES: dict[str, tuple[str, ...]] = {
    "sglang.srt.managers.detokenizer_manager": ("detokenizer",),
    "sglang.srt.managers.data_parallel_controller": ("data-parallel controller",),
    "sglang.srt.managers.scheduler": ("scheduler (one a rank)",),
    "sglang.srt.managers.tp_worker": ("scheduler (one a rank)",),
    "sglang.srt.managers.schedule_batch": ("scheduler (one a rank)",),
    "sglang.srt.managers.schedule_policy": ("scheduler (one a rank)",),
    "sglang.srt.managers.tokenizer_manager": ("main: subprocess launcher, HTTP server, TokenizerManager",),
    "sglang.srt.managers.template_manager": ("main: subprocess launcher, HTTP server, TokenizerManager",),
    "sglang.srt.entrypoints": ("main: subprocess launcher, HTTP server, TokenizerManager",),
    "sglang.srt.server_args": ("main: sglang serve", "main: python -m sglang.launch_server", "main: sglang.Engine"),
    "sglang.srt.model_executor": ("scheduler (one a rank)",),
    "sglang.srt.layers": ("scheduler (one a rank)",),
    "sglang.srt.models": ("scheduler (one a rank)",),
    "sglang.srt.mem_cache": ("scheduler (one a rank)",),
    "sglang.srt.sampling": ("scheduler (one a rank)",),
    "sglang.srt.speculative": ("scheduler (one a rank)",),
    "sglang.srt.distributed": ("scheduler (one a rank)",),
    "sglang.srt.lora": ("scheduler (one a rank)",),
    "sglang.srt.constrained": ("scheduler (one a rank)",),
    "sglang.srt.disaggregation": ("scheduler (one a rank)",),
    "sglang.srt.disaggregation.encoder": ("encoder worker",),
    "sglang.srt.disaggregation.encode_server": ("encoder worker",),
    "sglang.srt.ray": ("Ray scheduler actor",),
    "sglang.srt.weight_cache.daemon": ("weight cache daemon",),
    "sglang.srt.elastic_ep.expert_backup_manager": ("expert backup manager",),
    "sglang.multimodal_gen.runtime.managers": ("GPU worker (one a GPU)",),
    "sglang.multimodal_gen.runtime.pipelines": ("GPU worker (one a GPU)",),
    "sglang.multimodal_gen.runtime.pipelines_core": ("GPU worker (one a GPU)",),
    "sglang.multimodal_gen.runtime.layers": ("GPU worker (one a GPU)",),
    "sglang.multimodal_gen.runtime.models": ("GPU worker (one a GPU)",),
    "sglang.multimodal_gen.runtime.loader": ("GPU worker (one a GPU)",),
    "sglang.multimodal_gen.runtime.entrypoints": ("main: launch_server", "HTTP child"),
}


def homes(symbol: Symbol) -> tuple[str, ...]:
    """Return the roles of the processes in which a name runs, as `Release.processes` calls them; empty where it may be anywhere."""
    fitting = [
        prefix
        for prefix in _HOMES
        if symbol.origin == prefix or symbol.origin.startswith(f"{prefix}.") or _is_family(symbol.origin, prefix)
    ]
    return _HOMES[max(fitting, key=len)] if fitting else ()


def _is_family(origin: str, prefix: str) -> bool:
    """`sglang.srt.managers.scheduler_components.x` belongs to `sglang.srt.managers.scheduler`."""
    return origin.startswith(f"{prefix}_") and prefix.endswith(".scheduler")


def without_plugins(release: Release, symbol: Symbol) -> str:
    """Return the one role in which a name runs, when no plugin is loaded there; else an empty text."""
    roles = homes(symbol)
    if len(roles) != 1:
        return ""
    runtime = "diffusion" if symbol.origin.startswith("sglang.multimodal_gen") else "srt"
    found = [process for process in release.processes(runtime) if process.role == roles[0]]
    return f"the {roles[0]}" if found and all(process.plugins == "no" for process in found) else ""
