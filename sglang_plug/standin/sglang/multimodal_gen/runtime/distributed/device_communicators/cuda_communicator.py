"""Collectives over NCCL."""

from __future__ import annotations

from .base_device_communicator import DeviceCommunicatorBase


class CudaCommunicator(DeviceCommunicatorBase):
    """The base communicator; NCCL has every operation that it uses."""
