"""`TokenizerManager`: in the main process. Turns requests into tokens, sends them off, and hands each client its own news."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..configs.model_config import ModelConfig
from ..sampling.sampling_params import FieldError, SamplingParams
from .io_struct import AbortReq, BatchStrOutput, ControlOutput, ControlReq, GenerateReqInput, SchedulerStats, TokenizedGenerateReqInput
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ..server_args import PortArgs, ServerArgs


class QueueFull(Exception):
    """More requests wait than `--max-queued-requests` allows."""


class EngineDied(Exception):
    """A process of the engine has ended, so the request cannot be answered."""


@dataclass
class ReqState:
    """One request that a client waits for."""

    created: float = field(default_factory=time.perf_counter)
    pieces: list[str] = field(default_factory=list)
    output_ids: list[int] = field(default_factory=list)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    latest: Any = None


@dataclass
class Counters:
    """What `/metrics` counts."""

    requests: int = 0
    aborted: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0


class TokenizerManager:
    """The way from a client to the engine and back.

    Attributes:
        rid_to_state: the requests on their way.
        sequence_limit: longest prompt plus answer.
    """

    def __init__(self, server_args: ServerArgs, port_args: PortArgs, *, start_pd_bootstrap_service: bool = True) -> None:
        self.server_args = server_args
        self.port_args = port_args
        self.tokenizer = Tokenizer(server_args.tokenizer_path or server_args.model_path, server_args.chat_template)
        self.rid_to_state: dict[str, ReqState] = {}
        self.controls: dict[str, asyncio.Future[ControlOutput]] = {}
        self.stats = SchedulerStats()
        self.counters = Counters()
        self.vocab_size = ModelConfig.from_server_args(server_args).vocab_size
        self.sequence_limit = 0
        self.scheduler_info: list[dict[str, Any]] = []
        self.died: str | None = None
        self._loop_task: asyncio.Task[None] | None = None
        import zmq
        import zmq.asyncio

        context = zmq.asyncio.Context()
        self._inbox = context.socket(zmq.PULL)
        self._inbox.setsockopt(zmq.RCVHWM, 0)
        self._inbox.bind(port_args.tokenizer_ipc_name)
        self._outbox = context.socket(zmq.PUSH)
        self._outbox.setsockopt(zmq.SNDHWM, 0)
        self._outbox.connect(port_args.scheduler_input_ipc_name)

    def start(self) -> None:
        """Begin to listen; call it in the event loop that serves."""
        self._loop_task = asyncio.get_running_loop().create_task(self.handle_loop())

    async def close(self) -> None:
        """Stop listening."""
        if self._loop_task is not None:
            self._loop_task.cancel()
            await asyncio.gather(self._loop_task, return_exceptions=True)
        self._inbox.close(linger=0)
        self._outbox.close(linger=0)

    async def generate_request(self, obj: GenerateReqInput, request: Any = None) -> AsyncIterator[dict[str, Any]]:
        """Yield the answer as it grows: each item holds the whole text so far (or what is new), the last one the reason of its end.

        A client that stops listening frees its pages: closing this iterator aborts the request.

        Raises:
            FieldError: the request makes no sense.
            QueueFull: too many are waiting.
            EngineDied: a process of the engine has ended.
        """
        self.admit(obj)
        input_ids, params = obj.input_ids or [], obj.sampling_params or SamplingParams()
        rid = obj.rid or uuid.uuid4().hex
        state = self.rid_to_state[rid] = ReqState()
        self.counters.requests += 1
        finished = False
        try:
            await self._outbox.send_pyobj(TokenizedGenerateReqInput(rid, input_ids, params, obj.stream))
            while not finished:
                await state.news.wait()
                state.news.clear()
                if self.died:
                    raise EngineDied(self.died)
                finished = state.latest.finish_reason is not None
                answer = self._answer(rid, state)
                if obj.incremental:
                    state.pieces, state.output_ids = [], []  # before the client takes its time: more may arrive meanwhile
                yield answer
        finally:
            del self.rid_to_state[rid]
            if not finished and self.died is None:
                self.counters.aborted += 1
                self.abort_request(rid)

    async def complete(self, inputs: list[GenerateReqInput]) -> list[dict[str, Any]]:
        """Return the whole answers to several requests; where one fails, the others are aborted.

        Raises:
            FieldError, QueueFull, EngineDied: as `generate_request`.
        """

        async def last(item: GenerateReqInput) -> dict[str, Any]:
            return [answer async for answer in self.generate_request(item)][-1]

        for item in inputs:
            self.admit(item)
        tasks = [asyncio.ensure_future(last(item)) for item in inputs]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def admit(self, obj: GenerateReqInput) -> None:
        """Judge a request and replace its text by its tokens, before anything is sent to anybody.

        Raises:
            FieldError: the request makes no sense.
            QueueFull: too many are waiting.
            EngineDied: a process of the engine has ended.
        """
        if self.died:
            raise EngineDied(self.died)
        if len(self.rid_to_state) >= self.server_args.max_running_requests + self.server_args.max_queued_requests:
            raise QueueFull
        if obj.rid in self.rid_to_state:
            raise FieldError("rid", f"a request {obj.rid!r} is running")
        obj.input_ids, obj.text = self.tokenize(obj), None

    def tokenize(self, obj: GenerateReqInput) -> list[int]:
        """Return the request's tokens.

        Raises:
            FieldError: none, too many, or such as the model does not have.
        """
        if (obj.text is None) == (obj.input_ids is None):
            raise FieldError("text", "give either text or input_ids")
        name = obj.field
        ids = self.tokenizer.encode(obj.text, obj.add_special_tokens) if obj.text is not None else obj.input_ids or []
        if not ids:
            raise FieldError(name, "the prompt is empty")
        if obj.input_ids is not None and not all(0 <= token < self.vocab_size for token in ids):
            raise FieldError(name, f"must be whole numbers from 0 to {self.vocab_size - 1}")
        if len(ids) >= self.sequence_limit:
            raise FieldError(name, f"the prompt has {len(ids)} tokens; this server takes fewer than {self.sequence_limit}")
        return ids

    def abort_request(self, rid: str = "", abort_all: bool = False) -> None:
        """Tell the scheduler that nobody waits for `rid` any more."""
        # Not awaited: this runs where a client's task is being cancelled. The socket queues without limit.
        self._outbox.send_pyobj(AbortReq(rid))

    async def control(self, what: str, **arguments: Any) -> ControlOutput:
        """Ask the schedulers to do something, and return rank 0's answer.

        Raises:
            EngineDied: a process of the engine has ended.
        """
        if self.died:
            raise EngineDied(self.died)
        rid = uuid.uuid4().hex
        answer = self.controls[rid] = asyncio.get_running_loop().create_future()
        await self._outbox.send_pyobj(ControlReq(rid, what, arguments))
        return await answer

    async def handle_loop(self) -> None:
        """Hand every piece of news to whom it concerns."""
        while True:
            message = await self._inbox.recv_pyobj()
            if isinstance(message, BatchStrOutput):
                self._take(message)
            elif isinstance(message, ControlOutput):
                answer = self.controls.pop(message.rid, None)
                if answer is not None and not answer.done():
                    answer.set_result(message)

    def fail_all(self, why: str) -> None:
        """End every request: the engine has died."""
        self.died = why
        for state in self.rid_to_state.values():
            state.news.set()
        for answer in self.controls.values():
            if not answer.done():
                answer.set_exception(EngineDied(why))

    def _take(self, message: BatchStrOutput) -> None:
        self.stats = message.stats
        for output in message.outputs:
            self.counters.generation_tokens += len(output.tokens.output_ids)
            if output.tokens.finish_reason is not None:
                self.counters.prompt_tokens += output.tokens.prompt_tokens
            state = self.rid_to_state.get(output.tokens.rid)
            if state is not None:
                state.pieces.append(output.text)
                state.output_ids += output.tokens.output_ids
                state.latest = output.tokens
                state.news.set()

    def _answer(self, rid: str, state: ReqState) -> dict[str, Any]:
        tokens = state.latest
        meta: dict[str, Any] = {
            "id": rid,
            "finish_reason": tokens.finish_reason,
            "prompt_tokens": tokens.prompt_tokens,
            "completion_tokens": tokens.completion_tokens,
            "cached_tokens": 0,
        }
        if tokens.finish_reason is not None:
            meta["e2e_latency"] = time.perf_counter() - state.created
        state.pieces = ["".join(state.pieces)]
        return {"text": state.pieces[0], "output_ids": state.output_ids, "meta_info": meta}
