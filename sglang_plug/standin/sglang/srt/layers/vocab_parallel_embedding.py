"""The vocabulary's two ends: token to vector, and vector to logits. Split over the ranks by tokens."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ..distributed.parallel_state import get_tp_group


class VocabParallelEmbedding(nn.Module):
    """Each rank holds a range of tokens; the last one is filled up with zeros."""

    def __init__(self, num_embeddings: int, embedding_dim: int) -> None:
        super().__init__()
        group = get_tp_group()
        self.num_embeddings = num_embeddings
        self.rows = -(-num_embeddings // group.world_size)
        self.start = group.rank * self.rows
        self.weight = nn.Parameter(torch.zeros(self.rows, embedding_dim), requires_grad=False)
        self.weight.weight_loader = self.weight_loader

    def weight_loader(self, param: nn.Parameter, loaded: torch.Tensor, shard: object = None) -> None:
        """Copy this rank's rows.

        Raises:
            ValueError: the shapes do not fit.
        """
        if loaded.shape != (self.num_embeddings, param.shape[1]):
            raise ValueError(
                f"embedding: a weight of shape {tuple(loaded.shape)} does not fit, {(self.num_embeddings, param.shape[1])} is wanted"
            )
        mine = loaded[self.start : self.start + self.rows]
        param.data[: len(mine)].copy_(mine)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the tokens' vectors."""
        group = get_tp_group()
        if group.world_size == 1:
            return F.embedding(input_ids, self.weight)
        local = input_ids - self.start
        foreign = (local < 0) | (local >= self.rows)
        vectors = F.embedding(local.masked_fill(foreign, 0), self.weight)
        return group.all_reduce(vectors.masked_fill(foreign[:, None], 0))


class ParallelLMHead(VocabParallelEmbedding):
    """The last layer, from vector to logits."""
