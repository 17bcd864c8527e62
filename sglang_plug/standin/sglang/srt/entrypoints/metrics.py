"""The engine's load and counts in Prometheus' text form, under SGLang's names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..managers.tokenizer_manager import TokenizerManager


def render(manager: TokenizerManager) -> str:
    """Return everything that is counted."""
    stats, counters = manager.stats, manager.counters
    usage = stats.used_tokens / stats.max_tokens if stats.max_tokens else 0.0
    rows = (
        ("num_running_reqs", "gauge", "requests that decode", stats.running),
        ("num_queue_reqs", "gauge", "requests that wait", stats.queued),
        ("num_used_tokens", "gauge", "tokens in the KV cache", stats.used_tokens),
        ("token_usage", "gauge", "share of the KV cache in use", usage),
        ("num_retracted_reqs_total", "counter", "requests that had to start over", stats.retracted),
        ("num_requests_total", "counter", "requests received", counters.requests),
        ("num_aborted_requests_total", "counter", "requests whose client went away", counters.aborted),
        ("prompt_tokens_total", "counter", "prompt tokens of finished requests", counters.prompt_tokens),
        ("generation_tokens_total", "counter", "tokens generated", counters.generation_tokens),
    )
    label = '{model_name="' + str(manager.server_args.served_model_name).replace("\\", "\\\\").replace('"', '\\"') + '"}'
    return "".join(f"# HELP sglang:{n} {text}\n# TYPE sglang:{n} {kind}\nsglang:{n}{label} {value}\n" for n, kind, text, value in rows)
