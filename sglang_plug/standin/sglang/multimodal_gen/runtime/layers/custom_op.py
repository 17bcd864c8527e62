"""`CustomOp`: a layer whose forward is chosen for the platform when the layer is constructed (S8)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from torch import nn

# The module, not the object: `current_platform` is resolved at the first use, and tests replace what it resolves to.
from .. import platforms

if TYPE_CHECKING:
    from collections.abc import Callable

OpClass = TypeVar("OpClass", bound="type[CustomOp]")


class CustomOp(nn.Module):
    """Base of the layers that a platform can take over.

    For an out-of-tree platform: a forward registered for this exact class and `get_dispatch_key_name()`, else the class's own
    `forward_<key>()`, else `forward_oot()`. The choice is made once, in the constructor, so `init_backend()` must have run.
    """

    name: ClassVar[str]
    op_registry: ClassVar[dict[str, type[CustomOp]]] = {}
    _oot_forward_registry: ClassVar[dict[str, dict[type[CustomOp], Callable[..., Any]]]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._forward_method = self.dispatch_forward()

    @staticmethod
    def register_oot_forward(op_cls: type[CustomOp], *, fn: Callable[..., Any], platform_key: str) -> None:
        """Let `fn(op, *args, **kwargs)` be the forward of exactly `op_cls` on platforms with this dispatch key name."""
        CustomOp._oot_forward_registry.setdefault(platform_key, {})[op_cls] = fn

    @classmethod
    def register(cls, name: str) -> Callable[[OpClass], OpClass]:
        """Return a class decorator that enters an op under `name`.

        Raises:
            AssertionError: the name is taken.
        """

        def decorate(op_cls: OpClass) -> OpClass:
            assert name not in cls.op_registry, f"Duplicate op name: {name}"
            op_cls.name = name
            cls.op_registry[name] = op_cls
            return op_cls

        return decorate

    @classmethod
    def enabled(cls) -> bool:
        return True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._forward_method(*args, **kwargs)

    def forward_native(self, *args: Any, **kwargs: Any) -> Any:
        """Compute with PyTorch alone."""
        raise NotImplementedError

    def forward_cuda(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def forward_hip(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_cuda(*args, **kwargs)

    def forward_musa(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_cuda(*args, **kwargs)

    def forward_cpu(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_native(*args, **kwargs)

    def forward_tpu(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_native(*args, **kwargs)

    def forward_npu(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_native(*args, **kwargs)

    def forward_xpu(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_native(*args, **kwargs)

    def forward_oot(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_native(*args, **kwargs)

    def dispatch_forward(self) -> Callable[..., Any]:
        """Return the forward for the current platform.

        Raises:
            ValueError: an out-of-tree platform's `get_dispatch_key_name()` is empty.
        """
        platform = platforms.current_platform
        if platform.is_out_of_tree():
            return self._dispatch_out_of_tree(platform.get_dispatch_key_name().strip())
        for kind in ("cuda", "hip", "npu", "xpu", "musa", "cpu"):
            if getattr(platform, f"is_{kind}")():
                return getattr(self, f"forward_{kind}")
        return self.forward_native

    def _dispatch_out_of_tree(self, key: str) -> Callable[..., Any]:
        if not key:
            raise ValueError("Out-of-tree diffusion platforms must return a non-empty get_dispatch_key_name()")
        registered = self._oot_forward_registry.get(key, {}).get(type(self))
        if registered is not None:
            return partial(registered, self)
        own = f"forward_{key}"
        below = type(self).__mro__[: type(self).__mro__.index(CustomOp)]  # the base class's fallbacks are no implementation
        if key.isidentifier() and any(own in vars(op_cls) for op_cls in below):
            return getattr(self, own)
        return self.forward_oot
