"""Starts the workers and the HTTP server, watches over them, and ends them all together."""

from __future__ import annotations

import logging
import multiprocessing
import signal
import sys
import time
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, cast

from .managers.worker_bootstrap import (
    SchedulerProcessSpec,
    ServerArgsPayload,
    bootstrap_http_server_process,
    bootstrap_scheduler_process,
)
from .pipelines_core.schedule_batch import ControlReq
from .platforms.plugins import apply_plugin_hooks
from .scheduler_client import SchedulerClient, SchedulerUnreachable
from .utils.logging_utils import configure_logger

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from .server_args import ServerArgs

logger = logging.getLogger(__name__)

SHUTDOWN_MS = 5_000
JOIN_SECONDS = 10.0
TERMINATE_SECONDS = 2.0
_GUARD = 'if __name__ == "__main__":'


class WorkerFailed(RuntimeError):
    """A child ended that should not have."""


def shutdown_scheduler_processes(server_args: ServerArgs, processes: list[BaseProcess], *, request_shutdown: bool = True) -> None:
    """End the workers: ask, wait, terminate, kill. Nothing is left of them afterwards."""
    request_shutdown = request_shutdown and all(p.is_alive() for p in processes)  # what is left of a group only waits for the rest
    if request_shutdown:
        client = SchedulerClient(server_args)
        try:
            client.forward(ControlReq("shutdown"), SHUTDOWN_MS)
        except SchedulerUnreachable as error:
            logger.warning("The workers do not answer the request to stop: %s", error)
            request_shutdown = False
        finally:
            client.close()
    _join(processes, JOIN_SECONDS if request_shutdown else 0)
    _end(processes)
    server_args.release()


def _end(processes: list[BaseProcess]) -> None:
    for end in ("terminate", "kill"):
        alive = [p for p in processes if p.is_alive()]
        for process in alive:
            getattr(process, end)()
        _join(alive, TERMINATE_SECONDS)


def _join(processes: list[BaseProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))


def start_scheduler_processes(payload: ServerArgsPayload, ranks: list[tuple[int, int]]) -> list[BaseProcess]:
    """Return the workers, one a (local rank, rank), once each is ready.

    Always spawn, whatever the application chose for itself (S7.3).

    Raises:
        WorkerFailed: one ended before it was ready; the others are ended too.
    """
    context = multiprocessing.get_context("spawn")
    processes: list[BaseProcess] = []
    waiting: dict[Connection, BaseProcess] = {}
    with ExitStack() as pipes:
        try:
            for local_rank, rank in ranks:  # all start before any is waited for: they meet in the process group
                reader, writer = context.Pipe(duplex=False)
                pipes.enter_context(reader)
                process: BaseProcess = context.Process(
                    target=bootstrap_scheduler_process,
                    args=(SchedulerProcessSpec(local_rank, rank, payload, writer),),
                    name=f"sglang-diffusionWorker-{rank}",
                    daemon=True,
                )
                process.start()
                writer.close()
                processes.append(process)
                waiting[reader] = process
            _await_ready(waiting, processes)
        except BaseException:
            for process in processes:
                process.kill()
            _join(processes, TERMINATE_SECONDS)
            raise
    return processes


def _await_ready(waiting: dict[Connection, BaseProcess], processes: list[BaseProcess]) -> None:
    sentinels = {p.sentinel: p for p in processes}  # also of those that are ready, while others are not
    while waiting:
        for handle in sorted(wait([*waiting, *sentinels]), key=lambda handle: not isinstance(handle, Connection)):  # last words first
            if not isinstance(handle, Connection):
                raise WorkerFailed(describe_end(sentinels[cast("int", handle)], "before all were ready"))
            try:
                answer = handle.recv()
            except EOFError:
                raise WorkerFailed(describe_end(waiting[handle], "before it was ready")) from None
            if answer.get("status") != "ready":
                raise WorkerFailed(f"{waiting[handle].name}: {answer.get('error', answer)}")
            del waiting[handle]


def describe_end(process: BaseProcess, when: str) -> str:
    """Return in words how a child ended."""
    process.join(JOIN_SECONDS)
    code = process.exitcode
    how = "it does not exit" if code is None else f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
    said = "" if code is not None and code < 0 else "; its own message is in the log above"
    return f"{process.name} ended {when} ({how}){said}"


def launch_server(server_args: ServerArgs, launch_http_server: bool = True) -> list[BaseProcess]:
    """Start the workers and return them; with `launch_http_server`, serve until told to stop and end them first.

    Raises:
        WorkerFailed: a child ended that should not have.
        SystemExit: this is itself a child, which runs a script's module scope and would start children of its own.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        script = getattr(sys.modules.get("__mp_main__"), "__file__", "the script")
        raise SystemExit(f"error: {script} starts the engine when it is imported, as every worker does: put it under `{_GUARD}`")
    apply_plugin_hooks()
    server_args.settle()
    payload = ServerArgsPayload.capture(server_args)
    try:
        processes = start_scheduler_processes(payload, [(i, i) for i in range(server_args.num_gpus)])
    except BaseException:
        server_args.release()
        raise
    if launch_http_server:
        serve_until_stopped(server_args, payload, processes)
    return processes


def serve_until_stopped(server_args: ServerArgs, payload: ServerArgsPayload, workers: list[BaseProcess]) -> None:
    """Run the HTTP child beside the workers until a signal comes or one of them ends.

    Raises:
        WorkerFailed: a child ended by itself.
    """
    http = multiprocessing.get_context("spawn").Process(
        target=bootstrap_http_server_process,
        args=(payload, tuple(p.pid for p in workers)),
        name="sglang-diffusion-http",
        daemon=True,
    )
    previous = signal.signal(signal.SIGTERM, _stop)
    try:
        http.start()
        sentinels = {p.sentinel: p for p in (*workers, http)}
        (first, *_) = wait([*sentinels])
        raise WorkerFailed(describe_end(sentinels[cast("int", first)], "while serving"))
    except (KeyboardInterrupt, _Stopped):
        logger.info("Stopping.")
    finally:
        signal.signal(signal.SIGTERM, previous)
        if http.is_alive():
            http.terminate()  # it takes no more requests, and ends when the last one that it has is answered
        shutdown_scheduler_processes(server_args, workers)
        _end([http])


class _Stopped(BaseException):
    """SIGTERM came."""


def _stop(*_: Any) -> None:
    raise _Stopped


def launch_http_server_only(server_args: ServerArgs, worker_pids: tuple[int, ...] = ()) -> None:
    """Serve HTTP in this process until told to stop; the workers are somebody else's."""
    import uvicorn

    from .entrypoints.http_server import create_app

    configure_logger(server_args.log_level, " http")
    uvicorn.run(create_app(server_args, worker_pids), host=server_args.host, port=server_args.port, log_level=server_args.log_level)
