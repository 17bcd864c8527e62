"""`DeviceMixin`: who a platform is and how its device is driven, with the documented defaults. No torch at module scope.

Source: rule S8, the tables "Identity queries", "Device operations" and "Types"; newer names as in the releases since.
"""

from __future__ import annotations

import enum
import platform as _platform
import random
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class PlatformEnum(enum.Enum):
    """Who a platform is. A plugin's platform is `OOT`."""

    CUDA = enum.auto()
    ROCM = enum.auto()
    CPU = enum.auto()
    XPU = enum.auto()
    MUSA = enum.auto()
    NPU = enum.auto()
    TPU = enum.auto()
    MPS = enum.auto()
    SAIL = enum.auto()
    OOT = enum.auto()
    UNSPECIFIED = enum.auto()


class CpuArchEnum(enum.Enum):
    """The host's processor family."""

    X86 = enum.auto()
    ARM = enum.auto()
    UNSPECIFIED = enum.auto()


class DeviceCapability(NamedTuple):
    """A device's generation, comparable: `DeviceCapability(9, 0) >= (8, 9)`."""

    major: int
    minor: int

    def as_version_str(self) -> str:
        """Return `major.minor`."""
        return f"{self.major}.{self.minor}"

    def to_int(self) -> int:
        """Return the two digits as one number: 8.9 is 89. Raises: AssertionError: minor has two digits."""
        assert 0 <= self.minor < 10
        return self.major * 10 + self.minor


class DeviceMixin:
    """The device's identity and operations. Override the three attributes and what your device does differently."""

    _enum: PlatformEnum = PlatformEnum.UNSPECIFIED
    device_name: str = "unknown"
    device_type: str = "cpu"

    def is_cuda(self) -> bool:
        """Tell whether this is an NVIDIA platform."""
        return self._enum == PlatformEnum.CUDA

    def is_rocm(self) -> bool:
        """Tell whether this is an AMD platform."""
        return self._enum == PlatformEnum.ROCM

    def is_cpu(self) -> bool:
        """Tell whether this platform has no accelerator."""
        return self._enum == PlatformEnum.CPU

    def is_xpu(self) -> bool:
        """Tell whether this is an Intel GPU platform."""
        return self._enum == PlatformEnum.XPU

    def is_musa(self) -> bool:
        """Tell whether this is a Moore Threads platform."""
        return self._enum == PlatformEnum.MUSA

    def is_npu(self) -> bool:
        """Tell whether this is a Huawei Ascend platform."""
        return self._enum == PlatformEnum.NPU

    def is_tpu(self) -> bool:
        """Tell whether this is a Google TPU platform."""
        return self._enum == PlatformEnum.TPU

    def is_mps(self) -> bool:
        """Tell whether this is an Apple GPU platform."""
        return self._enum == PlatformEnum.MPS

    def is_sail(self) -> bool:
        """Tell whether this is a T-Head platform."""
        return self._enum == PlatformEnum.SAIL

    def is_cuda_alike(self) -> bool:
        """Tell whether the device offers the CUDA programming interface."""
        return self._enum in (PlatformEnum.CUDA, PlatformEnum.ROCM, PlatformEnum.MUSA, PlatformEnum.SAIL)

    def is_out_of_tree(self) -> bool:
        """Tell whether a plugin provides this platform."""
        return self._enum == PlatformEnum.OOT

    def get_device_total_memory(self, device_id: int = 0) -> int:
        """[Active] Return the device's memory in bytes."""
        raise NotImplementedError

    def get_current_memory_usage(self, device: Any = None) -> float:
        """[Active] Return the peak memory in use, in bytes."""
        raise NotImplementedError

    def is_pin_memory_available(self, device: Any = None) -> bool:
        """[Active] Tell whether copies to `device` may start from pinned host memory."""
        return False

    @contextmanager
    def reindex_device_id(self, device_id: int) -> Iterator[int]:
        """[Active] Within the block, let the physical device have the yielded number."""
        yield device_id

    def get_device(self, device_id: int = 0) -> Any:
        """[Planned in the document, called since 0.5.13] Return the device; SGLang asks with None and wants a string then."""
        raise NotImplementedError

    def set_device(self, device: Any) -> None:
        """[Planned in the document, called since] Make `device` the current one."""
        raise NotImplementedError

    def get_device_name(self, device_id: int = 0) -> str:
        """[Planned] Return the device's name for people."""
        raise NotImplementedError

    def get_device_uuid(self, device_id: int = 0) -> str:
        """[Planned in the document, called since] Return what identifies this device among all."""
        raise NotImplementedError

    def get_device_capability(self, device_id: int = 0) -> DeviceCapability | None:
        """[Planned in the document, called since] Return the device's generation, None where there is no such thing."""
        raise NotImplementedError

    def empty_cache(self) -> None:
        """[Planned in the document, called since 0.5.13] Give cached device memory back."""

    def synchronize(self) -> None:
        """[Planned in the document, called since 0.5.13] Wait until the device has done all its work."""

    def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
        """[Planned] Return free and total memory in bytes."""
        raise NotImplementedError

    def get_torch_distributed_backend_str(self) -> str:
        """[Planned in the document, called since 0.5.14] Return the torch.distributed backend."""
        raise NotImplementedError

    def get_communicator_class(self) -> type | None:
        """[Planned] Return the class of the device's own communicator, or None."""
        return None

    @classmethod
    def inference_mode(cls) -> Any:
        """[Planned] Return the context in which a forward pass runs."""
        import torch

        return torch.inference_mode(mode=True)

    @classmethod
    def seed_everything(cls, seed: int | None = None) -> None:
        """[Planned] Seed Python's, NumPy's and torch's random numbers."""
        if seed is None:
            return
        import numpy as np
        import torch

        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)

    def verify_quantization(self, quant: str) -> None:
        """[Planned] Raise where the quantization method `quant` is not supported."""

    @cached_property
    def cpu_arch(self) -> CpuArchEnum:
        """The host's processor family, asked once."""
        return self.get_cpu_architecture()

    @classmethod
    def get_cpu_architecture(cls) -> CpuArchEnum:
        """[Planned] Return the host's processor family."""
        machine = _platform.machine().lower()
        if machine in {"x86_64", "amd64", "i386", "i686"}:
            return CpuArchEnum.X86
        if machine in {"arm64", "aarch64"}:
            return CpuArchEnum.ARM
        return CpuArchEnum.UNSPECIFIED

    def get_torch_profiler_activity_str(self) -> str:
        """[Planned in the document, called since 0.5.16] Return the name under which a profile of the device is asked for."""
        raise NotImplementedError

    def get_torch_profiler_activity(self) -> Any:
        """[Planned in the document, called since 0.5.16] Return the torch profiler activity of the device."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(device={self.device_name})"


def __getattr__(name: str) -> Any:
    """Offer `np` as a module attribute, which SGLang's module has, without importing NumPy before it is needed."""
    if name == "np":
        import numpy as np

        return np
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
