"""Model classes by the architecture's name in config.json."""

from __future__ import annotations

from .llama import LlamaForCausalLM

ARCHITECTURES = dict.fromkeys(("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM"), LlamaForCausalLM)


def model_class(hf_config: dict[str, object]) -> type[LlamaForCausalLM]:
    """Return the class for a config.json.

    Raises:
        ValueError: the stand-in has no such architecture, or a variant that it does not compute.
    """
    names = hf_config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    if name not in ARCHITECTURES:
        raise ValueError(f"architecture {name!r}: the stand-in knows {', '.join(ARCHITECTURES)}; SGLang knows many more")
    if hf_config.get("sliding_window") and hf_config.get("use_sliding_window", name == "MistralForCausalLM"):
        raise ValueError("sliding-window attention: the stand-in does not compute it")
    if hf_config.get("hidden_act", "silu") != "silu":
        raise ValueError(f"activation {hf_config['hidden_act']!r}: the stand-in computes silu")
    return ARCHITECTURES[name]
