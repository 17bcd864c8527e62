"""The built-in tiny Llama: random weights from a fixed seed and a byte-level tokenizer, in Hugging Face layout. Owns its cache folder.

Made without `transformers`, and usable unchanged by `transformers`, by the stand-in and by SGLang.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

_VERSION = 1  # part of the folder's name: raise it when the content changes
_SPECIAL = ("<s>", "</s>", "<pad>")
_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 320,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "initializer_range": 0.02,
    "use_cache": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "torch_dtype": "float32",
}
_CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)


def cache_root() -> Path:
    """Return the tool's cache folder: `$SGLANG_PLUG_CACHE`, by default `~/.cache/sglang-plug`."""
    return Path(os.environ.get("SGLANG_PLUG_CACHE") or Path.home() / ".cache" / "sglang-plug")


def unwritable(error: OSError) -> str:
    """Return in words that the cache cannot be written, and what helps."""
    return f"the tiny model cannot be put into the cache {cache_root()}: {error.strerror or error}; set SGLANG_PLUG_CACHE to a folder"


def tiny_llama(cache: Path | None = None) -> Path:
    """Return the folder of the tiny Llama, made there on first use (about 0.5 MB; needs torch, safetensors and tokenizers).

    Raises:
        OSError: the cache cannot be written.
    """
    root = cache_root() if cache is None else cache
    folder = root / f"tiny-llama-{_VERSION}"
    if (folder / "config.json").is_file():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".tiny-llama-", dir=root))
    try:
        _write_tokenizer(draft)
        _write_weights(draft)
        _write_json(draft / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2})
        _write_json(draft / "config.json", _CONFIG)
        draft.chmod(0o755)
        try:
            draft.rename(folder)
        except OSError:
            if not (folder / "config.json").is_file():  # else another process was faster, with the same content
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _write_tokenizer(folder: Path) -> None:
    """Write a tokenizer with one token a byte, after the three special ones."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL])
    tokenizer.save(str(folder / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    _write_json(folder / "special_tokens_map.json", names)
    _write_json(
        folder / "tokenizer_config.json",
        {
            **names,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": _CONFIG["max_position_embeddings"],
            "clean_up_tokenization_spaces": False,
            "chat_template": _CHAT_TEMPLATE,
        },
    )


def _write_weights(folder: Path) -> None:
    """Write weights wide enough apart that the likeliest token does not hang on rounding."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(20240229)
    hidden, inner, head = _CONFIG["hidden_size"], _CONFIG["intermediate_size"], _CONFIG["head_dim"]
    q_width, kv_width = _CONFIG["num_attention_heads"] * head, _CONFIG["num_key_value_heads"] * head

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator) * columns**-0.5

    weights = {
        "model.embed_tokens.weight": torch.randn(_CONFIG["vocab_size"], hidden, generator=generator),
        "model.norm.weight": torch.ones(hidden),
        "lm_head.weight": matrix(_CONFIG["vocab_size"], hidden) * 2,
    }
    for layer in range(_CONFIG["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        weights[name + "input_layernorm.weight"] = torch.ones(hidden)
        weights[name + "post_attention_layernorm.weight"] = torch.ones(hidden)
        weights[name + "self_attn.q_proj.weight"] = matrix(q_width, hidden) * 1.5
        weights[name + "self_attn.k_proj.weight"] = matrix(kv_width, hidden) * 1.5
        weights[name + "self_attn.v_proj.weight"] = matrix(kv_width, hidden)
        weights[name + "self_attn.o_proj.weight"] = matrix(hidden, q_width)
        weights[name + "mlp.gate_proj.weight"] = matrix(inner, hidden)
        weights[name + "mlp.up_proj.weight"] = matrix(inner, hidden)
        weights[name + "mlp.down_proj.weight"] = matrix(hidden, inner)
    # Only printable ASCII can be the likeliest, so that an answer is readable on a terminal. "!" to "~" come first in the alphabet.
    weights["lm_head.weight"][: len(_SPECIAL)] = 0
    weights["lm_head.weight"][len(_SPECIAL) + 94 :] = 0
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
