"""What one forward pass works on, as tensors."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from ..utils import is_pin_memory_available

if TYPE_CHECKING:
    from ..managers.schedule_batch import ScheduleBatch


class ForwardMode(enum.Enum):
    """EXTEND reads whole prompts, DECODE one new token of each sequence."""

    EXTEND = enum.auto()
    DECODE = enum.auto()

    def is_extend(self, include_draft_extend_v2: bool = False) -> bool:
        """Tell whether prompts are read."""
        return self is ForwardMode.EXTEND

    def is_decode(self) -> bool:
        """Tell whether each sequence goes on by one token."""
        return self is ForwardMode.DECODE


@dataclass
class ForwardBatch:
    """The tensors of one step; tokens of all sequences lie one after the other.

    Attributes:
        forward_mode: what kind of step this is.
        input_ids: the tokens to read.
        positions: their positions in their sequences.
        req_pool_indices: each sequence's slot in `req_to_token`.
        seq_lens: each sequence's length after this step.
        seq_lens_cpu: the same as numbers.
        extend_lens: how many tokens of each sequence are read.
        out_cache_loc: the KV row of each token.
        sampling_info: the requests, which know how to sample.
    """

    forward_mode: ForwardMode
    input_ids: torch.Tensor
    positions: torch.Tensor
    req_pool_indices: torch.Tensor
    seq_lens: torch.Tensor
    seq_lens_cpu: list[int]
    extend_lens: list[int]
    out_cache_loc: torch.Tensor
    req_to_token_pool: Any
    token_to_kv_pool: Any
    attn_backend: Any
    sampling_info: Any = ()

    @property
    def batch_size(self) -> int:
        """How many sequences there are."""
        return len(self.seq_lens_cpu)

    @classmethod
    def init_new(cls, batch: ScheduleBatch, model_runner: Any) -> ForwardBatch:
        """Move a scheduled batch to the model's device."""
        device = model_runner.device
        pin = is_pin_memory_available(device)

        def tensor(numbers: list[int]) -> torch.Tensor:
            return torch.tensor(numbers, dtype=torch.int64, pin_memory=pin).to(device, non_blocking=pin)

        spans = [(req.kv_len - count, req.kv_len) for req, count in zip(batch.reqs, batch.extend_lens, strict=True)]
        return cls(
            forward_mode=ForwardMode.DECODE if batch.is_decode else ForwardMode.EXTEND,
            input_ids=tensor(batch.input_ids),
            positions=tensor([position for start, end in spans for position in range(start, end)]),
            req_pool_indices=tensor([req.slot or 0 for req in batch.reqs]),
            seq_lens=tensor([end for _, end in spans]),
            seq_lens_cpu=[end for _, end in spans],
            extend_lens=batch.extend_lens,
            out_cache_loc=batch.out_cache_loc,
            req_to_token_pool=model_runner.req_to_token_pool,
            token_to_kv_pool=model_runner.token_to_kv_pool,
            attn_backend=model_runner.attn_backend,
            sampling_info=batch.reqs,
        )
