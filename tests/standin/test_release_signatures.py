"""What the stand-in offers as hook targets takes the parameters that the newest release's target takes, by the catalogue."""

from __future__ import annotations

import importlib
import inspect

import pytest

from sglang_plug.contract import catalogue
from tests.standin.test_takes_effect import TARGETS as DOCUMENTED

#: Built by SGLang alone, from what the stand-in does not have; doctor judges hooks on them by the release and says so.
OTHER = {"managers.tp_worker.TpModelWorker.__init__", "model_executor.model_runner.ModelRunner.__init__"}
MORE = (
    "managers.scheduler.Scheduler.get_new_batch_prefill",
    "managers.scheduler.Scheduler.abort_request",
    "managers.tokenizer_manager.TokenizerManager.abort_request",
    "model_executor.model_runner.ModelRunner.sample",
    "layers.sampler.Sampler.forward",
    "layers.logits_processor.LogitsProcessor.forward",
    "layers.linear.ColumnParallelLinear.forward",
    "mem_cache.memory_pool.ReqToTokenPool.alloc",
    "mem_cache.memory_pool.ReqToTokenPool.free",
    "mem_cache.memory_pool.ReqToTokenPool.write",
    "mem_cache.memory_pool.MHATokenToKVPool.set_kv_buffer",
    "mem_cache.allocator.PagedTokenToKVPoolAllocator.alloc_extend",
    "models.llama.LlamaModel.forward",
    "models.llama.LlamaForCausalLM.forward",
)
TARGETS = {target.replace(":", ".") for target in DOCUMENTED} | {f"sglang.srt.{target}" for target in MORE}


@pytest.mark.parametrize("target", sorted(TARGETS - {f"sglang.srt.{target}" for target in OTHER}))
def test_a_common_target_takes_what_the_releases_takes(target: str) -> None:
    symbol = catalogue.load(catalogue.newest()).find(target)
    if symbol is None or symbol.parameters is None:
        pytest.skip("the release has no such function")
    parts = target.split(".")
    split = next(index for index, part in enumerate(parts) if part[0].isupper() or index == len(parts) - 1)
    found = importlib.import_module(".".join(parts[:split]))
    for part in parts[split:]:
        found = getattr(found, part)
    wanted = [(p.name, p.kind, p.required) for p in symbol.parameters]
    assert _spelled(found) == (wanted[1:] if inspect.ismethod(found) else wanted), symbol.signature


_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional-only",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.VAR_POSITIONAL: "var-positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword-only",
    inspect.Parameter.VAR_KEYWORD: "var-keyword",
}


def _spelled(function: object) -> list[tuple[str, str, bool]]:
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    variable = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return [(p.name, _KINDS[p.kind], p.default is p.empty and p.kind not in variable) for p in parameters]
