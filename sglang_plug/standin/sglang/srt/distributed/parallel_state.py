"""The ranks of this engine, and what they say to each other. Owns torch.distributed; one group, all ranks on this machine."""

from __future__ import annotations

import datetime as dt
import os
from typing import Any

import torch
import torch.distributed as dist

from ..platforms import current_platform

# A rank may be compiling or loading while the others wait.
_PATIENCE = dt.timedelta(minutes=30)


class GroupCoordinator:
    """One rank's way to the others. With a single rank every operation returns its argument.

    Args:
        rank: this process's number.
        size: how many there are.
        device: what this rank's communication is bound to.
        communicator: the platform's own communicator, or None.
    """

    def __init__(self, rank: int, size: int, device: Any, communicator: Any = None) -> None:
        self.rank = rank
        self.world_size = size
        self.device = device
        self.communicator = communicator
        # Objects go over the CPU, whatever moves tensors.
        self.cpu_group = dist.new_group(backend="gloo", timeout=_PATIENCE) if size > 1 else None

    def all_reduce(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the sum of all ranks' tensors."""
        if self.world_size == 1:
            return tensor
        if self.communicator is not None:
            return self.communicator.all_reduce(tensor)
        dist.all_reduce(tensor)
        return tensor

    def all_gather(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return all ranks' tensors side by side, along the last dimension."""
        if self.world_size == 1:
            return tensor
        if self.communicator is not None:
            return self.communicator.all_gather(tensor, -1)
        parts = [torch.empty_like(tensor) for _ in range(self.world_size)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts, dim=-1)

    def broadcast_object(self, value: Any = None) -> Any:
        """Return rank 0's object on every rank."""
        if self.cpu_group is None:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.cpu_group)
        return box[0]

    def min_over_ranks(self, number: int) -> int:
        """Return the smallest of all ranks' numbers."""
        if self.cpu_group is None:
            return number
        box = torch.tensor([number])
        dist.all_reduce(box, op=dist.ReduceOp.MIN, group=self.cpu_group)
        return int(box.item())


_BACKENDS = {"cuda": "nccl", "xpu": "xccl", "hpu": "hccl", "npu": "hccl", "musa": "mccl"}
_tp_group: GroupCoordinator | None = None


def _backend() -> str:
    """Return the platform's backend; of one that names none, what SGLang takes by its device type (since 0.5.14)."""
    try:
        return current_platform.get_torch_distributed_backend_str()
    except NotImplementedError:
        return _BACKENDS.get(current_platform.device_type, "gloo")


def init_distributed(rank: int, size: int, local_rank: int, init_method: str) -> GroupCoordinator:
    """Join the ranks of this engine, with the platform's backend and communicator.

    Raises:
        Exception: what torch.distributed or the platform raises.
    """
    global _tp_group  # noqa: PLW0603 - one group a process
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if os.path.exists("/sys/class/net/lo") else "lo0")
    backend = _backend()
    dist.init_process_group(backend=backend, init_method=init_method, rank=rank, world_size=size, timeout=_PATIENCE)
    if current_platform.is_out_of_tree():
        device = current_platform.get_group_coordinator_device(local_rank)
    else:
        device = torch.device("cpu") if backend == "gloo" else torch.device(current_platform.device_type, local_rank)
    communicator_class = current_platform.get_communicator_class()
    communicator = communicator_class(group=dist.group.WORLD, device=device) if communicator_class is not None else None
    _tp_group = GroupCoordinator(rank, size, device, communicator)
    return _tp_group


def get_tp_group() -> GroupCoordinator:
    """Return this process's group; a group of one where none was joined."""
    global _tp_group  # noqa: PLW0603 - as above
    if _tp_group is None:
        _tp_group = GroupCoordinator(0, 1, torch.device("cpu"))
    return _tp_group
