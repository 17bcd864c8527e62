"""How a child process comes up: bound to its parent's life, plugins loaded, then its work, looked up by name so that hooks count.

The arguments stay packed until hooks are applied. Importing this module imports `sglang`, which resolves the platform.
"""

from __future__ import annotations

import logging
import os
import signal
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.core import objects
from sglang_plug.core.spawn import ServerArgsPayload, context, die_with_parent

from ..plugins import load_plugins

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


@dataclass
class Placement:
    """Which device and rank are this process's; set before its scheduler is made, which takes them from here as the release's does."""

    gpu_id: int = 0
    tp_rank: int = 0


placement = Placement()


def spawn(name: str, function: str, server_args: Any, *arguments: Any) -> BaseProcess:
    """Start a process that calls `function` (dotted) with the server arguments and these, and return it."""
    payload = ServerArgsPayload.capture(server_args)
    child = context().Process(target=_run, name=name, args=(os.getpid(), function, payload, arguments))
    child.start()
    return child


def _run(parent: int, function: str, payload: ServerArgsPayload, arguments: tuple[Any, ...]) -> None:
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the whole group; the parent decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    load_plugins()
    server_args = payload.materialize()
    configure_logging(server_args)
    objects.load(function)(server_args, *arguments)


def failure(error: Exception) -> dict[str, Any]:
    """Return what a child tells its parent when it cannot start; our own ValueErrors speak for themselves, all else has its traceback."""
    place = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = isinstance(error, ValueError) and place.startswith(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    trace = "" if ours else "".join(traceback.format_exception(error))
    return {"status": "error", "error": f"{type(error).__name__}: {error}", "traceback": trace}


def configure_logging(server_args: Any) -> None:
    """Send this process's log to stderr, at the level that the arguments ask for."""
    logging.basicConfig(level=server_args.log_level.upper(), format="[%(asctime)s %(processName)s] %(levelname)s %(name)s: %(message)s")
