"""`ModelConfig`: a model folder's config.json, read once and judged."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import torch

from ..server_args import ServerArgs, read_model_config

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass
class ModelConfig:
    """What the engine needs to know of a model.

    Attributes:
        hf_config: the file as it is.
        dtype: type of weights and activations.
        kv_dtype: type of the KV cache.
        context_len: longest sequence.
    """

    path: str
    hf_config: dict[str, Any]
    dtype: torch.dtype
    kv_dtype: torch.dtype
    context_len: int
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int

    @classmethod
    def from_server_args(cls, args: ServerArgs) -> ModelConfig:
        """Read the folder.

        Raises:
            ValueError: a key is missing or makes no sense.
        """
        config = read_model_config(args.model_path)
        try:
            heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
            dtype = _dtype(args.dtype, str(config.get("dtype") or config.get("torch_dtype") or "float32"))
            longest = int(config.get("max_position_embeddings", 2048))
            model = cls(
                path=args.model_path,
                hf_config=config,
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


def _dtype(asked: str, own: str) -> torch.dtype:
    name = own.removeprefix("torch.") if asked == "auto" else asked
    if name not in _DTYPES:
        raise ValueError(f"data type {name!r}: the stand-in knows {', '.join(_DTYPES)}")
    return _DTYPES[name]


def end_token_ids(model_path: str) -> set[int]:
    """Return the tokens that end an answer, as config.json and generation_config.json name them."""
    ends: set[int] = set()
    for name in ("config.json", "generation_config.json"):
        path = os.path.join(model_path, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found = json.load(file).get("eos_token_id")
            ends.update(found if isinstance(found, list) else [] if found is None else [found])
    return ends
