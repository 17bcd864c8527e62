"""Where keys and values lie: one row a token and layer. Row 0 takes what padding writes; no request owns it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from ..managers.schedule_batch import Req


class ReqToTokenPool:
    """For each running request, the KV row of each of its positions."""

    def __init__(self, size: int, max_context_len: int, device: Any) -> None:
        self.size = size
        self.max_context_len = max_context_len
        self.req_to_token = torch.zeros((size + 1, max_context_len), dtype=torch.int64, device=device)
        self.free_slots = list(range(size, 0, -1))  # slot 0 belongs to padding

    def available_size(self) -> int:
        """Return how many more requests fit."""
        return len(self.free_slots)

    def alloc(self, reqs: list[Req]) -> list[int] | None:
        """Give each request a slot and return the slots, or None when they are too few; then nothing is taken."""
        if len(reqs) > len(self.free_slots):
            return None
        for req in reqs:
            req.slot = self.free_slots.pop()
        return [req.slot for req in reqs]  # type: ignore[misc]

    def free(self, req: Req) -> None:
        """Take a request's slot back."""
        assert req.slot is not None
        self.free_slots.append(req.slot)
        req.slot = None

    def write(self, indices: tuple[int, slice], values: torch.Tensor) -> None:
        """Note the KV rows of a slot's positions."""
        self.req_to_token[indices] = values


class MHATokenToKVPool:
    """Keys and values of multi-head attention: per layer, (tokens, heads, head width). A platform's own pool takes the same arguments."""

    def __init__(
        self,
        size: int,
        page_size: int,
        dtype: torch.dtype,
        head_num: int,
        head_dim: int,
        layer_num: int,
        device: Any,
        enable_memory_saver: bool = False,
        start_layer: int | None = None,
        end_layer: int | None = None,
    ) -> None:
        self.size = size
        self.page_size = page_size
        self.dtype = self.store_dtype = dtype
        self.head_num = head_num
        self.head_dim = head_dim
        self.layer_num = layer_num
        self.device = device
        self.enable_memory_saver = enable_memory_saver
        self.start_layer = start_layer or 0
        self.end_layer = layer_num - 1 if end_layer is None else end_layer
        self._create_buffers()

    def _create_buffers(self) -> None:
        """Make the storage. The method to override for another memory layout."""
        shape = (self.size + self.page_size, self.head_num, self.head_dim)
        self.k_buffer = [torch.zeros(shape, dtype=self.store_dtype, device=self.device) for _ in range(self.layer_num)]
        self.v_buffer = [torch.zeros(shape, dtype=self.store_dtype, device=self.device) for _ in range(self.layer_num)]

    def get_key_buffer(self, layer_id: int) -> torch.Tensor:
        """Return all keys of a layer."""
        return self.k_buffer[layer_id]

    def get_value_buffer(self, layer_id: int) -> torch.Tensor:
        """Return all values of a layer."""
        return self.v_buffer[layer_id]

    def get_kv_buffer(self, layer_id: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return all keys and values of a layer."""
        return self.get_key_buffer(layer_id), self.get_value_buffer(layer_id)

    def set_kv_buffer(
        self,
        layer: Any,
        loc_info: torch.Tensor,
        cache_k: torch.Tensor,
        cache_v: torch.Tensor,
        k_scale: float | None = None,
        v_scale: float | None = None,
        layer_id_override: int | None = None,
        dcp_kv_mask: torch.Tensor | None = None,
    ) -> None:
        """Write the keys and values of new tokens to their rows."""
        self.k_buffer[layer.layer_id][loc_info] = cache_k.to(self.store_dtype)
        self.v_buffer[layer.layer_id][loc_info] = cache_v.to(self.store_dtype)
