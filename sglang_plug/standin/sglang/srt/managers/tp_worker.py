"""`TpModelWorker`: the scheduler's hand on one rank's model. Imports torch only when it is constructed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..server_args import PortArgs, ServerArgs
    from .schedule_batch import ScheduleBatch


class TpModelWorker:
    """Runs scheduled batches on this rank's model."""

    def __init__(self, server_args: ServerArgs, port_args: PortArgs, gpu_id: int, tp_rank: int) -> None:
        from ..model_executor.model_runner import ModelRunner

        self.model_runner = ModelRunner(server_args, port_args, gpu_id, tp_rank)

    def forward_batch_generation(
        self,
        batch: ScheduleBatch,
        forward_batch: Any = None,
        pp_proxy_tensors: Any = None,
        is_verify: bool = False,
        skip_attn_backend_init: bool = False,
        *,
        capture_hidden_mode: Any = None,
        return_kv_loc_plan: bool = False,
    ) -> tuple[Any, list[int]]:
        """Return the logits and each sequence's next token. Of the arguments, which are the release's, the stand-in passes the batch."""
        from ..model_executor.forward_batch_info import ForwardBatch

        forward_batch = ForwardBatch.init_new(batch, self.model_runner)
        logits_output = self.model_runner.forward(forward_batch)
        return logits_output, self.model_runner.sample(logits_output, forward_batch)
