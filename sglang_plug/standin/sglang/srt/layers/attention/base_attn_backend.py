"""`AttentionBackend`: what every attention backend offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class AttentionBackend(ABC):
    """Writes new keys and values to the KV pool, and lets each token attend to its sequence."""

    def init_forward_metadata(self, forward_batch: Any) -> None:  # noqa: B027 - most backends share nothing
        """Prepare what all layers of this step share."""

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: Any, forward_batch: Any, save_kv_cache: bool = True
    ) -> torch.Tensor:
        """Run the step's kind of attention."""
        method = self.forward_decode if forward_batch.forward_mode.is_decode() else self.forward_extend
        return method(q, k, v, layer, forward_batch, save_kv_cache)

    @abstractmethod
    def forward_extend(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: Any, forward_batch: Any, save_kv_cache: bool = True
    ) -> torch.Tensor:
        """Attend with the new tokens of each sequence to its past and themselves."""

    @abstractmethod
    def forward_decode(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layer: Any, forward_batch: Any, save_kv_cache: bool = True
    ) -> torch.Tensor:
        """Attend with the one new token of each sequence to its past and itself."""
