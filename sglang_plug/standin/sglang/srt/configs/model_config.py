"""`ModelConfig`: a model folder's config.json, read and judged before anything expensive happens. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DTYPES = ("float32", "float16", "bfloat16")
ARCHITECTURES = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM")


@dataclass
class ModelConfig:
    """What the engine needs to know of a model.

    Attributes:
        hf_config: the file as it is.
        architecture: the model class's name.
        dtype: type of weights and activations, by torch's name.
        kv_dtype: type of the KV cache.
        context_len: longest sequence.
    """

    path: str
    hf_config: dict[str, Any]
    architecture: str
    dtype: str
    kv_dtype: str
    context_len: int
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int

    @classmethod
    def from_server_args(cls, args: Any) -> ModelConfig:
        """Read the folder that a `ServerArgs` names.

        Raises:
            ValueError: a key is missing, makes no sense, or asks for what the stand-in does not compute.
        """
        config = read_json(Path(args.model_path) / "config.json")
        architecture = _architecture(config)
        try:
            heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
            dtype = _dtype(args.dtype, str(config.get("dtype") or config.get("torch_dtype") or "float32"))
            longest = int(config.get("max_position_embeddings", 2048))
            model = cls(
                path=args.model_path,
                hf_config=config,
                architecture=architecture,
                dtype=dtype,
                kv_dtype=dtype if args.kv_cache_dtype == "auto" else _dtype(args.kv_cache_dtype, ""),
                context_len=args.context_length or longest,
                vocab_size=int(config["vocab_size"]),
                hidden_size=hidden,
                num_layers=int(config["num_hidden_layers"]),
                num_heads=heads,
                num_kv_heads=int(config.get("num_key_value_heads") or heads),
                head_dim=int(config.get("head_dim") or hidden // heads),
            )
        except KeyError as error:
            raise ValueError(f"{args.model_path}/config.json lacks {error}") from None
        if model.context_len > longest:
            raise ValueError(f"--context-length {model.context_len}: the model reaches {longest}")
        if heads % args.tp_size or (model.num_kv_heads % args.tp_size and args.tp_size % model.num_kv_heads):
            raise ValueError(f"--tp-size {args.tp_size} does not divide {heads} attention and {model.num_kv_heads} key-value heads")
        return model

    def kv_heads_per_rank(self, tp_size: int) -> int:
        """Return how many key-value heads one rank holds."""
        return max(1, self.num_kv_heads // tp_size)


def _dtype(asked: str, own: str) -> str:
    name = own.removeprefix("torch.") if asked == "auto" else asked
    if name not in DTYPES:
        raise ValueError(f"data type {name!r}: the stand-in knows {', '.join(DTYPES)}")
    return name


def _architecture(config: dict[str, Any]) -> str:
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    if name not in ARCHITECTURES:
        raise ValueError(f"architecture {name!r}: the stand-in knows {', '.join(ARCHITECTURES)}; SGLang knows many more")
    if config.get("sliding_window") and config.get("use_sliding_window", name == "MistralForCausalLM"):
        raise ValueError("sliding-window attention: the stand-in does not compute it")
    if config.get("hidden_act", "silu") != "silu":
        raise ValueError(f"activation {config['hidden_act']!r}: the stand-in computes silu")
    return str(name)


def read_json(path: Path) -> dict[str, Any]:
    """Return a file of a model folder.

    Raises:
        ValueError: it is missing or no JSON object.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds no JSON object")
    return found


def end_token_ids(model_path: str) -> set[int]:
    """Return the tokens that end an answer, as config.json and generation_config.json name them. Raises: ValueError."""
    ends: set[int] = set()
    for path in (Path(model_path) / "config.json", Path(model_path) / "generation_config.json"):
        found = read_json(path).get("eos_token_id") if path.exists() else None
        ends.update(found if isinstance(found, list) else [] if found is None else [found])
    return ends


def weight_files(folder: Path) -> list[Path]:
    """Return the folder's safetensors files, by its index where there is one.

    Raises:
        ValueError: there are none, or the index names one that is missing.
    """
    index = folder / "model.safetensors.index.json"
    if index.exists():
        files = sorted({folder / name for name in read_json(index)["weight_map"].values()})
        missing = [file.name for file in files if not file.exists()]
        if missing:
            raise ValueError(f"{index} names files that are missing: {', '.join(missing)}")
        return files
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder} has no *.safetensors file")
    return files
