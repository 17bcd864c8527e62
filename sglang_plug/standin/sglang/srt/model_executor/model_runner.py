"""`ModelRunner`: one rank's device, model, KV cache and forward passes."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import torch

from sglang_plug.core import process

from ..configs.model_config import ModelConfig
from ..distributed.parallel_state import init_distributed
from ..layers.attention.attention_registry import create_attention_backend
from ..layers.sampler import Sampler
from ..mem_cache.allocator import PagedTokenToKVPoolAllocator
from ..mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from ..model_loader.loader import load_model
from ..platforms import current_platform
from ..utils import get_available_gpu_memory, optional_class
from .compilation import compile_blocks
from .graph_runner import create_graph_runner

if TYPE_CHECKING:
    from ..server_args import PortArgs, ServerArgs
    from .forward_batch_info import ForwardBatch

logger = logging.getLogger(__name__)

_TOKEN_CAP = 1 << 18  # unless the user asks for more: a laptop has other uses for its memory


class ModelRunner:
    """Brings a rank up, in the order in which a platform may rely on: backend, device, ranks, model, KV cache, graphs."""

    def __init__(self, server_args: ServerArgs, port_args: PortArgs, gpu_id: int, tp_rank: int) -> None:
        self.server_args = server_args
        self.gpu_id = gpu_id
        self.tp_rank = tp_rank
        self.model_config = ModelConfig.from_server_args(server_args)
        process.srt.init_backend()  # once per worker process
        self.device = self.bind_device()
        current_platform.seed_everything(server_args.random_seed)
        self.tp_group = init_distributed(tp_rank, server_args.tp_size, tp_rank, port_args.dist_init_method)
        self.load_model()
        self.init_memory_pools()
        self.attn_backend = create_attention_backend(server_args.attention_backend or "torch_native", self)
        self.sampler = Sampler()
        with current_platform.inference_mode():
            self.graph_runner = create_graph_runner(self)

    def bind_device(self) -> Any:
        """Make this rank's device the current one and return it. A platform without device numbers may leave `set_device` out."""
        with current_platform.reindex_device_id(self.gpu_id) as device_id:
            try:
                device = torch.device(current_platform.get_device(device_id))
            except NotImplementedError:
                device = torch.device(self.server_args.device or "cpu")
            try:
                current_platform.set_device(device)
            except NotImplementedError:
                logger.debug("%r does not override set_device", current_platform)
        if device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
            # Small matrices lose more by handing work to threads than the threads gain.
            share = (os.cpu_count() or 1) // self.server_args.tp_size
            torch.set_num_threads(max(1, share) if self.model_config.hidden_size >= 1024 else 1)
        return device

    def load_model(self) -> None:
        """Load the weights; then the platform may change the model."""
        self.model = load_model(self.model_config, self.server_args.quantization, self.device)
        current_platform.post_load_model(self.model)
        compile_blocks(self.model, self.server_args)
        current_platform.synchronize()
        current_platform.empty_cache()

    def init_memory_pools(self) -> None:
        """Make the KV cache as large as arguments and memory allow, equally on all ranks.

        Raises:
            ValueError: not even one page fits.
        """
        args, model = self.server_args, self.model_config
        heads, dtype = model.kv_heads_per_rank(args.tp_size), getattr(torch, model.kv_dtype)
        tokens = self.tp_group.min_over_ranks(self._token_budget(heads))
        tokens = tokens // args.page_size * args.page_size
        if tokens < args.page_size:
            raise ValueError("no memory is left for the KV cache; set --max-total-tokens or a larger --mem-fraction-static")
        self.max_total_num_tokens = tokens
        self.req_to_token_pool = ReqToTokenPool(args.max_running_requests, model.context_len + 1, self.device)
        pool_class = optional_class(current_platform.get_kv_pool_cls, kind="mha") or MHATokenToKVPool
        self.token_to_kv_pool = pool_class(
            size=tokens,
            page_size=args.page_size,
            dtype=dtype,
            head_num=heads,
            head_dim=model.head_dim,
            layer_num=model.num_layers,
            device=self.device,
            enable_memory_saver=False,
        )
        allocator_class = optional_class(current_platform.get_paged_allocator_cls) or PagedTokenToKVPoolAllocator
        self.token_to_kv_pool_allocator = allocator_class(
            tokens, page_size=args.page_size, dtype=dtype, device=self.device, kvcache=self.token_to_kv_pool, need_sort=False
        )
        logger.info("KV cache: %d tokens in pages of %d, %s on %s", tokens, args.page_size, model.kv_dtype, self.device)

    def _token_budget(self, heads: int) -> int:
        args, model = self.server_args, self.model_config
        useful = model.context_len * args.max_running_requests
        asked = args.max_total_tokens or min(useful, _TOKEN_CAP)
        memory = get_available_gpu_memory(self.gpu_id)
        if memory is None:
            return asked
        free = memory[0]
        if self.device.type == "cpu":
            free //= args.tp_size  # all ranks share the host's memory
        cell = 2 * heads * model.head_dim * model.num_layers * getattr(torch, model.kv_dtype).itemsize
        fits = int(free * (args.mem_fraction_static or 0.3)) // cell
        if args.max_total_tokens and fits < args.max_total_tokens:
            logger.warning("--max-total-tokens %d does not fit into memory; using %d", args.max_total_tokens, fits)
        return min(asked, fits)

    def forward(
        self,
        forward_batch: ForwardBatch,
        skip_attn_backend_init: bool = False,
        pp_proxy_tensors: Any = None,
        reinit_attn_backend: bool = False,
        split_forward_count: int = 1,
    ) -> Any:
        """Return the logits of each sequence's next token."""
        with current_platform.inference_mode():
            if self.graph_runner is not None and self.graph_runner.can_run(forward_batch):
                return self.graph_runner.replay(forward_batch)
            self.attn_backend.init_forward_metadata(forward_batch)
            return self.model(forward_batch.input_ids, forward_batch.positions, forward_batch)

    def sample(self, logits_output: Any, forward_batch: ForwardBatch) -> list[int]:
        """Return each sequence's next token, the same on all ranks."""
        with current_platform.inference_mode():
            tokens = self.sampler(logits_output, forward_batch.sampling_info, False, None, None, forward_batch.positions)
        current_platform.synchronize()
        return self.tp_group.broadcast_object(tokens.tolist())
