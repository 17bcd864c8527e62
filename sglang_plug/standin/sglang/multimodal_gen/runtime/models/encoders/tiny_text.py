"""A byte tokenizer and a one-layer text encoder."""

from __future__ import annotations

import torch
from torch import nn

from ...layers.activation import GeluAndMul
from ...layers.attention.layer import LocalAttention
from ...layers.layernorm import RMSNorm

END, PAD = 256, 257


class ByteTokenizer:
    """UTF-8 bytes, an end mark, and padding up to one length; what is longer is cut."""

    def __init__(self, max_length: int) -> None:
        self.max_length = max_length

    def __call__(self, texts: list[str]) -> torch.Tensor:
        """Return (texts, max_length) token numbers."""
        rows = [[*text.encode()[: self.max_length - 1], END] for text in texts]
        return torch.tensor([row + [PAD] * (self.max_length - len(row)) for row in rows])


class TinyTextEncoder(nn.Module):
    """Token and position embeddings, one attention and one gated MLP."""

    def __init__(self, vocab_size: int, hidden_size: int, intermediate_size: int, num_attention_heads: int, max_length: int) -> None:
        super().__init__()
        self.heads = num_attention_heads
        self.token_embed, self.position_embed = nn.Embedding(vocab_size, hidden_size), nn.Embedding(max_length, hidden_size)
        self.norm_attention, self.norm_mlp, self.norm_out = RMSNorm(hidden_size), RMSNorm(hidden_size), RMSNorm(hidden_size)
        self.qkv, self.attention_out = nn.Linear(hidden_size, 3 * hidden_size), nn.Linear(hidden_size, hidden_size)
        self.attention = LocalAttention(num_attention_heads, hidden_size // num_attention_heads, prefix="text.attention")
        self.mlp_in, self.act = nn.Linear(hidden_size, 2 * intermediate_size), GeluAndMul()
        self.mlp_out = nn.Linear(intermediate_size, hidden_size)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token_embed(tokens) + self.position_embed.weight[: tokens.shape[1]]
        q, k, v = (t.unflatten(-1, (self.heads, -1)) for t in self.qkv(self.norm_attention(x)).chunk(3, dim=-1))
        x = x + self.attention_out(self.attention(q, k, v).flatten(2))
        x = x + self.mlp_out(self.act(self.mlp_in(self.norm_mlp(x))))
        encoded: torch.Tensor = self.norm_out(x)
        return encoded
