"""The `Process` targets of the diffusion children, and what they are given (S7). Imports no runtime module at module scope.

A face over `core.spawn`: the order lives there, upstream's names and this runtime's modules here.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from sglang_plug.core import spawn
from sglang_plug.core.spawn import SchedulerProcessSpec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SchedulerProcessSpec", "ServerArgsPayload", "bootstrap_http_server_process", "bootstrap_scheduler_process"]

# By name: resolved after hooks were applied, so that what runs is the patched function.
_RUN_SCHEDULER = "sglang.multimodal_gen.runtime.managers.gpu_worker:run_scheduler_process"
_RUN_HTTP_SERVER = "sglang.multimodal_gen.runtime.launch_server:launch_http_server_only"
_PREFIX = "sglang.multimodal_gen."
#: Packages that import nothing themselves.
_NAMESPACES = tuple(f"sglang.multimodal_gen.runtime{inner}" for inner in ("", ".managers", ".entrypoints", ".entrypoints.cli"))
#: What a script's module scope may import: all of it is import-safe.
_PRE_ACTIVATION_MODULES = (
    "sglang.multimodal_gen.envs",
    "sglang.multimodal_gen.lazy",
    "sglang.multimodal_gen.runtime.platforms",
    "sglang.multimodal_gen.runtime.managers.worker_bootstrap",
)


class ServerArgsPayload(spawn.ServerArgsPayload):
    """The arguments of a diffusion server as opaque bytes."""

    def materialize(self) -> Any:
        """Return the arguments. Imports their modules: call it after hooks are applied.

        Raises:
            TypeError: the bytes hold something else.
        """
        from ..server_args import ServerArgs

        server_args = super().materialize()
        if not isinstance(server_args, ServerArgs):
            raise TypeError(f"Bootstrap payload did not contain diffusion ServerArgs but {type(server_args).__name__}")
        return server_args


class _Phases:
    """The phases under upstream's names, each looked up when it is its turn: a test may have put its own there."""

    def init_backend(self) -> None:
        from .. import platforms

        platforms.initialize_current_platform()

    def load_plugins(self) -> None:
        from ..platforms import plugins

        plugins.load_plugins()

    def apply_plugin_hooks(self) -> None:
        from ..platforms import plugins

        plugins.apply_plugin_hooks()


def _warn_if_runtime_imported_early() -> None:
    spawn.warn_of_early_imports(
        _PREFIX, _PRE_ACTIVATION_MODULES, namespaces=_NAMESPACES, modules=sys.modules, logger=lambda: logging.getLogger(__name__)
    )


def bootstrap_scheduler_process(spec: SchedulerProcessSpec) -> None:
    """Be a scheduler: backend, plugins, hooks, arguments, then the patched `run_scheduler_process`.

    Raises:
        BaseException: what a phase raises; nothing after it runs.
    """
    spawn.die_with_parent()
    if spec.rank == 0:  # every rank runs the same script: one report is enough
        _warn_if_runtime_imported_early()

    def serve() -> Callable[[], object]:
        server_args = spec.server_args.materialize()
        return partial(
            resolve_name(_RUN_SCHEDULER),
            local_rank=spec.local_rank,
            rank=spec.rank,
            server_args=server_args,
            pipe_writer=spec.pipe_writer,
        )

    spawn.bootstrap(_Phases(), serve=serve, init_backend=True)


def bootstrap_http_server_process(server_args: ServerArgsPayload, worker_pids: tuple[int, ...] = ()) -> None:
    """Be the HTTP server: plugins and hooks first, then the server's modules and the arguments. The device is not touched.

    Raises:
        BaseException: what a phase raises; nothing after it runs.
    """
    spawn.die_with_parent()
    _warn_if_runtime_imported_early()

    def serve() -> Callable[[], object]:
        run = resolve_name(_RUN_HTTP_SERVER)
        return partial(run, server_args.materialize(), worker_pids=worker_pids)

    spawn.bootstrap(_Phases(), serve=serve, init_backend=False)
