"""The process's groups: the world, and the sequence-parallel group that spans it."""

from __future__ import annotations

import datetime as dt
import logging
import os
from typing import Any

import torch

from .. import platforms
from .group_coordinator import GroupCoordinator, get_local_torch_device

logger = logging.getLogger(__name__)

_SP: GroupCoordinator | None = None


def init_distributed_environment(
    world_size: int,
    rank: int,
    local_rank: int,
    distributed_init_method: str,
    device_id: torch.device | None = None,
    backend: str | None = None,
    timeout: float | None = None,
) -> None:
    """Join the process group with the platform's backend; `device_id` is passed on only where the platform supports it."""
    platform = platforms.current_platform
    backend = backend or platform.get_torch_distributed_backend_str()
    options: dict[str, Any] = {}
    if platform.supports_distributed_device_id():
        options["device_id"] = device_id
    if timeout is not None:
        options["timeout"] = dt.timedelta(seconds=timeout)
    logger.info("Using %s backend for %s platform", backend, platform.device_name)
    torch.distributed.init_process_group(backend=backend, init_method=distributed_init_method, world_size=world_size, rank=rank, **options)


def maybe_init_distributed_environment_and_model_parallel(
    sp_size: int, tp_size: int = 1, distributed_init_method: str = "env://", dist_timeout: float | None = None
) -> None:
    """Bring up the world and its sequence-parallel group once in this process, from `RANK`, `WORLD_SIZE` and `LOCAL_RANK`.

    Raises:
        ValueError: tensor parallelism is asked for, or the sequence-parallel size is not the world's.
    """
    global _SP  # noqa: PLW0603 - one group a process, as upstream keeps it
    if _SP is not None:
        return
    world_size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if tp_size != 1 or sp_size != world_size:
        raise ValueError(f"the stand-in shares the sequence among all {world_size} ranks: tp_size must be 1 and sp_size {world_size}")
    platform, device = platforms.current_platform, get_local_torch_device()
    platform.set_device(device)
    backend = platform.get_torch_distributed_backend_str()
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    init_distributed_environment(world_size, rank, local_rank, distributed_init_method, device, backend, dist_timeout)
    _SP = GroupCoordinator(list(range(world_size)), backend, "sp:0")


def model_parallel_is_initialized() -> bool:
    """Return whether the groups are up."""
    return _SP is not None


def get_sp_group() -> GroupCoordinator:
    """Return the group that shares the sequence.

    Raises:
        AssertionError: the groups are not up.
    """
    assert _SP is not None, "sequence parallel group is not initialized"
    return _SP


def get_sp_world_size() -> int:
    """Return the number of ranks that share the sequence."""
    return get_sp_group().world_size


def get_sp_parallel_rank() -> int:
    """Return this rank's place among them."""
    return get_sp_group().rank_in_group


get_world_group = get_sp_group
get_sequence_parallel_world_size = get_sp_world_size


def destroy_model_parallel() -> None:
    """Leave the groups."""
    global _SP  # noqa: PLW0603
    if _SP is not None:
        _SP.destroy()
        _SP = None
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
