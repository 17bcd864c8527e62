"""The processes in which a name of SGLang runs: what is certain, and where it is not. Facts as data; questions over one release."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_plug.contract.model import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Process, Symbol

_MAIN = r"main: (subprocess|sglang|python|http|Ray)|.*tokenizer worker|granian"
_SCHEDULERS = r"scheduler|Ray scheduler|main: bench_one_batch|mindspore"
_ANY = r""
_NONE = r"$^"
#: (names, processes that surely run them, processes that may); the first row that fits a name counts, and no row means any may.
_RUNS: tuple[tuple[str, str, str], ...] = (
    (r"srt\.server_args\.(ServerArgs\.(add_cli_args|from_cli_args)|prepare_server_args)", r"main: (sglang serve|python -m)", _NONE),
    (r"srt\.(server_args|arg_groups)\.", r"main: ", _ANY),
    (
        (
            r"srt\.managers\.(tokenizer_(manager|control_mixin|communicator_mixin)|template_manager|async_dynamic_batch|disagg_service)"
            r"|srt\.(entrypoints\b|managers\.communicator\.FanOutCommunicator|lora\.lora_registry\.LoRARegistry\b)"
            r"|srt\.sampling\.sampling_params\.SamplingParams\.(normalize|verify)$"
        ),
        _MAIN,
        r"main: gRPC",
    ),
    (r"srt\.managers\.multi_tokenizer_mixin\.MultiTokenizerRouter\b", r"main: (subprocess|sglang|python|http|Ray)", r"main: gRPC"),
    (r"srt\.managers\.multi_tokenizer_mixin\.TokenizerWorker\b", r".*tokenizer worker|granian", _NONE),
    (r"srt\.managers\.data_parallel_controller\.", r"data-parallel controller", _NONE),
    (r"srt\.managers\.detokenizer_manager\.", r"detokenizer$", _NONE),
    (r"srt\.ray\.scheduler_actor\.", r"Ray scheduler", _NONE),
    # shared by the main process and the schedulers
    (
        r"srt\.managers\.scheduler_input_blocker\.|srt\.disaggregation\.encoder\.receiver\.|srt\.sampling\.(sampling_params|watermark)",
        _NONE,
        _ANY,
    ),
    (r"srt\.lora\.lora_registry\.|srt\.layers\.(quantization|joint_schema_head|deep_gemm_wrapper)\b|.*\.MRotaryEmbedding\.", _NONE, _ANY),
    (r"srt\.model_executor\.(cuda_graph_config|graph_memory_usage|step_span|forward_batch_info\.(?!ForwardBatch\b))", _NONE, _ANY),
    (r"srt\.(mem_cache\.(hicache_storage|multimodal_cache)|model_loader\.(utils|expert_pack)|models\.registry)\b", _NONE, _ANY),
    (r"srt\.speculative\.(spec_info|spec_registry|ragged_verify|dflash_utils|adaptive_spec|decoupled_spec_io)", _NONE, _ANY),
    (r"srt\.disaggregation\.encoder\.", r"encoder", _NONE),
    (r"srt\.(layers|models|distributed|model_loader)\.", _SCHEDULERS + r"|encoder", _NONE),
    (
        (
            r"srt\.managers\.(scheduler|tp_worker|schedule_policy|cache_controller|overlap_utils|schedule_batch\.(ScheduleBatch|Req)\b)"
            r"|srt\.(model_executor|mem_cache|sampling|speculative|lora|constrained|eplb|batch_overlap|disaggregation\.(decode|prefill))\b"
        ),
        _SCHEDULERS,
        _NONE,
    ),
    (r"multimodal_gen\.runtime\.entrypoints\.", r"main: |HTTP child|disaggregated head", _NONE),
    (r"multimodal_gen\.runtime\.(managers|pipelines|pipelines_core|models|layers|loader|distributed)\.", r"GPU worker", _NONE),
)


def runs(process: Process, symbol: Symbol) -> bool | None:
    """Tell whether a process runs the code of a name; None where that is not certain. A re-exported name is the one it stands for."""
    name = (symbol.name if symbol.inherited else symbol.origin).removeprefix("sglang.")
    for pattern, surely, perhaps in _RUNS:
        if re.match(pattern, name):
            if re.match(surely, process.role):
                return True
            is_free = symbol.kind is Kind.FUNCTION and surely.startswith(_SCHEDULERS)  # what else calls a function is not followed
            return None if is_free or re.match(perhaps, process.role) else False
    return True if f"sglang.{name}".startswith(process.entry.partition(":")[0] + ".") else None


def homes(release: Release, symbol: Symbol) -> tuple[str, ...]:
    """Return the roles of the processes that surely run a name: those that load plugins, where any does."""
    found = _running(release, symbol)
    return tuple(process.role for process in found if process.plugins != "no") or tuple(process.role for process in found)


def without_plugins(release: Release, symbol: Symbol) -> str:
    """Return the roles in which a name runs, in words, when no plugin is loaded in any of them; else an empty text."""
    found = _running(release, symbol)
    return "" if any(process.plugins != "no" for process in found) else " and ".join(f"the {process.role}" for process in found)


def _running(release: Release, symbol: Symbol) -> Sequence[Process]:
    runtime = "diffusion" if symbol.origin.startswith("sglang.multimodal_gen") else "srt"
    return [process for process in release.processes(runtime) if runs(process, symbol)]
