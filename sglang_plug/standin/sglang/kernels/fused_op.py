"""`BaseFusedOp`: one operation, several implementations, one choice made when it is constructed.

Source: rule S8. On an out-of-tree platform: a registration for the exact class and the platform's key, then `forward_<key>()`, then
`forward_oot()`, which falls to `forward_native()`. On a built-in platform: `forward_<its key>()`, then `forward_native()`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from ..srt.platforms import current_platform

if TYPE_CHECKING:
    from collections.abc import Callable

_BUILTIN_KEYS = {"ROCM": ("hip", "cuda"), "SAIL": ("cuda",)}


class BaseFusedOp(nn.Module):
    """Override `forward_native`, and `forward_<key>` where a device does better."""

    _oot_forward_registry: ClassVar[dict[str, dict[type, Callable[..., Any]]]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._forward_method = self.dispatch_forward()

    @classmethod
    def register_oot_forward(cls, op_cls: type, fn: Callable[..., Any], platform_key: str) -> None:
        """Let `fn(op, *args)` be the forward of exactly `op_cls` on platforms with this key; for operations constructed from now on."""
        cls._oot_forward_registry.setdefault(platform_key, {})[op_cls] = fn

    def dispatch_forward(self) -> Callable[..., Any]:
        """Return the implementation for this process's platform."""
        if current_platform.is_out_of_tree():
            key = current_platform.get_dispatch_key_name()
            registered = self._oot_forward_registry.get(key, {}).get(type(self))
            if registered is not None:
                return functools.partial(registered, self)
            return getattr(self, f"forward_{key}", self.forward_oot)
        name = current_platform._enum.name
        for key in _BUILTIN_KEYS.get(name, (name.lower(),)):
            method = getattr(self, f"forward_{key}", None)
            if method is not None:
                return method
        return self.forward_native

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the chosen implementation."""
        return self._forward_method(*args, **kwargs)

    def forward_oot(self, *args: Any, **kwargs: Any) -> Any:
        """Serve an out-of-tree platform without an implementation of its own."""
        return self.forward_native(*args, **kwargs)

    def forward_native(self, *args: Any, **kwargs: Any) -> Any:
        """Compute in plain torch: what every other implementation must equal."""
        raise NotImplementedError(f"{type(self).__name__} has no forward_native")
