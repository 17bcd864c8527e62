"""Decoding by replay: batches padded to a few sizes, each captured once. A platform may bring the runner, or only what captures."""

from __future__ import annotations

import bisect
import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from ..platforms import current_platform
from ..platforms.interface import require_out_of_tree_impl
from ..utils import is_cuda_alike, optional_class
from .forward_batch_info import ForwardBatch, ForwardMode

if TYPE_CHECKING:
    from collections.abc import Callable


class EagerGraphBackend:
    """Captures nothing: a replay calls the function. What a host without graphs uses."""

    def capture(self, function: Callable[[], torch.Tensor]) -> tuple[Any, torch.Tensor]:
        """Return the graph and the tensor in which its replays leave their result."""
        return function, function()

    def replay(self, graph: Any) -> torch.Tensor | None:
        """Run the graph; return a result that is not in the captured tensor."""
        return graph()


class CudaGraphBackend:
    """Captures with `torch.cuda.graph`."""

    def capture(self, function: Callable[[], torch.Tensor]) -> tuple[Any, torch.Tensor]:
        """Warm up, capture, and return graph and result."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            function()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = function()
        return graph, result

    def replay(self, graph: Any) -> torch.Tensor | None:
        """Replay; the result is in the captured tensor."""
        graph.replay()
        return None


class GraphRunner:
    """The engine's own runner. A platform's is made with the same argument and answers `can_run` and `replay`."""

    def __init__(self, model_runner: Any) -> None:
        self.model_runner = model_runner
        largest = model_runner.server_args.cuda_graph_max_bs
        self.capture_bs = sorted({*(1 << i for i in range(largest.bit_length()) if 1 << i <= largest), largest})
        backend = current_platform.get_full_graph_backend_cls() or (CudaGraphBackend if is_cuda_alike() else EagerGraphBackend)
        self.backend = backend()
        self.static = self._buffers(self.capture_bs[-1])
        self.graphs = {size: self._capture(size) for size in reversed(self.capture_bs)}

    def can_run(self, forward_batch: ForwardBatch) -> bool:
        """Tell whether this batch fits a captured one."""
        return forward_batch.forward_mode.is_decode() and forward_batch.batch_size <= self.capture_bs[-1]

    def replay(self, forward_batch: ForwardBatch) -> Any:
        """Return the batch's logits."""
        count = forward_batch.batch_size
        size = self.capture_bs[bisect.bisect_left(self.capture_bs, count)]
        for name in ("input_ids", "positions", "req_pool_indices", "seq_lens", "out_cache_loc"):
            buffer = getattr(self.static, name)
            buffer[:count] = getattr(forward_batch, name)
            buffer[count:size] = 1 if name == "seq_lens" else 0  # padding reads and writes row 0
        graph, result = self.graphs[size]
        fresh = self.backend.replay(graph)
        from ..layers.logits_processor import LogitsProcessorOutput

        return LogitsProcessorOutput((result if fresh is None else fresh)[:count].clone())

    def _buffers(self, size: int) -> ForwardBatch:
        runner = self.model_runner

        def zeros() -> torch.Tensor:
            return torch.zeros(size, dtype=torch.int64, device=runner.device)

        return ForwardBatch(
            ForwardMode.DECODE, zeros(), zeros(), zeros(), zeros() + 1, [], [], zeros(),
            runner.req_to_token_pool, runner.token_to_kv_pool, runner.attn_backend,
        )  # fmt: skip

    def _capture(self, size: int) -> tuple[Any, torch.Tensor]:
        runner = self.model_runner
        names = ("input_ids", "positions", "req_pool_indices", "seq_lens", "out_cache_loc")
        view = dataclasses.replace(self.static, **{name: getattr(self.static, name)[:size] for name in names})
        # A captured graph has fixed shapes, so attention spans the longest sequence; without capture it need not.
        fixed = not isinstance(self.backend, EagerGraphBackend)

        def step() -> torch.Tensor:
            width = runner.model_config.context_len if fixed else int(view.seq_lens.max())
            runner.attn_backend.init_forward_metadata(dataclasses.replace(view, seq_lens_cpu=[width]))
            return runner.model(view.input_ids, view.positions, view).next_token_logits

        return self.backend.capture(step)


def create_graph_runner(model_runner: Any) -> Any:
    """Return the runner for decode steps, None where they run eagerly.

    Raises:
        NotImplementedError: an out-of-tree platform asks for graphs and brings no runner.
    """
    if model_runner.server_args.disable_cuda_graph or not current_platform.support_cuda_graph():
        return None
    own = optional_class(current_platform.get_graph_runner_cls)
    if own is None:
        require_out_of_tree_impl(current_platform, hook="get_graph_runner_cls()", subsystem="graph runner")
    return (own or GraphRunner)(model_runner)
