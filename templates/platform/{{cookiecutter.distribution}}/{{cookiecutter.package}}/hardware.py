"""What the device is, and what it has. The only module that talks to the driver; it imports no SGLang.

Lines marked VENDOR stand in for your driver: replace them, from the top down.
"""

from __future__ import annotations

{% if cookiecutter.device_type == "cpu" %}
import os
import resource

DEVICE_TYPE = "cpu"  # VENDOR: your torch device type; `cpu` runs everything on the processor


def available() -> bool:
    """Tell whether the device can be used here. Runs in every process, so it must be quick and initialise nothing."""
    return True  # VENDOR: ask the driver, e.g. os.path.exists("/dev/{{ cookiecutter.package }}0")


def name(index: int = 0) -> str:
    """Return what people call this device."""
    return "{{ cookiecutter.prefix }} (CPU-backed)"  # VENDOR: the product's name


def uuid(index: int = 0) -> str:
    """Return a name that no other device on this machine has, the same in every process."""
    return f"{{ cookiecutter.package }}-{index}"  # VENDOR: the serial number or PCI address


def capability(index: int = 0) -> tuple[int, int] | None:
    """Return the compute capability as (major, minor), or None where the notion does not exist."""
    return None  # VENDOR: only if kernels are chosen by it


def total_memory(index: int = 0) -> int:
    """Return the device's memory in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # VENDOR


def free_memory(index: int = 0) -> int:
    """Return the device's free memory in bytes."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # VENDOR


def peak_memory(index: int = 0) -> int:
    """Return the most memory that this process has had on the device, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # VENDOR


def use(index: int = 0) -> None:
    """Make the device current for this thread."""
    # VENDOR: torch.get_device_module(DEVICE_TYPE).set_device(index)


def synchronize() -> None:
    """Wait until the device has finished its work."""
    # VENDOR: torch.get_device_module(DEVICE_TYPE).synchronize()


def empty_cache() -> None:
    """Give unused memory back to the device."""
    # VENDOR: torch.get_device_module(DEVICE_TYPE).empty_cache()
{% else %}
{% if cookiecutter.torch_extension %}
import importlib.util
{% endif %}
from typing import Any

DEVICE_TYPE = "{{ cookiecutter.device_type }}"


def available() -> bool:
    """Tell whether the device can be used here. Runs in every process, so it must be quick and initialise nothing."""
{% if cookiecutter.torch_extension %}
    return importlib.util.find_spec("{{ cookiecutter.torch_extension }}") is not None  # VENDOR: ask the driver
{% else %}
    return bool(_torch().is_available())  # VENDOR: ask the driver whether it is *your* device
{% endif %}


def load() -> None:
    """Make torch know the device type. The platform's modules call it when they are imported.

    Not in init_backend(): SGLang asks torch for the device module before that.
    """
{% if cookiecutter.torch_extension %}
    import {{ cookiecutter.torch_extension }}  # noqa: F401  # VENDOR: your torch extension, which renames privateuse1
{% endif %}


def name(index: int = 0) -> str:
    """Return what people call this device."""
    return str(_torch().get_device_name(index))  # VENDOR


def uuid(index: int = 0) -> str:
    """Return a name that no other device on this machine has, the same in every process."""
    return f"{DEVICE_TYPE}-{index}"  # VENDOR: the serial number or PCI address


def capability(index: int = 0) -> tuple[int, int] | None:
    """Return the compute capability as (major, minor), or None where the notion does not exist."""
    return None  # VENDOR: only if kernels are chosen by it


def total_memory(index: int = 0) -> int:
    """Return the device's memory in bytes."""
    return int(_torch().mem_get_info(index)[1])  # VENDOR


def free_memory(index: int = 0) -> int:
    """Return the device's free memory in bytes."""
    return int(_torch().mem_get_info(index)[0])  # VENDOR


def peak_memory(index: int = 0) -> int:
    """Return the most memory that this process has had on the device, in bytes."""
    return int(_torch().max_memory_allocated(index))  # VENDOR


def use(index: int = 0) -> None:
    """Make the device current for this thread."""
    _torch().set_device(index)  # VENDOR


def synchronize() -> None:
    """Wait until the device has finished its work."""
    _torch().synchronize()  # VENDOR


def empty_cache() -> None:
    """Give unused memory back to the device."""
    _torch().empty_cache()  # VENDOR


def _torch() -> Any:
    """Return the device's torch module (`torch.cuda`, `torch.{{ cookiecutter.device_type }}`)."""
    import torch

    return torch.get_device_module(DEVICE_TYPE)
{% endif %}
