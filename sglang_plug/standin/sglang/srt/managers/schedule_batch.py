"""`Req`, one request on its way, and `ScheduleBatch`, the requests of one step."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from .io_struct import TokenizedGenerateReqInput


class Req:
    """A request from its arrival to its end.

    Attributes:
        slot: its place in `req_to_token` while it runs.
        kv_len: how many of its tokens have keys and values after the present step.
        finished_reason: why it ended.
    """

    def __init__(self, message: TokenizedGenerateReqInput, end_ids: set[int], limit: int, seed: int) -> None:
        self.rid = message.rid
        self.stream = message.stream
        self.origin_input_ids = message.input_ids
        self.sampling_params = params = message.sampling_params
        self.output_ids: list[int] = []
        self.sent = 0
        self.slot: int | None = None
        self.kv_len = 0
        self.finished_reason: dict[str, Any] | None = None
        self.max_new_tokens = min(params.max_new_tokens, limit - len(message.input_ids))
        self._ends = set(params.stop_token_ids) | (set() if params.ignore_eos else end_ids)
        # A stop text of n bytes spans at most n tokens, and one more that it begins within.
        self._tail = max((len(text.encode()) for text in params.stop), default=0) + 1
        self._seed = seed if params.sampling_seed is None else params.sampling_seed

    @property
    def all_ids(self) -> list[int]:
        """Prompt and answer so far."""
        return self.origin_input_ids + self.output_ids

    def random(self) -> float:
        """Return this step's random number: it depends on seed and step alone, so that a request that starts over repeats itself."""
        return random.Random(self._seed * 1_000_003 + len(self.output_ids)).random()  # noqa: S311 - sampling, not secrecy

    def finished(self) -> bool:
        """Tell whether the request has ended."""
        return self.finished_reason is not None

    def append(self, token: int, decode: Callable[[list[int]], str]) -> None:
        """Take the next token and see whether it ends the request."""
        self.output_ids.append(token)
        if token in self._ends:
            self.finished_reason = {"type": "stop", "matched": token}
            return
        if self.sampling_params.stop:
            tail = decode(self.output_ids[-self._tail :])
            for text in self.sampling_params.stop:
                if text in tail:
                    self.finished_reason = {"type": "stop", "matched": text}
                    return
        if len(self.output_ids) >= self.max_new_tokens:
            self.finished_reason = {"type": "length", "length": len(self.output_ids)}

    def abort(self, message: str) -> None:
        """End the request before its time."""
        self.finished_reason = {"type": "abort", "message": message}


class ScheduleBatch:
    """The requests of one step, with the KV rows that they need.

    Attributes:
        is_decode: whether each goes on by one token; else prompts are read.
        extend_lens: how many tokens of each request the step reads.
    """

    def __init__(self, reqs: list[Req], worker: Any) -> None:
        runner = worker.model_runner
        self.reqs = reqs
        self.is_decode = False
        self.extend_lens: list[int] = []
        self.input_ids: list[int] = []
        self.out_cache_loc: Any = None
        self._table = runner.req_to_token_pool
        self._allocator = runner.token_to_kv_pool_allocator
        self._device = runner.device

    def prepare_for_extend(self) -> bool:
        """Take slots and rows for whole sequences; False, with nothing taken, when there is no room."""
        self.is_decode = False
        self.extend_lens = [len(req.all_ids) for req in self.reqs]
        if self._table.available_size() < len(self.reqs) or not self._allocate([0] * len(self.reqs), self.extend_lens):
            return False
        self.input_ids = [token for req in self.reqs for token in req.all_ids]
        start = 0
        slots = self._table.alloc(self.reqs)
        for req, slot, length in zip(self.reqs, slots, self.extend_lens, strict=True):
            req.kv_len = length
            self._table.write((slot, slice(0, length)), self.out_cache_loc[start : start + length])
            start += length
        return True

    def prepare_for_decode(self) -> bool:
        """Take a row for each sequence's newest token; False, with nothing taken, when there is no room."""
        self.is_decode = True
        self.extend_lens = [1] * len(self.reqs)
        if not self._allocate([req.kv_len for req in self.reqs], [req.kv_len + 1 for req in self.reqs]):
            return False
        import torch

        slots = torch.tensor([req.slot for req in self.reqs], device=self._device)
        places = torch.tensor([req.kv_len for req in self.reqs], device=self._device)
        self._table.req_to_token[slots, places] = self.out_cache_loc
        self.input_ids = [req.output_ids[-1] for req in self.reqs]
        for req in self.reqs:
            req.kv_len += 1
        return True

    def _allocate(self, starts: list[int], ends: list[int]) -> bool:
        import torch

        def tensor(numbers: list[int]) -> Any:
            return torch.tensor(numbers, dtype=torch.int64, device=self._device)

        if self.is_decode:
            slots, places = tensor([req.slot or 0 for req in self.reqs]), tensor([start - 1 for start in starts])
            last = self._table.req_to_token[slots, places].tolist()
            rows = self._allocator.alloc_decode(tensor(ends), ends, last)
        else:
            rows = self._allocator.alloc_extend(tensor(starts), starts, tensor(ends), ends, [-1] * len(ends), sum(ends) - sum(starts))
        self.out_cache_loc = rows
        return rows is not None

    def release(self, req: Req) -> None:
        """Give a request's slot and pages back."""
        if req.slot is None:
            return
        self._allocator.free(self._table.req_to_token[req.slot, : req.kv_len])
        self._table.free(req)
        req.kv_len = 0
