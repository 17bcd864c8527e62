"""What `torch.compile` is given, as the platform says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import platforms

if TYPE_CHECKING:
    from torch import nn


def build_torch_compile_kwargs(*, mode: str | None, module: nn.Module | None = None) -> dict[str, object]:
    """Return the keyword arguments for compiling `module`; an out-of-tree platform chooses backend and options."""
    kwargs: dict[str, object] = {"fullgraph": False, "dynamic": None}
    platform = platforms.current_platform
    if not platform.is_out_of_tree():
        return kwargs if mode is None else {**kwargs, "mode": mode}
    kwargs["backend"] = platform.get_compile_backend(mode)
    options = platform.get_compile_options(module) if module is not None else None
    if options is not None:
        kwargs["options"] = options
    elif kwargs["backend"] == "inductor" and mode is not None:
        kwargs["mode"] = mode  # torch takes a mode or options, not both
    return kwargs
