{% if cookiecutter.srt %}
"""The device in SGLang's words: the mixin that the SRT platform builds on.

`[{{ cookiecutter.release }}: …]` tells who calls a method in that release, counted in its code; the `[Planned]` labels of
SGLang's own docstrings are out of date.
"""

from __future__ import annotations

from typing import Any

{% if cookiecutter.device_type == "cpu" %}
import torch
from sglang.srt.platforms.device_mixin import DeviceCapability, DeviceMixin, PlatformEnum

from {{ cookiecutter.package }} import hardware
{% else %}
import torch
from sglang.srt.platforms.device_mixin import DeviceCapability, DeviceMixin, PlatformEnum

from {{ cookiecutter.package }} import hardware

hardware.load()
{% endif %}


class {{ cookiecutter.prefix }}Device(DeviceMixin):
    """What SGLang asks of a device."""

    _enum = PlatformEnum.OOT  # anything else, and the core's out-of-tree branches pass this device by
    device_name = "{{ cookiecutter.package }}"
    device_type = hardware.DEVICE_TYPE

    # --- asked before the first token ---

    def get_device(self, device_id: int | None = 0) -> str:
        """Return the torch device as a string. {{ cookiecutter.status.get_device }}

        The server's arguments ask with None, and split what they get at ":": a torch.device fails there.
        """
{% if cookiecutter.device_type == "cpu" %}
        return self.device_type  # VENDOR: self.device_type if device_id is None else f"{self.device_type}:{device_id}"
{% else %}
        return self.device_type if device_id is None else f"{self.device_type}:{device_id}"
{% endif %}

    def get_device_total_memory(self, device_id: int = 0) -> int:
        """Return the memory in bytes. {{ cookiecutter.status.get_device_total_memory }}"""
        return hardware.total_memory(device_id)

    def get_current_memory_usage(self, device: torch.device | None = None) -> float:
        """Return the peak use in bytes. {{ cookiecutter.status.get_current_memory_usage }}"""
        return float(hardware.peak_memory(_index(device)))

    def get_torch_distributed_backend_str(self) -> str:
        """Return the collective backend. {{ cookiecutter.status.get_torch_distributed_backend_str }}"""
        return "{{ "nccl" if cookiecutter.device_type == "cuda" else "xccl" if cookiecutter.device_type == "xpu" else "gloo" }}"  # VENDOR: the name your library registers with torch.distributed

    def is_pin_memory_available(self, device: Any = None) -> bool:
        """Tell whether host memory can be pinned. {{ cookiecutter.status.is_pin_memory_available }}"""
        return False  # VENDOR

    # --- asked while it serves ---

    def set_device(self, device: Any) -> None:
        """Make `device` current. {{ cookiecutter.status.set_device }}"""
        hardware.use(_index(device))

    def synchronize(self) -> None:
        """Wait for the device. {{ cookiecutter.status.synchronize }}"""
        hardware.synchronize()

    def empty_cache(self) -> None:
        """Give unused memory back. {{ cookiecutter.status.empty_cache }}"""
        hardware.empty_cache()

    def get_device_uuid(self, device_id: int = 0) -> str:
        """Return a unique name. {{ cookiecutter.status.get_device_uuid }}"""
        return hardware.uuid(device_id)

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        """Return (major, minor), or None. {{ cookiecutter.status.get_device_capability }}"""
        capability = hardware.capability(device_id)
        return None if capability is None else DeviceCapability(*capability)

    def get_torch_profiler_activity(self) -> torch.profiler.ProfilerActivity:
        """Return what torch's profiler records. {{ cookiecutter.status.get_torch_profiler_activity }}"""
        return torch.profiler.ProfilerActivity.{{ "CUDA" if cookiecutter.device_type == "cuda" else "XPU" if cookiecutter.device_type == "xpu" else "CPU" if cookiecutter.device_type == "cpu" else "PrivateUse1" }}  # VENDOR

    def get_torch_profiler_activity_str(self) -> str:
        """Return the activity's name for users. {{ cookiecutter.status.get_torch_profiler_activity_str }}"""
        return "{{ "GPU" if cookiecutter.device_type == "cuda" else cookiecutter.device_type | upper }}"  # VENDOR

    # --- for people and later releases ---

    def get_device_name(self, device_id: int = 0) -> str:
        """Return what people call it. {{ cookiecutter.status.get_device_name }}"""
        return hardware.name(device_id)

    def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
        """Return (free, total) in bytes. {{ cookiecutter.status.get_available_memory }}"""
        return hardware.free_memory(device_id), hardware.total_memory(device_id)


def _index(device: Any) -> int:
    """Return the index in an int, a torch.device, a string such as `cuda:1`, or None."""
    if isinstance(device, int):
        return device
    index = None if device is None else torch.device(device).index
    return index or 0
{% endif %}
