"""The Llama family: Llama itself, Mistral without sliding window, and Qwen2 (with bias in front of attention)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..distributed.parallel_state import get_tp_group
from ..layers.activation import SiluAndMul
from ..layers.layernorm import RMSNorm
from ..layers.linear import ColumnParallelLinear, QKVParallelLinear, RowParallelLinear
from ..layers.logits_processor import LogitsProcessor, LogitsProcessorOutput
from ..layers.radix_attention import RadixAttention
from ..layers.rotary_embedding import RotaryEmbedding
from ..layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..configs.model_config import ModelConfig

# What the model folder keeps apart and the engine together: (in the folder, in the engine, which part).
STACKED = (
    (".q_proj.", ".qkv_proj.", 0),
    (".k_proj.", ".qkv_proj.", 1),
    (".v_proj.", ".qkv_proj.", 2),
    (".gate_proj.", ".gate_up_proj.", 0),
    (".up_proj.", ".gate_up_proj.", 1),
)


class LlamaMLP(nn.Module):
    """The feed-forward block."""

    def __init__(self, config: ModelConfig, quant_config: Any, prefix: str) -> None:
        super().__init__()
        inner, bias = config.hf_config["intermediate_size"], bool(config.hf_config.get("mlp_bias"))
        self.gate_up_proj = ColumnParallelLinear(config.hidden_size, [inner, inner], bias, quant_config, f"{prefix}.gate_up_proj")
        self.down_proj = RowParallelLinear(inner, config.hidden_size, bias, quant_config, f"{prefix}.down_proj")
        self.act_fn = SiluAndMul()

    def forward(self, x: torch.Tensor, forward_batch: Any = None) -> torch.Tensor:
        """Return the block's output."""
        return self.down_proj(self.act_fn(self.gate_up_proj(x)))


class LlamaAttention(nn.Module):
    """The attention block."""

    def __init__(self, config: ModelConfig, layer_id: int, quant_config: Any, prefix: str) -> None:
        super().__init__()
        ranks, given = get_tp_group().world_size, config.hf_config
        heads, kv_heads = config.num_heads // ranks, config.kv_heads_per_rank(ranks)
        self.sizes = [heads * config.head_dim, kv_heads * config.head_dim, kv_heads * config.head_dim]
        qwen = config.architecture == "Qwen2ForCausalLM"
        bias = bool(given.get("attention_bias", qwen))
        self.qkv_proj = QKVParallelLinear(
            config.hidden_size, config.head_dim, config.num_heads, config.num_kv_heads, bias, quant_config, f"{prefix}.qkv_proj"
        )
        out_bias = bias and not qwen
        self.o_proj = RowParallelLinear(config.num_heads * config.head_dim, config.hidden_size, out_bias, quant_config, f"{prefix}.o_proj")
        scaling = given.get("rope_scaling") or given.get("rope_parameters")
        base = float(given.get("rope_theta") or (scaling or {}).get("rope_theta", 10000.0))
        self.rotary_emb = RotaryEmbedding(config.head_dim, config.context_len, base, scaling)
        self.attn = RadixAttention(heads, config.head_dim, config.head_dim**-0.5, kv_heads, layer_id)

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor, forward_batch: Any) -> torch.Tensor:
        """Return the block's output."""
        q, k, v = self.qkv_proj(hidden_states).split(self.sizes, dim=-1)
        q, k = self.rotary_emb(positions, q, k)
        return self.o_proj(self.attn(q, k, v, forward_batch))


class LlamaDecoderLayer(nn.Module):
    """One layer; the residual travels beside the activations."""

    def __init__(self, config: ModelConfig, layer_id: int, quant_config: Any, prefix: str) -> None:
        super().__init__()
        eps = config.hf_config.get("rms_norm_eps", 1e-6)
        self.self_attn = LlamaAttention(config, layer_id, quant_config, f"{prefix}.self_attn")
        self.mlp = LlamaMLP(config, quant_config, f"{prefix}.mlp")
        self.input_layernorm = RMSNorm(config.hidden_size, eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, eps)

    def forward(
        self, positions: torch.Tensor, hidden_states: torch.Tensor, forward_batch: Any, residual: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return activations and residual."""
        if residual is None:
            residual = hidden_states
            hidden_states = self.input_layernorm(hidden_states)
        else:
            hidden_states, residual = self.input_layernorm(hidden_states, residual)
        hidden_states = self.self_attn(positions, hidden_states, forward_batch)
        hidden_states, residual = self.post_attention_layernorm(hidden_states, residual)
        return self.mlp(hidden_states), residual


class LlamaModel(nn.Module):
    """All layers."""

    def __init__(self, config: ModelConfig, quant_config: Any) -> None:
        super().__init__()
        self.embed_tokens = VocabParallelEmbedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(LlamaDecoderLayer(config, i, quant_config, f"model.layers.{i}") for i in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.hf_config.get("rms_norm_eps", 1e-6))

    def forward(
        self,
        input_ids: torch.Tensor,
        positions: torch.Tensor,
        forward_batch: Any,
        input_embeds: torch.Tensor | None = None,
        pp_proxy_tensors: Any = None,
    ) -> torch.Tensor:
        """Return the last vectors."""
        hidden_states, residual = self.embed_tokens(input_ids), None
        for layer in self.layers:
            hidden_states, residual = layer(positions, hidden_states, forward_batch, residual)
        return self.norm(hidden_states, residual)[0]


class LlamaForCausalLM(nn.Module):
    """The model that answers."""

    def __init__(self, config: ModelConfig, quant_config: Any = None) -> None:
        super().__init__()
        self.config = config
        self.model = LlamaModel(config, quant_config)
        tied = bool(config.hf_config.get("tie_word_embeddings"))
        self.lm_head = self.model.embed_tokens if tied else ParallelLMHead(config.vocab_size, config.hidden_size)
        self.logits_processor = LogitsProcessor(config.vocab_size)

    def forward(
        self,
        input_ids: torch.Tensor,
        positions: torch.Tensor,
        forward_batch: Any,
        input_embeds: torch.Tensor | None = None,
        get_embedding: bool = False,
        pp_proxy_tensors: Any = None,
    ) -> LogitsProcessorOutput:
        """Return the logits of each sequence's next token."""
        return self.logits_processor(input_ids, self.model(input_ids, positions, forward_batch), self.lm_head, forward_batch)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Fill every parameter.

        Raises:
            ValueError: a weight is missing, unknown or of another shape.
        """
        params = dict(self.named_parameters(remove_duplicate=False))
        wanted = {(name, part) for name in params for part in self._parts(name)}
        for name, tensor in weights:
            if "rotary_emb.inv_freq" in name or (name == "lm_head.weight" and self.lm_head is self.model.embed_tokens):
                continue
            ours, part = self._ours(name)
            if ours not in params:
                raise ValueError(f"the model folder has a weight {name!r} that {type(self).__name__} does not know")
            loader = getattr(params[ours], "weight_loader", None)
            if loader is not None:
                loader(params[ours], tensor, part)
            else:
                params[ours].data.copy_(tensor)
            wanted.discard((ours, part))
        if self.lm_head is self.model.embed_tokens:
            wanted.discard(("lm_head.weight", None))
        missing = sorted(name for name, part in wanted if name.endswith(("weight", "bias")))
        if missing:
            raise ValueError(f"the model folder lacks {len(missing)} weights of {type(self).__name__}: {', '.join(missing[:5])}")

    @staticmethod
    def _ours(name: str) -> tuple[str, int | None]:
        for theirs, ours, part in STACKED:
            if theirs in name:
                return name.replace(theirs, ours), part
        return name, None

    @staticmethod
    def _parts(name: str) -> list[int | None]:
        parts: list[int | None] = [part for _, ours, part in STACKED if ours in name]
        return parts or [None]
