"""The HTTP server, in the main process beside the tokenizer manager. Owns routes, status codes and the shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import logging
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, ValidationError

from ...version import __version__
from ..managers.tokenizer_manager import EngineDied, QueueFull, TokenizerManager
from ..managers.worker_bootstrap import configure_logging
from ..sampling.sampling_params import FieldError
from .engine import Children, StartFailed, launch_subprocesses
from .generate import GenerateRequest
from .metrics import render
from .middleware import Guard
from .openai.protocol import ChatCompletionRequest, CommonRequest, CompletionRequest
from .openai.serving import Serving, ServingChat, ServingCompletion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from ..managers.io_struct import GenerateReqInput
    from ..server_args import ServerArgs

logger = logging.getLogger(__name__)

_KINDS = ("str", "list[str]", "list[int]", "list[list[int]]")  # pydantic's names of what a field may be, within a fault's place


class Nothing(BaseModel):
    """The body of a command without arguments: whatever clients put there."""


class ProfileRequest(BaseModel):
    """The body of `/start_profile`; see `Profiler.start`."""

    model_config = ConfigDict(strict=True, extra="forbid")

    output_dir: str | None = None
    activities: list[str] | None = None


class ClientGone(Exception):
    """The client does not wait for the answer any more."""


def create_app(manager: TokenizerManager) -> FastAPI:
    """Return the application that serves `manager`."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        manager.start()
        yield
        await manager.close()

    app = FastAPI(lifespan=lifespan, title="SGLang stand-in", version=__version__)
    _add_openai(app, manager)
    _add_native(app, manager)
    _add_errors(app)
    app.add_middleware(Guard, limit=manager.server_args.max_request_bytes, api_key=manager.server_args.api_key)
    return app


def _add_openai(app: FastAPI, manager: TokenizerManager) -> None:
    async def serve(serving: Serving, kind: type[CommonRequest], request: Request) -> Any:
        asked = kind.model_validate_json(await request.body())
        inputs = serving.prepare(asked)
        if asked.stream:
            return await _stream(request, serving.stream(asked, inputs[0]))
        return await _while_connected(request, serving.complete(asked, inputs))

    chat, completion = ServingChat(manager), ServingCompletion(manager)

    @app.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Any:
        return await serve(chat, ChatCompletionRequest, request)

    @app.post("/v1/completions")
    async def completions(request: Request) -> Any:
        return await serve(completion, CompletionRequest, request)

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        name = manager.server_args.served_model_name
        card = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "sglang", "root": name}
        return {"object": "list", "data": [{**card, "max_model_len": manager.sequence_limit}]}


def _add_native(app: FastAPI, manager: TokenizerManager) -> None:
    @app.api_route("/generate", methods=["POST", "PUT"])
    async def generate(request: Request) -> Any:
        inputs, single = GenerateRequest.model_validate_json(await request.body()).inputs()
        if inputs[0].stream:
            return await _stream(request, _events(manager, inputs[0]))
        answers = await _while_connected(request, manager.complete(inputs))
        return answers[0] if single else answers

    @app.get("/health")
    @app.get("/health_generate")
    async def health() -> Response:
        return PlainTextResponse(manager.died or "", 503 if manager.died else 200)

    @app.get("/get_model_info")
    @app.get("/model_info")
    async def model_info() -> dict[str, Any]:
        args = manager.server_args
        return {"model_path": args.model_path, "tokenizer_path": args.tokenizer_path, "is_generation": True}

    @app.get("/get_server_info")
    @app.get("/server_info")
    async def server_info() -> dict[str, Any]:
        secret_free = {k: v for k, v in dataclasses.asdict(manager.server_args).items() if k != "api_key"}
        state = (await manager.control("get_internal_state")).data
        return {**secret_free, "version": __version__, "scheduler_info": manager.scheduler_info, "internal_states": [state]}

    @app.get("/metrics")
    async def metrics() -> Response:
        return PlainTextResponse(render(manager), media_type="text/plain; version=0.0.4")

    def command(what: str, kind: type[BaseModel]) -> None:
        @app.api_route(f"/{what}", methods=["GET", "POST"], name=what)
        async def run(request: Request) -> Any:
            asked = kind.model_validate_json(await request.body() or b"{}")
            answer = await manager.control(what, **asked.model_dump())
            return JSONResponse({"success": answer.success, **answer.data}, 200 if answer.success else 400)

    for what, kind in (("flush_cache", Nothing), ("start_profile", ProfileRequest), ("stop_profile", Nothing)):
        command(what, kind)


async def _events(manager: TokenizerManager, item: GenerateReqInput) -> AsyncIterator[str]:
    async for answer in manager.generate_request(item):
        yield f"data: {json.dumps(answer, ensure_ascii=False)}\n\n"
    yield "data: [DONE]\n\n"


async def _stream(request: Request, events: AsyncIterator[str]) -> Response:
    """Return a stream, begun: a request that cannot be answered raises here, while its status can still be told.

    Raises:
        Exception: what the first step raises.
    """
    first = await _while_connected(request, anext(events))
    return StreamingResponse(_continue(first, events), media_type="text/event-stream")


async def _continue(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    """Pass events on; when the engine dies in between, say so as the last event."""
    yield first
    try:
        async for event in events:
            yield event
    except EngineDied as error:
        yield f"data: {json.dumps({'error': {'message': str(error), 'type': 'InternalServerError', 'code': 500}})}\n\n"


async def _while_connected(request: Request, work: Any) -> Any:
    """Return what `work` returns; stop it when the client goes away, so that its pages come free.

    Raises:
        ClientGone: the client went away.
    """

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(work), asyncio.ensure_future(gone())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise ClientGone
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def first_fault(error: ValidationError) -> tuple[str, str]:
    """Return the first field that is wrong, dotted, and what it should be; where several kinds would do, all of them."""
    faults: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False, include_input=False):
        kinds = itertools.takewhile(lambda part: part not in _KINDS, fault["loc"])
        why = "the stand-in does not support it" if fault["type"] == "extra_forbidden" else fault["msg"]
        faults.setdefault(".".join(map(str, kinds)) or "body", []).append(why.removeprefix("Value error, "))
    field, reasons = next(iter(faults.items()))
    return field, " or ".join(dict.fromkeys(reasons)).replace(" or Input should be", " or")


def _add_errors(app: FastAPI) -> None:
    """Give each failure its status, in the shape that OpenAI's clients read."""

    def answer(status: int, message: str, kind: str, param: str | None = None) -> JSONResponse:
        return JSONResponse({"object": "error", "message": message, "type": kind, "param": param, "code": status}, status)

    def on(error: type[Exception], make: Callable[[Any], JSONResponse]) -> None:
        async def handle(_: Request, raised: Exception) -> JSONResponse:
            return make(raised)

        app.add_exception_handler(error, handle)

    def invalid(error: ValidationError) -> JSONResponse:
        field, why = first_fault(error)
        return answer(400, f"{field}: {why}", "BadRequestError", field)

    on(ValidationError, invalid)
    on(FieldError, lambda error: answer(400, str(error), "BadRequestError", error.field))
    on(QueueFull, lambda _: answer(503, "the queue is full; try again later", "ServiceUnavailableError"))
    on(EngineDied, lambda error: answer(500, str(error), "InternalServerError"))
    on(ClientGone, lambda _: answer(499, "the client has gone", "ClientClosedRequest"))


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block, SIGINT and SIGTERM call `stop`."""
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def launch_server(server_args: ServerArgs) -> int:
    """Serve until told to stop, and return the exit status. Whatever happens, no child is left.

    Raises:
        ValueError: the arguments cannot be used.
        StartFailed: a process of the engine did not come up, or the port is taken.
    """
    configure_logging(server_args)
    listener = _listen(server_args)

    def leave() -> None:
        raise SystemExit(0)

    children: Children | None = None
    with listener, _signals(leave):
        try:
            manager, children = launch_subprocesses(server_args)
            config = uvicorn.Config(
                create_app(manager), log_level=server_args.log_level, timeout_graceful_shutdown=3, timeout_keep_alive=5, access_log=False
            )
            server = uvicorn.Server(config)
            loop: asyncio.AbstractEventLoop
            server.capture_signals = contextlib.nullcontext  # ours are in force

            def stop() -> None:
                server.should_exit = True

            def died(why: str) -> None:
                logger.critical("%s; shutting down", why)
                loop.call_soon_threadsafe(manager.fail_all, why)
                stop()

            async def serve() -> None:
                nonlocal loop
                loop = asyncio.get_running_loop()
                assert children is not None
                children.watch(died)
                logger.info("ready: %s", server_args.url())
                with _signals(stop):
                    await server.serve(sockets=[listener])

            asyncio.run(serve())
            return 1 if manager.died else 0
        finally:
            if children is not None:
                children.stop()


def _listen(server_args: ServerArgs) -> socket.socket:
    """Take the port before anything expensive happens.

    Raises:
        StartFailed: it is taken, or the address is not this machine's.
    """
    try:
        infos = socket.getaddrinfo(server_args.host, server_args.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        listener = socket.create_server(infos[0][4][:2], family=infos[0][0], backlog=2048)
    except OSError as error:
        raise StartFailed(f"cannot listen on {server_args.host}:{server_args.port}: {error.strerror or error}") from error
    server_args.port = listener.getsockname()[1]
    return listener
