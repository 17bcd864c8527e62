"""Registration with `torch.library` under the platform's dispatch key. The module's name is upstream's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .. import platforms

if TYPE_CHECKING:
    from collections.abc import Callable

sglang_lib = torch.library.Library("sglang", "FRAGMENT")


def direct_register_custom_op(
    op_name: str,
    op_func: Callable[..., Any],
    mutates_args: list[str],
    fake_impl: Callable[..., Any] | None = None,
    target_lib: torch.library.Library | None = None,
) -> None:
    """Make `op_func` the operator `torch.ops.sglang.<op_name>` under `get_torch_library_dispatch_key()`; twice is once.

    The function also serves every key that has no kernel of its own, so that a platform brought up on host tensors works before it
    has a device.

    Raises:
        NotImplementedError: an out-of-tree platform leaves `dispatch_key` empty.
    """
    key = platforms.current_platform.get_torch_library_dispatch_key()
    library = target_lib or sglang_lib
    if hasattr(getattr(torch.ops, library.ns), op_name):
        return
    library.define(op_name + torch.library.infer_schema(op_func, mutates_args=mutates_args))
    library.impl(op_name, op_func, key)
    library.impl(op_name, op_func, "CompositeExplicitAutograd")
    if fake_impl is not None:
        torch.library.register_fake(f"{library.ns}::{op_name}", fake_impl, lib=library)
