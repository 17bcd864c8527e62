"""The engine's processes, started and watched; and `Engine`, which uses them without a server."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import multiprocessing.connection
import shutil
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ..managers.tokenizer_manager import TokenizerManager
from ..managers.worker_bootstrap import configure_logging, spawn
from ..plugins import load_plugins
from ..sampling.sampling_params import SamplingParams
from ..server_args import PortArgs, ServerArgs, ignore_unknown
from .generate import GenerateRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

logger = logging.getLogger(__name__)

_PATIENCE = 5.0


class StartFailed(RuntimeError):
    """A process of the engine did not become ready."""


@dataclass
class Children:
    """The engine's child processes.

    Attributes:
        infos: what each scheduler said when it was ready.
    """

    port_args: PortArgs
    processes: list[BaseProcess] = field(default_factory=list)
    pipes: list[Connection] = field(default_factory=list)
    infos: list[dict[str, Any]] = field(default_factory=list)
    stopping: bool = False

    def add(self, name: str, function: str, server_args: ServerArgs, *arguments: Any) -> None:
        """Start one child; its function gets a pipe as last argument, to say when it is ready."""
        reader, writer = multiprocessing.Pipe(duplex=False)
        self.processes.append(spawn(name, function, server_args, self.port_args, *arguments, writer))
        self.pipes.append(reader)
        writer.close()

    def wait_ready(self, seconds: float) -> None:
        """Wait until all are ready.

        Raises:
            StartFailed: one said why not, died, or took too long.
        """
        deadline = time.monotonic() + seconds
        waiting = dict(zip(self.pipes, self.processes, strict=True))
        while waiting:
            ready = multiprocessing.connection.wait(list(waiting), timeout=max(0, deadline - time.monotonic()))
            if not ready:
                raise StartFailed(f"not ready after {seconds:g} s: {', '.join(p.name for p in waiting.values())}")
            for pipe in ready:
                self._hear(pipe, waiting.pop(pipe))  # type: ignore[arg-type, call-overload]

    def _hear(self, pipe: Connection, process: BaseProcess) -> None:
        try:
            answer = pipe.recv()
        except EOFError:
            process.join(_PATIENCE)
            raise StartFailed(f"{process.name} ended before it was ready: {ending(process)}") from None
        if answer["status"] != "ready":
            if answer["traceback"]:
                logger.error("%s failed:\n%s", process.name, answer["traceback"])
            raise StartFailed(f"{process.name}: {answer['error']}")
        if "tp_rank" in answer:
            self.infos.append(answer)

    def watch(self, tell: Callable[[str], None]) -> None:
        """Call `tell`, from a thread, with the reason when a child ends while nobody asked it to."""

        def wait() -> None:
            multiprocessing.connection.wait([process.sentinel for process in self.processes])
            if self.stopping:
                return
            for process in self.processes:
                process.join(0.1)
            ended = next((p for p in self.processes if p.exitcode is not None), self.processes[0])
            tell(f"{ended.name} (pid {ended.pid}) has ended: {ending(ended)}")

        threading.Thread(target=wait, name="children", daemon=True).start()

    def stop(self) -> None:
        """End all children, first politely, and remove their sockets."""
        self.stopping = True
        for process in self.processes:
            process.terminate()
        deadline = time.monotonic() + _PATIENCE
        for process in self.processes:
            process.join(max(0.1, deadline - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                process.kill()
                process.join()
        shutil.rmtree(self.port_args.folder, ignore_errors=True)


def ending(process: BaseProcess) -> str:
    """Say how a process ended."""
    code = process.exitcode
    if code is None:
        return "it is still running"
    if code >= 0:
        return f"exit status {code}"
    return f"killed by {signal.Signals(-code).name}"


def launch_subprocesses(server_args: ServerArgs) -> tuple[TokenizerManager, Children]:
    """Start schedulers and detokenizer, wait until they are ready, and return them with the tokenizer manager.

    Raises:
        ValueError: the arguments cannot be used.
        StartFailed: a process did not come up; none is left then.
    """
    server_args.resolve_once()
    load_plugins()
    server_args.check_server_args()
    children = Children(PortArgs.init_new())
    try:
        manager = TokenizerManager(server_args, children.port_args)
        children.add("detokenizer", "sglang.srt.managers.detokenizer_manager.run_detokenizer_process", server_args)
        for rank in range(server_args.tp_size):
            function = "sglang.srt.managers.scheduler.run_scheduler_process"
            children.add(f"scheduler_TP{rank}", function, server_args, server_args.base_gpu_id + rank, rank, 0, None)
        children.wait_ready(server_args.watchdog_timeout)
    except BaseException:
        children.stop()
        raise
    manager.scheduler_info = sorted(children.infos, key=lambda info: info["tp_rank"])
    manager.sequence_limit = manager.scheduler_info[0]["sequence_limit"]
    return manager, children


class Engine:
    """The engine without a server: `Engine(model_path=…).generate(prompt, {"temperature": 0})`.

    A script that makes one must do so under `if __name__ == "__main__":`, because children run its module scope again.

    Raises:
        ValueError: the arguments cannot be used.
        StartFailed: a process did not come up.
    """

    def __init__(self, **arguments: Any) -> None:
        load_plugins()
        server_args = arguments.pop("server_args", None)
        if server_args is None:
            fields = {entry.name for entry in dataclasses.fields(ServerArgs)}
            ignore_unknown(arguments.keys() - fields)
            server_args = ServerArgs(**{"log_level": "error", **{name: arguments[name] for name in arguments.keys() & fields}})
        configure_logging(server_args)
        self.server_args = server_args
        self._loop = asyncio.new_event_loop()
        self.tokenizer_manager, self._children = self._loop.run_until_complete(self._launch())

    async def _launch(self) -> tuple[TokenizerManager, Children]:
        manager, children = launch_subprocesses(self.server_args)
        manager.start()
        loop = asyncio.get_running_loop()

        def died(why: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(manager.fail_all, why)

        children.watch(died)
        return manager, children

    def generate(
        self,
        prompt: str | list[str] | None = None,
        sampling_params: dict[str, Any] | None = None,
        input_ids: list[int] | list[list[int]] | None = None,
    ) -> Any:
        """Return the answer to a prompt, or the answers to a list of prompts.

        Raises:
            ValueError: the request makes no sense.
            EngineDied: a process of the engine has ended.
        """
        request = GenerateRequest(text=prompt, input_ids=input_ids, sampling_params=SamplingParams(**(sampling_params or {})))
        inputs, single = request.inputs()
        answers = self._loop.run_until_complete(self.tokenizer_manager.complete(inputs))
        return answers[0] if single else answers

    def shutdown(self) -> None:
        """End the engine's processes. Doing it again changes nothing."""
        if self._loop.is_closed():
            return
        self._children.stopping = True
        self._loop.run_until_complete(self.tokenizer_manager.close())
        self._children.stop()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
