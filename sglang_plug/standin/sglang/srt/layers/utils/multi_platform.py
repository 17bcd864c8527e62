"""`MultiPlatformOp`, as plugins made for SGLang until 0.5.17 call `BaseFusedOp`."""

from ....kernels.fused_op import BaseFusedOp

MultiPlatformOp = BaseFusedOp

__all__ = ["MultiPlatformOp"]
