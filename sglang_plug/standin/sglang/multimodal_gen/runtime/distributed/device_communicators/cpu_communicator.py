"""Collectives over gloo on host memory."""

from __future__ import annotations

from .base_device_communicator import DeviceCommunicatorBase


class CpuCommunicator(DeviceCommunicatorBase):
    """The base communicator; gloo has every operation that it uses."""
