"""Which token comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from ..managers.schedule_batch import Req
    from .logits_processor import LogitsProcessorOutput


class Sampler(nn.Module):
    """Takes the likeliest token at temperature 0, else draws from what top-k, top-p and min-p leave."""

    def forward(
        self,
        logits_output: LogitsProcessorOutput,
        sampling_info: list[Req],
        return_logprob: bool,
        top_logprobs_nums: Any,
        token_ids_logprobs: Any,
        positions: torch.Tensor,
        *,
        logprob_logits: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Return one token a sequence. A sequence's draws depend on its own seed and step alone, never on its neighbours."""
        logits, reqs = logits_output.next_token_logits, sampling_info
        if any(req.sampling_params.penalizes for req in reqs):
            logits = torch.stack([_penalized(scores, req) for scores, req in zip(logits, reqs, strict=True)])
        tokens = logits.argmax(dim=-1)
        drawn = [index for index, req in enumerate(reqs) if req.sampling_params.temperature > 0 and req.sampling_params.top_k != 1]
        if drawn:
            tokens[drawn] = self._draw(logits[drawn], [reqs[index] for index in drawn])
        return tokens

    def _draw(self, logits: torch.Tensor, reqs: list[Req]) -> torch.Tensor:
        device = logits.device

        def column(numbers: list[float]) -> torch.Tensor:
            return torch.tensor(numbers, device=device, dtype=torch.float32)[:, None]

        params = [req.sampling_params for req in reqs]
        probabilities = torch.softmax(logits / column([p.temperature for p in params]), dim=-1)
        probabilities, order = probabilities.sort(dim=-1, descending=True, stable=True)
        rank = torch.arange(logits.shape[1], device=device)[None, :]
        before = probabilities.cumsum(dim=-1) - probabilities
        keep = rank < column([p.top_k if p.top_k > 0 else logits.shape[1] for p in params])
        keep &= before < column([p.top_p for p in params])
        keep &= probabilities >= probabilities[:, :1] * column([p.min_p for p in params])
        keep[:, 0] = True
        sums = (probabilities * keep).cumsum(dim=-1)
        points = column([req.random() for req in reqs]) * sums[:, -1:]
        chosen = (sums <= points).sum(dim=-1, keepdim=True)
        last = keep.sum(dim=-1, keepdim=True) - 1  # what is kept comes first in the order
        return order.gather(1, torch.minimum(chosen, last)).squeeze(1)


def _penalized(scores: torch.Tensor, req: Req) -> torch.Tensor:
    """Return one sequence's logits with the tokens of its answer made less likely."""
    params = req.sampling_params
    if not (params.penalizes and req.output_ids):
        return scores
    counts = torch.bincount(torch.tensor(req.output_ids, device=scores.device), minlength=len(scores))
    lowered = scores - params.frequency_penalty * counts - params.presence_penalty * (counts > 0)
    scaled = torch.where(lowered > 0, lowered / params.repetition_penalty, lowered * params.repetition_penalty)
    return torch.where(counts > 0, scaled, scores)
