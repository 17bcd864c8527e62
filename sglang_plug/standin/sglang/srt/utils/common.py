"""Questions to the platform, asked in one place. Importing this module resolves the platform: `import sglang` does it first of all."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

from ..platforms import current_platform

if TYPE_CHECKING:
    from collections.abc import Callable


def is_cuda() -> bool:
    """Tell whether the platform is NVIDIA's."""
    return current_platform.is_cuda()


def is_hip() -> bool:
    """Tell whether the platform is AMD's."""
    return current_platform.is_rocm()


def is_cpu() -> bool:
    """Tell whether there is no accelerator."""
    return current_platform.is_cpu()


def is_xpu() -> bool:
    """Tell whether the platform is Intel's."""
    return current_platform.is_xpu()


def is_npu() -> bool:
    """Tell whether the platform is Ascend."""
    return current_platform.is_npu()


def is_musa() -> bool:
    """Tell whether the platform is Moore Threads'."""
    return current_platform.is_musa()


def is_tpu() -> bool:
    """Tell whether the platform is Google's TPU."""
    return current_platform.is_tpu()


def is_mps() -> bool:
    """Tell whether the platform is Apple's GPU."""
    return current_platform.is_mps()


def is_sail() -> bool:
    """Tell whether the platform is T-Head's."""
    return current_platform.is_sail()


def is_cuda_alike() -> bool:
    """Tell whether the device offers the CUDA programming interface."""
    return current_platform.is_cuda_alike()


def is_pin_memory_available(device: Any = None) -> bool:
    """Tell whether copies to `device` may start from pinned memory. An older override that takes no device is asked without."""
    method = current_platform.is_pin_memory_available
    return method(device) if inspect.signature(method).parameters else method()


def get_available_gpu_memory(device_id: int = 0) -> tuple[int, int] | None:
    """Return free and total bytes: total less usage, as SGLang does, else as told directly; None where the platform tells neither."""
    with contextlib.suppress(NotImplementedError):
        total = current_platform.get_device_total_memory(device_id)
        return int(total - current_platform.get_current_memory_usage()), int(total)
    with contextlib.suppress(NotImplementedError):
        return current_platform.get_available_memory(device_id)
    return None


def get_device_name(device_id: int = 0) -> str:
    """Return the device's name, or the platform's where it tells none."""
    try:
        return current_platform.get_device_name(device_id)
    except NotImplementedError:
        return current_platform.device_name


_IDENTITIES = (is_cuda, is_hip, is_cpu, is_xpu, is_npu, is_musa, is_tpu, is_mps, is_sail, is_cuda_alike)


def describe_platform(device_id: int = 0) -> dict[str, Any]:
    """Return what the platform says about itself and this device, for logs and the server's information."""

    def ask(question: Callable[[], Any]) -> str | None:
        try:
            return str(question())
        except NotImplementedError:
            return None

    return {
        "platform": repr(current_platform),
        "class": f"{type(current_platform).__module__}.{type(current_platform).__qualname__}",
        "device_name": get_device_name(device_id),
        "device_uuid": ask(lambda: current_platform.get_device_uuid(device_id)),
        "device_capability": ask(lambda: current_platform.get_device_capability(device_id)),
        "available_memory": ask(lambda: current_platform.get_available_memory(device_id)),
        "memory_in_use": ask(current_platform.get_current_memory_usage),
        "cpu_architecture": current_platform.cpu_arch.name,
        "out_of_tree": current_platform.is_out_of_tree(),
        "acts_as": [is_so.__name__.removeprefix("is_") for is_so in _IDENTITIES if is_so()],
        "dispatch_key": current_platform.get_dispatch_key_name(),
    }


def optional_class(factory: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what a platform's factory offers, None where it leaves the choice to the engine: by None or by NotImplementedError."""
    try:
        return factory(*args, **kwargs)
    except NotImplementedError:
        return None
