"""From the model's last vectors to the logits of each sequence's next token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ..distributed.parallel_state import get_tp_group


@dataclass
class LogitsProcessorOutput:
    """Attributes: next_token_logits: (sequences, vocabulary)."""

    next_token_logits: torch.Tensor


class LogitsProcessor(nn.Module):
    """Looks only at the last token of each sequence."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size

    def forward(
        self,
        input_ids: torch.Tensor,
        hidden_states: torch.Tensor,
        lm_head: Any,
        logits_metadata: Any,
        aux_hidden_states: list[torch.Tensor] | None = None,
        hidden_states_before_norm: torch.Tensor | None = None,
    ) -> LogitsProcessorOutput:
        """Return the logits, whole on every rank."""
        if logits_metadata.forward_mode.is_extend():
            ends = torch.tensor(logits_metadata.extend_lens, device=hidden_states.device).cumsum(0) - 1
            hidden_states = hidden_states[ends]
        logits = get_tp_group().all_gather(F.linear(hidden_states, lm_head.weight))
        return LogitsProcessorOutput(logits[:, : self.vocab_size].float())
