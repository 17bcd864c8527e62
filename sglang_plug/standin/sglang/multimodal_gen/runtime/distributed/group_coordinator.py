"""One group of ranks, and the platform's communicator inside it."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any

import torch

from ..platforms import current_platform
from .device_communicators.base_device_communicator import DeviceCommunicatorBase


def get_local_torch_device() -> torch.device:
    """Return this rank's device, as the platform says."""
    return current_platform.get_local_torch_device()


def _resolve_all_to_all_communicator_cls() -> type[DeviceCommunicatorBase]:
    qualname = current_platform.get_all_to_all_communicator_cls()
    communicator = resolve_name(qualname)
    if not isinstance(communicator, type) or not issubclass(communicator, DeviceCommunicatorBase):
        raise TypeError(f"Expected a DeviceCommunicatorBase subclass: {qualname}")
    return communicator


class GroupCoordinator:
    """A group of ranks that contains this one.

    Raises:
        TypeError: the platform's communicator is not a `DeviceCommunicatorBase`.
    """

    def __init__(self, ranks: list[int], backend: str, group_name: str) -> None:
        self.unique_name = group_name
        self.ranks = ranks
        self.rank = torch.distributed.get_rank()
        self.world_size = len(ranks)
        self.rank_in_group = ranks.index(self.rank)
        self.device_group: Any = torch.distributed.new_group(ranks, backend=backend)
        self.cpu_group: Any = torch.distributed.new_group(ranks, backend="gloo")
        self.device_communicator: DeviceCommunicatorBase | None = None
        if self.world_size > 1:
            self.device_communicator = _resolve_all_to_all_communicator_cls()(
                cpu_group=self.cpu_group,
                device=get_local_torch_device(),
                device_group=self.device_group,
                unique_name=self.unique_name,
            )

    def all_to_all_4D(self, input_: torch.Tensor, scatter_dim: int = 2, gather_dim: int = 1) -> torch.Tensor:
        """Trade one dimension for another among the ranks; alone, return the tensor as it is."""
        if self.device_communicator is None:
            return input_
        return self.device_communicator.all_to_all_4D(input_, scatter_dim, gather_dim)

    def all_gather(self, input_: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """Return the ranks' tensors joined along `dim`."""
        if self.device_communicator is None:
            return input_
        return self.device_communicator.all_gather(input_, dim)

    def broadcast_object(self, value: Any, src: int = 0) -> Any:
        """Return what the rank `src` of the group passed in."""
        if self.world_size == 1:
            return value
        holder = [value]
        torch.distributed.broadcast_object_list(holder, src=self.ranks[src], group=self.cpu_group)
        return holder[0]

    def gather_object(self, value: Any, dst: int = 0) -> list[Any] | None:
        """Return every rank's value on rank `dst`, None elsewhere."""
        if self.world_size == 1:
            return [value]
        gathered = [None] * self.world_size if self.rank_in_group == dst else None
        torch.distributed.gather_object(value, gathered, dst=self.ranks[dst], group=self.cpu_group)
        return gathered

    def destroy(self) -> None:
        """Let the communicator give back what it holds."""
        if self.device_communicator is not None:
            self.device_communicator.destroy()
