"""Who a diffusion platform is: the enumerations, the capability, and the queries that read `_enum`. No torch at module scope.

Upstream has these names in `interface`, which offers them too.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class AttentionBackendEnum(enum.Enum):
    """The attention backends that can be asked for by name. The stand-in ships TORCH_SDPA and NO_ATTENTION is never chosen."""

    FA2 = enum.auto()
    FA = enum.auto()
    SLIDING_TILE_ATTN = enum.auto()
    TORCH_SDPA = enum.auto()
    TORCH_CUDNN_SDPA = enum.auto()
    DYNAMIC_CUDNN_SDPA = enum.auto()
    SAGE_ATTN = enum.auto()
    SAGE_ATTN_3 = enum.auto()
    SPARGE_ATTN = enum.auto()
    VIDEO_SPARSE_ATTN = enum.auto()
    VIDEO_SPARSE_ATTN_H3 = enum.auto()
    HYBRID_WINDOW_ATTN_H3 = enum.auto()
    SPARSE_VIDEO_GEN_2_ATTN = enum.auto()
    VMOBA_ATTN = enum.auto()
    AITER = enum.auto()
    AITER_SAGE = enum.auto()
    SLA_ATTN = enum.auto()
    SAGE_SLA_ATTN = enum.auto()
    LASER_ATTN = enum.auto()
    BLOCK_SPARSE_ATTN = enum.auto()
    RAIN_FUSION_ATTN = enum.auto()
    SOL_ATTN = enum.auto()
    SUBBLOCK_SPARSE_ATTN = enum.auto()
    CUBE_SPARSE_ATTN = enum.auto()
    FP8_FA_SM120 = enum.auto()
    NO_ATTENTION = enum.auto()

    def __str__(self) -> str:
        return self.name.lower()


class PlatformEnum(enum.Enum):
    """Who a diffusion platform is. Not SRT's enum: a package for both runtimes uses each runtime's own `OOT`."""

    CUDA = enum.auto()
    ROCM = enum.auto()
    TPU = enum.auto()
    CPU = enum.auto()
    MPS = enum.auto()
    NPU = enum.auto()
    MUSA = enum.auto()
    XPU = enum.auto()
    OOT = enum.auto()
    UNSPECIFIED = enum.auto()


class CpuArchEnum(enum.Enum):
    """The architecture of the host's processor."""

    X86 = enum.auto()
    ARM = enum.auto()
    UNSPECIFIED = enum.auto()


class DeviceCapability(NamedTuple):
    """A compute capability, ordered as a tuple."""

    major: int
    minor: int

    def as_version_str(self) -> str:
        """Return `major.minor`."""
        return f"{self.major}.{self.minor}"

    def to_int(self) -> int:
        """Return `major * 10 + minor`.

        Raises:
            AssertionError: the minor number has two digits, so that the answer would be ambiguous.
        """
        assert 0 <= self.minor < 10
        return self.major * 10 + self.minor


class Identity:
    """The identity queries: all read `_enum`, so that an out-of-tree platform is nothing else until it says so."""

    _enum: PlatformEnum = PlatformEnum.UNSPECIFIED
    device_type: str

    @classmethod
    def is_cuda_static(cls) -> bool:
        return cls._enum is PlatformEnum.CUDA

    @classmethod
    def is_rocm_static(cls) -> bool:
        return cls._enum is PlatformEnum.ROCM

    def is_cuda(self) -> bool:
        return self.is_cuda_static()

    def is_rocm(self) -> bool:
        return self.is_rocm_static()

    def is_hip(self) -> bool:
        return self.is_rocm()

    def is_tpu(self) -> bool:
        return self._enum is PlatformEnum.TPU

    def is_cpu(self) -> bool:
        return self._enum is PlatformEnum.CPU

    def is_mps(self) -> bool:
        return self._enum is PlatformEnum.MPS

    def is_npu(self) -> bool:
        return self._enum is PlatformEnum.NPU

    def is_xpu(self) -> bool:
        return self._enum is PlatformEnum.XPU

    def is_musa(self) -> bool:
        return self._enum is PlatformEnum.MUSA

    def is_out_of_tree(self) -> bool:
        return self._enum is PlatformEnum.OOT

    def is_cuda_alike(self) -> bool:
        return self._enum in (PlatformEnum.CUDA, PlatformEnum.ROCM, PlatformEnum.MUSA)

    def is_device_type(self, device_type: str | None) -> bool:
        return device_type == self.device_type

    def is_hpu(self) -> bool:
        """Return whether torch carries an available `hpu` module; nothing but torch knows that device."""
        import torch

        return bool(hasattr(torch, "hpu") and torch.hpu.is_available())

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        """Return the compute capability, or None where the device has none."""
        return None

    @classmethod
    def has_device_capability(cls, capability: tuple[int, int] | int, device_id: int = 0) -> bool:
        """Return whether the device has at least `capability`, given as (major, minor) or as `major * 10 + minor`."""
        current = cls.get_device_capability(device_id=device_id)
        if current is None:
            return False
        return current >= capability if isinstance(capability, tuple) else current.to_int() >= capability

    @classmethod
    def _is_cuda_major(cls, *majors: int) -> bool:
        if not cls.is_cuda_static():
            return False
        capability = cls.get_device_capability()
        return capability is not None and capability[0] in majors

    @classmethod
    def is_hopper(cls) -> bool:
        return cls._is_cuda_major(9)

    @classmethod
    def is_blackwell(cls) -> bool:
        return cls._is_cuda_major(10)

    @classmethod
    def is_sm120(cls) -> bool:
        return cls._is_cuda_major(12)

    @classmethod
    def is_gfx1151(cls) -> bool:
        return False
