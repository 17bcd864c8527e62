"""The communicator that a platform may replace: collective operations of one group on the platform's device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class DeviceCommunicatorBase:
    """Collectives over `device_group`. `all_to_all_4D` is what sequence parallelism uses."""

    def __init__(
        self,
        cpu_group: ProcessGroup,
        device: torch.device | None = None,
        device_group: ProcessGroup | None = None,
        unique_name: str = "",
    ) -> None:
        self.device = device or torch.device("cpu")
        self.cpu_group = cpu_group
        self.device_group = device_group
        self.unique_name = unique_name
        self.world_size = dist.get_world_size(cpu_group)
        self.ranks = dist.get_process_group_ranks(cpu_group)
        self.global_rank = dist.get_rank()
        self.rank_in_group = dist.get_group_rank(cpu_group, self.global_rank)

    def all_reduce(self, input_: torch.Tensor) -> torch.Tensor:
        """Return the sum over the ranks."""
        out = input_.clone()
        dist.all_reduce(out, group=self.device_group)
        return out

    def all_gather(self, input_: torch.Tensor, dim: int = -1) -> torch.Tensor:
        """Return the ranks' tensors joined along `dim`."""
        parts = [torch.empty_like(input_) for _ in range(self.world_size)]
        dist.all_gather(parts, input_.contiguous(), group=self.device_group)
        return torch.cat(parts, dim=dim)

    def all_to_all_4D(self, input_: torch.Tensor, scatter_dim: int = 2, gather_dim: int = 1) -> torch.Tensor:
        """Give each rank its share of `scatter_dim` and join what the others hold of `gather_dim`.

        Args:
            input_: (batch, sequence, heads, head size).
            scatter_dim: 2 with `gather_dim` 1 (heads out, sequence in), or 1 with 2 (the way back).
            gather_dim: see `scatter_dim`.

        Raises:
            ValueError: another pair of dimensions, or a size that the ranks cannot share evenly.
        """
        if {scatter_dim, gather_dim} != {1, 2} or input_.dim() != 4:
            raise ValueError(f"all_to_all_4D trades dimensions 1 and 2 of a 4-D tensor, not {scatter_dim} and {gather_dim}")
        if input_.shape[scatter_dim] % self.world_size:
            raise ValueError(f"size {input_.shape[scatter_dim]} of dimension {scatter_dim} cannot be shared among {self.world_size} ranks")
        send = torch.stack(input_.chunk(self.world_size, dim=scatter_dim)).contiguous()
        received = torch.empty_like(send)
        dist.all_to_all_single(received, send, group=self.device_group)
        return torch.cat(list(received), dim=gather_dim)

    def destroy(self) -> None:
        """Give back what the communicator holds."""
