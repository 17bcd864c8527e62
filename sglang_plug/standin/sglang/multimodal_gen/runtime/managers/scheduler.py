"""The loop of a rank: rank 0 takes requests from its socket and tells the others; all run them together."""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Any

from ..pipelines_core.schedule_batch import ControlReq, OutputBatch
from ..scheduler_client import load_zmq
from .gpu_worker import GPUWorker

if TYPE_CHECKING:
    from ..server_args import PortArgs, ServerArgs

logger = logging.getLogger(__name__)

#: Rank 0 tells the others that it is alive, before their wait for it times out in the backend.
HEARTBEAT_MS = 60_000


class Scheduler:
    """Serves one rank."""

    def __init__(self, server_args: ServerArgs, gpu_id: int, port_args: PortArgs, local_rank: int) -> None:
        self.server_args, self.gpu_id = server_args, gpu_id
        self.worker = GPUWorker(local_rank, gpu_id, port_args.master_port, server_args)
        self.receiver: Any = None
        if gpu_id == 0:
            zmq = load_zmq()
            self.context = zmq.Context(io_threads=1)
            self.receiver = self.context.socket(zmq.ROUTER)
            self.receiver.setsockopt(zmq.LINGER, 1000)
            self.receiver.bind(port_args.scheduler_input_ipc_name)

    def event_loop(self) -> None:
        """Serve until a shutdown is asked for."""
        running = True
        try:
            while running:
                sender, request = self.recv_reqs()
                if request is None:
                    continue
                reply = self.handle(request)
                running = not (isinstance(request, ControlReq) and request.action == "shutdown")
                if self.receiver is not None:
                    self.receiver.send_multipart([*sender, pickle.dumps(reply)])
        finally:
            if self.receiver is not None:
                self.receiver.close()
                self.context.term()

    def recv_reqs(self) -> tuple[list[bytes], Any]:
        """Return the next request, the same on every rank, and on rank 0 whom to answer; None where only time passed."""
        sender: list[bytes] = []
        request = None
        if self.receiver is not None and self.receiver.poll(HEARTBEAT_MS):
            *sender, payload = self.receiver.recv_multipart()
            request = pickle.loads(payload)  # noqa: S301 - the socket lies in a folder that only this user can open
        return sender, self.worker.sp_group.broadcast_object(request)

    def handle(self, request: Any) -> OutputBatch:
        """Return the answer to one request."""
        if not isinstance(request, ControlReq):
            return self.worker.execute_forward([request])
        if request.action == "info":
            return OutputBatch(output=self.worker.sp_group.gather_object(self.worker.describe()))
        return OutputBatch(output="bye")
