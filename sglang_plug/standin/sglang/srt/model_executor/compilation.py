"""torch.compile on the model's feed-forward blocks: decode by the platform's backend, prefill by its piecewise backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ..platforms import current_platform
from ..platforms.interface import require_out_of_tree_impl
from ..utils import optional_class

if TYPE_CHECKING:
    from collections.abc import Callable


def compile_blocks(model: torch.nn.Module, server_args: Any) -> None:
    """Compile what the arguments ask for, in place.

    Raises:
        NotImplementedError: an out-of-tree platform asks for pieces and brings no backend.
    """
    blocks = [module for name, module in model.named_modules() if name.endswith(".mlp")]
    if server_args.enable_torch_compile:
        backend = current_platform.get_compile_backend()
        for block in blocks:
            block.forward = torch.compile(block.forward, backend=backend, dynamic=True)
    elif server_args.enable_piecewise_cuda_graph and current_platform.support_piecewise_cuda_graph():
        backend_class = optional_class(current_platform.get_piecewise_backend_cls)
        if backend_class is None:
            require_out_of_tree_impl(current_platform, hook="get_piecewise_backend_cls()", subsystem="piecewise compilation backend")
            return
        for index, block in enumerate(blocks):
            block.forward = torch.compile(block.forward, backend=_piece(backend_class, index, len(blocks)), dynamic=True)


def _piece(backend_class: type[Any], index: int, total: int) -> Callable[[Any, list[Any]], Any]:
    """Return a torch.compile backend that makes the platform's class, with the arguments SGLang gives it, of each graph."""

    def compile_piece(graph: Any, example_inputs: list[Any]) -> Any:
        return backend_class(graph, None, {}, None, index, total, [], graph.forward, None)

    return compile_piece
