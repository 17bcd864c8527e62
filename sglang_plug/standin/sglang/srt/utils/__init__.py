"""Questions about the device that many modules ask. As in SGLang, this module is complete only when the platform is resolved."""

from .common import (
    get_available_gpu_memory,
    get_device_name,
    is_cpu,
    is_cuda,
    is_cuda_alike,
    is_hip,
    is_mps,
    is_musa,
    is_npu,
    is_pin_memory_available,
    is_sail,
    is_tpu,
    is_xpu,
    optional_class,
)

__all__ = [
    "get_available_gpu_memory",
    "get_device_name",
    "is_cpu",
    "is_cuda",
    "is_cuda_alike",
    "is_hip",
    "is_mps",
    "is_musa",
    "is_npu",
    "is_pin_memory_available",
    "is_sail",
    "is_tpu",
    "is_xpu",
    "optional_class",
]
