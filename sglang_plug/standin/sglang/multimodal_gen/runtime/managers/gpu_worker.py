"""One rank: its device, its pipeline, and the loop that serves it. Both names below are hook targets."""

from __future__ import annotations

import logging
import os
import signal
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import torch

from ..distributed.parallel_state import (
    destroy_model_parallel,
    get_sp_group,
    maybe_init_distributed_environment_and_model_parallel,
)
from ..models.registry import BadModel
from ..pipelines_core.pipeline import DiffusionPipeline
from ..pipelines_core.schedule_batch import InvalidRequest, OutputBatch, Req
from ..platforms import current_platform, initialize_current_platform
from ..server_args import PortArgs, set_global_server_args
from ..utils.logging_utils import configure_logger
from ..utils.process import kill_itself_when_parent_died

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from ..server_args import ServerArgs

logger = logging.getLogger(__name__)


class GPUWorker:
    """The device and the model of one rank."""

    def __init__(self, local_rank: int, rank: int, master_port: int, server_args: ServerArgs) -> None:
        self.local_rank, self.rank, self.master_port, self.server_args = local_rank, rank, master_port, server_args
        self.pipeline: DiffusionPipeline
        self.init_device_and_model()
        self.sp_group = get_sp_group()

    def init_device_and_model(self) -> None:
        """Bind the device, join the other ranks, load the model. Hooks for rank-aware set-up go before or around it."""
        if not current_platform.is_mps():
            current_platform.set_device(current_platform.get_device(self.local_rank))
        os.environ |= {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.master_port),
            "LOCAL_RANK": str(self.local_rank),
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.server_args.num_gpus),
        }
        if self.server_args.num_gpus > 1 and "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // self.server_args.num_gpus))  # workers share the host's cores
        maybe_init_distributed_environment_and_model_parallel(
            sp_size=self.server_args.sp_degree or 1,
            tp_size=self.server_args.tp_size,
            distributed_init_method=f"tcp://127.0.0.1:{self.master_port}",
            dist_timeout=self.server_args.dist_timeout,
        )
        self.pipeline = DiffusionPipeline(self.server_args)
        logger.info("Worker %d: device and model are up. %s", self.rank, self.describe())

    def describe(self) -> dict[str, Any]:
        """Return what this rank runs on, in words."""
        capability = current_platform.get_device_capability(self.local_rank)
        return {
            "rank": self.rank,
            "platform": current_platform.device_name,
            "device": str(self.pipeline.device),
            "name": current_platform.get_device_name(self.local_rank),
            "uuid": current_platform.get_device_uuid(self.local_rank),
            "total_memory": current_platform.get_device_total_memory(self.local_rank),
            "available_gib": round(current_platform.get_available_gpu_memory(self.local_rank, empty_cache=False), 3),
            "capability": capability.as_version_str() if capability else None,
            "cpu_architecture": current_platform.get_cpu_architecture().name,
            "precision": str(self.pipeline.dtype).removeprefix("torch."),
            "layerwise_offload": self.pipeline.offload is not None,
        }

    def execute_forward(self, batch: list[Req]) -> OutputBatch:
        """Return the images of a request; what it did wrong is an answer, what broke here is one too."""
        try:
            return self.pipeline.forward(batch[0])
        except InvalidRequest as error:
            return OutputBatch(error=str(error), error_type="invalid_request")
        except Exception as error:  # one request's failure must not end the worker; it is told and logged
            logger.exception("Worker %d: request %s failed", self.rank, batch[0].request_id)
            return OutputBatch(error=f"{type(error).__name__}: {error}", error_type="server")


def run_scheduler_process(local_rank: int, rank: int, server_args: ServerArgs, pipe_writer: Connection) -> None:
    """Be one rank until told to stop; say `ready` through the pipe once requests can come, or what is wrong with the model."""
    initialize_current_platform()  # did run in the bootstrap; a direct caller has it here
    kill_itself_when_parent_died()
    configure_logger(server_args.log_level, f" worker {rank}")
    set_global_server_args(server_args)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the launcher ends its workers in order
    try:
        # By name: a hook may have put its own class there.
        scheduler = resolve_name("sglang.multimodal_gen.runtime.managers.scheduler:Scheduler")(
            server_args, rank, PortArgs.from_server_args(server_args), local_rank
        )
        pipe_writer.send({"status": "ready"})
        scheduler.event_loop()
    except BadModel as error:
        pipe_writer.send({"status": "failed", "error": str(error)})
    finally:
        if torch.distributed.is_initialized():
            destroy_model_parallel()
