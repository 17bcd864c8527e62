"""`Scheduler`: one process a rank. Decides what the model does next: prompts first, then one token for everybody.

Rank 0 hears requests and tells the others; every rank decides alike, so that only requests and sampled tokens cross ranks.
Imports torch only when a scheduler is constructed.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from ..platforms import current_platform
from ..plugins import load_plugins
from ..utils import optional_class
from .io_struct import AbortReq, BatchTokenIDOutput, ControlOutput, ControlReq, SchedulerStats, TokenizedGenerateReqInput, TokenOutput
from .profiler import Profiler
from .schedule_batch import Req, ScheduleBatch
from .tokenizer import Tokenizer
from .tp_worker import TpModelWorker
from .worker_bootstrap import failure, placement

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from ..server_args import PortArgs, ServerArgs

logger = logging.getLogger(__name__)

_IDLE_POLL_MS = 1000


class Scheduler:
    """One rank's requests: waiting, running, and the step in between.

    Attributes:
        gpu_id: number of this rank's device.
        waiting_queue: requests without KV rows, by id, first come first served.
        running: requests that decode, oldest first.
    """

    def __init__(self, server_args: ServerArgs, port_args: PortArgs) -> None:
        from ..configs.model_config import end_token_ids

        self.server_args = server_args
        self.gpu_id, self.tp_rank = placement.gpu_id, placement.tp_rank
        self.tokenizer = Tokenizer(server_args.tokenizer_path or server_args.model_path)
        self.end_ids = end_token_ids(server_args.model_path)
        self.tp_worker = self.init_tp_worker(port_args)
        self.model_runner = self.tp_worker.model_runner
        self.tp_group = self.model_runner.tp_group
        self.max_total_num_tokens = self.model_runner.max_total_num_tokens
        self.sequence_limit = min(self.model_runner.model_config.context_len, self.max_total_num_tokens)
        self.allocator = self.model_runner.token_to_kv_pool_allocator
        self.waiting_queue: OrderedDict[str, Req] = OrderedDict()
        self.running: list[Req] = []
        self.last_batch: ScheduleBatch | None = None
        self.retracted = 0
        self.arrivals = 0
        self.profiler = Profiler()
        self.init_sockets(port_args)

    def init_tp_worker(self, port_args: PortArgs) -> Any:
        """Make this rank's worker; with speculative decoding, the platform's.

        Raises:
            ValueError: speculative decoding without a worker: the stand-in has none of its own.
        """
        algorithm = self.server_args.speculative_algorithm
        worker_class: Any = TpModelWorker
        if algorithm:
            worker_class = current_platform.get_speculative_worker_cls(algorithm)
            if worker_class is None:
                raise ValueError(
                    f"--speculative-algorithm {algorithm}: override get_speculative_worker_cls(); the stand-in has no worker for it"
                )
        worker = worker_class(self.server_args, port_args, self.gpu_id, self.tp_rank)
        if algorithm:
            worker.cache_locs_fn = current_platform.get_speculative_cache_locs_fn()
            worker.draft_graph_runner_classes = {
                phase: optional_class(current_platform.get_speculative_graph_runner_cls, algorithm, phase)
                for phase in ("draft_decode", "draft_extend")
            }
        return worker

    def init_sockets(self, port_args: PortArgs) -> None:
        """Open rank 0's ears and mouth."""
        if self.tp_rank != 0:
            return
        import zmq

        context = zmq.Context()
        self.inbox = context.socket(zmq.PULL)
        self.inbox.setsockopt(zmq.RCVHWM, 0)
        self.inbox.bind(port_args.scheduler_input_ipc_name)
        self.outbox = context.socket(zmq.PUSH)
        self.outbox.setsockopt(zmq.SNDHWM, 0)
        self.outbox.connect(port_args.detokenizer_ipc_name)

    def event_loop(self) -> None:
        """Serve for ever: hear, decide, run, tell."""
        while True:
            self.process_input_requests(self.recv_requests())
            batch = self.get_next_batch_to_run(ScheduleBatch(self.running, self.tp_worker), self.last_batch)
            self.last_batch = batch
            if batch is not None:
                self.process_batch_result(batch, self.run_batch(batch))

    def recv_requests(self) -> list[Any]:
        """Return what has arrived, the same on all ranks; wait a while for it when there is nothing else to do."""
        messages: list[Any] = []
        if self.tp_rank == 0:
            busy = self.running or self.waiting_queue
            while self.inbox.poll(0 if busy or messages else _IDLE_POLL_MS):
                messages.append(self.inbox.recv_pyobj())
        return self.tp_group.broadcast_object(messages)

    def process_input_requests(self, recv_reqs: list[Any]) -> None:
        """Act on each message."""
        for message in recv_reqs:
            if isinstance(message, TokenizedGenerateReqInput):
                self.handle_generate_request(message)
            elif isinstance(message, AbortReq):
                self.abort_request(message)
            elif isinstance(message, ControlReq):
                self.handle_control(message)

    def handle_generate_request(self, recv_req: TokenizedGenerateReqInput, *, mm_input_error: str | None = None) -> None:
        """Queue a request, or end it at once where there is nothing to do."""
        self.arrivals += 1
        req = Req(recv_req, self.end_ids, self.sequence_limit, (self.server_args.random_seed or 0) + self.arrivals)
        if len(recv_req.input_ids) >= self.sequence_limit:
            req.abort(f"the prompt has {len(recv_req.input_ids)} tokens; the KV cache holds {self.sequence_limit} with the answer")
        elif req.max_new_tokens <= 0:
            req.finished_reason = {"type": "length", "length": 0}
        if req.finished():
            self.send_outputs([req])
        else:
            self.waiting_queue[req.rid] = req

    def abort_request(self, recv_req: AbortReq) -> None:
        """Forget a request that nobody waits for; the pages of a running one come back before the next step."""
        waiting = self.waiting_queue.pop(recv_req.rid, None)
        found = waiting or next((req for req in self.running if req.rid == recv_req.rid), None)
        if found is not None:
            found.abort("the client has gone")
        if waiting is not None:
            self.send_outputs([waiting])

    def handle_control(self, message: ControlReq) -> None:
        """Do what is asked and answer."""
        try:
            data, success = self.control(message), True
        except (OSError, RuntimeError, ValueError) as error:
            data, success = {"error": str(error)}, False
        if self.tp_rank == 0:
            self.outbox.send_pyobj(ControlOutput(message.rid, success, data))

    def control(self, message: ControlReq) -> dict[str, Any]:
        """Return the answer to one control message.

        Raises:
            RuntimeError: it cannot be done now.
        """
        if message.what == "flush_cache":
            if self.running or self.waiting_queue:
                raise RuntimeError("requests are running")
            self.allocator.clear()
            current_platform.empty_cache()
        elif message.what == "start_profile":
            self.profiler.start(self.tp_rank, **message.arguments)
        elif message.what == "stop_profile":
            return {"path": self.profiler.stop()}
        return vars(self.stats())

    def get_next_batch_to_run(self, running_batch: ScheduleBatch, last_batch: ScheduleBatch | None) -> ScheduleBatch | None:
        """Return the next step's batch with its KV rows taken, None when there is nothing to do."""
        self.release_finished()
        running_batch.reqs = self.running
        return self.get_new_batch_prefill(running_batch) or self.get_decode_batch()

    def release_finished(self) -> None:
        """Take back the pages of requests that were aborted while they ran."""
        gone = [req for req in self.running if req.finished()]
        if gone:
            self.finish(gone)

    def get_new_batch_prefill(self, running_batch: ScheduleBatch) -> ScheduleBatch | None:
        """Admit what fits: requests, prompt tokens and pages, leaving each running request a page to grow into."""
        chosen: list[Req] = []
        tokens = 0
        page = self.server_args.page_size
        room = self.allocator.available_size() - page * len(running_batch.reqs)
        for req in self.waiting_queue.values():
            length = len(req.origin_input_ids) + len(req.output_ids)
            need = -(-(length + 1) // page) * page
            full = len(running_batch.reqs) + len(chosen) >= self.server_args.max_running_requests
            if full or need > room or (chosen and tokens + length > self.server_args.max_prefill_tokens):
                break
            chosen.append(req)
            tokens += length
            room -= need
        batch = ScheduleBatch(chosen, self.tp_worker)
        if not chosen or not batch.prepare_for_extend():
            return None
        for req in chosen:
            del self.waiting_queue[req.rid]
        return batch

    def get_decode_batch(self) -> ScheduleBatch | None:
        """Return everybody that runs; when pages run short, the youngest start over later."""
        while self.running:
            batch = ScheduleBatch(self.running, self.tp_worker)
            if batch.prepare_for_decode():
                return batch
            self.retract(self.running.pop())
        return None

    def retract(self, req: Req) -> None:
        """Take a request's pages; it goes to the head of the queue and reads prompt and answer anew."""
        ScheduleBatch([req], self.tp_worker).release(req)
        self.waiting_queue[req.rid] = req
        self.waiting_queue.move_to_end(req.rid, last=False)
        self.retracted += 1

    def run_batch(self, batch: ScheduleBatch, pp_proxy_tensors: Any = None) -> list[int]:
        """Run the model and return each request's next token."""
        return self.tp_worker.forward_batch_generation(batch)[1]

    def process_batch_result(self, batch: ScheduleBatch, result: list[int]) -> None:
        """Give each request its token, and the clients their news."""
        for req, token in zip(batch.reqs, result, strict=True):
            req.append(token, self.tokenizer.decode)
        if not batch.is_decode:
            self.running += batch.reqs
        done = [req for req in batch.reqs if req.finished()]
        interval = self.server_args.stream_interval
        news = [req for req in batch.reqs if not req.finished() and req.stream and len(req.output_ids) - req.sent >= interval]
        if done:
            self.finish(done, news)
        elif news:
            self.send_outputs(news)

    def finish(self, done: list[Req], news: list[Req] | None = None) -> None:
        """Take the pages of ended requests and tell of them, and of others' progress."""
        batch = ScheduleBatch(done, self.tp_worker)
        for req in done:
            batch.release(req)
        self.running = [req for req in self.running if not req.finished()]
        self.send_outputs(done + (news or []))

    def send_outputs(self, reqs: list[Req]) -> None:
        """Tell the detokenizer what is new."""
        outputs = []
        for req in reqs:
            first, req.sent = req.sent, len(req.output_ids)
            params = req.sampling_params
            outputs.append(
                TokenOutput(
                    rid=req.rid,
                    output_ids=req.output_ids[first:],
                    prompt_tokens=len(req.origin_input_ids),
                    completion_tokens=len(req.output_ids),
                    stop=tuple(params.stop),
                    skip_special_tokens=params.skip_special_tokens,
                    finish_reason=req.finished_reason,
                )
            )
        if self.tp_rank == 0:
            self.outbox.send_pyobj(BatchTokenIDOutput(outputs, self.stats()))

    def stats(self) -> SchedulerStats:
        """Return the present load."""
        used = self.max_total_num_tokens - self.allocator.available_size()
        return SchedulerStats(len(self.running), len(self.waiting_queue), used, self.max_total_num_tokens, self.retracted)


def run_scheduler_process(
    server_args: ServerArgs,
    port_args: PortArgs,
    gpu_id: int,
    tp_rank: int,
    pp_rank: int,
    dp_rank: int | None,
    pipe_writer: Connection,
    display_tp_rank: int | None = None,
    display_dp_rank: int | None = None,
    display_moe_ep_rank: int | None = None,
) -> None:
    """Be a scheduler process: plugins, then the scheduler; tell the parent when ready, or why not."""
    load_plugins()
    placement.gpu_id, placement.tp_rank = gpu_id, tp_rank
    try:
        scheduler = Scheduler(server_args, port_args)
    except Exception as error:  # noqa: BLE001 - the parent tells it, and ends the start
        pipe_writer.send(failure(error))
        raise SystemExit(1) from None
    from ..utils.common import describe_platform

    pipe_writer.send(
        {
            "status": "ready",
            "tp_rank": tp_rank,
            "max_total_num_tokens": scheduler.max_total_num_tokens,
            "sequence_limit": scheduler.sequence_limit,
            **describe_platform(gpu_id),
        }
    )
    try:
        scheduler.event_loop()
    except Exception:
        logger.exception("the scheduler of rank %d failed", tp_rank)
        raise SystemExit(1) from None
