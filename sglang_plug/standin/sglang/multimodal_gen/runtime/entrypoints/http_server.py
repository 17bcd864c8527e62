"""The HTTP face: OpenAI's image generation over the scheduler's socket."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..pipelines_core.schedule_batch import ControlReq
from ..scheduler_client import SchedulerClient, SchedulerUnreachable
from .openai import image_api

if TYPE_CHECKING:
    from ..server_args import ServerArgs

INFO_MS = 30_000


def failure(status: int, message: str, kind: str) -> JSONResponse:
    """Return an error in OpenAI's form."""
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status)


def alive(pid: int) -> bool:
    """Return whether a process of this user runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def create_app(server_args: ServerArgs, worker_pids: tuple[int, ...] = ()) -> FastAPI:
    """Return the application for these arguments."""
    app = FastAPI(title="sglang-plug stand-in: diffusion")
    app.state.server_args = server_args

    def ended() -> list[str]:
        return [f"the worker with process id {pid} has ended" for pid in worker_pids if not alive(pid)]

    app.state.scheduler = SchedulerClient(server_args, ended)
    app.include_router(image_api.router)

    @app.exception_handler(SchedulerUnreachable)
    async def unreachable(_: Request, error: SchedulerUnreachable) -> JSONResponse:
        return failure(503, str(error), "server_error")

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        wrong = []
        for fault in error.errors():
            broken = fault["type"] == "json_invalid"  # its place is a number of a character, not a field
            field = "body" if broken else ".".join(map(str, fault["loc"][1:])) or "body"
            wrong.append(f"{field}: {fault['msg']}{' (' + fault['ctx']['error'] + ')' if broken else ''}")
        return failure(400, "; ".join(wrong), "invalid_request_error")

    @app.exception_handler(HTTPException)
    async def unserved(_: Request, error: HTTPException) -> JSONResponse:
        return failure(error.status_code, str(error.detail), "invalid_request_error")

    @app.exception_handler(image_api.BadRequest)
    async def refused(_: Request, error: image_api.BadRequest) -> JSONResponse:
        return failure(400, str(error), "invalid_request_error")

    @app.exception_handler(image_api.GenerationFailed)
    async def failed(_: Request, error: image_api.GenerationFailed) -> JSONResponse:
        return failure(500, str(error), "server_error")

    @app.get("/health")
    def health() -> JSONResponse:
        gone = ended()
        return failure(503, "; ".join(gone), "server_error") if gone else JSONResponse({"status": "ok"})

    @app.get("/v1/models")
    def models() -> dict[str, Any]:
        entry = {"id": server_args.served_model_name, "object": "model", "created": 0, "owned_by": "sglang-plug"}
        return {"object": "list", "data": [entry]}

    @app.get("/server_info")
    def server_info() -> dict[str, Any]:
        workers = app.state.scheduler.forward(ControlReq("info"), INFO_MS).output
        return {"model_path": server_args.model_path, "num_gpus": server_args.num_gpus, "workers": workers}

    return app
