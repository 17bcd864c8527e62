"""What crosses the spawn boundary and in which order a child comes up (S7). Imports no runtime module; standard-library types only."""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnContext
    from typing import Self

_PR_SET_PDEATHSIG = 1
_SHOWN = 5


def context() -> SpawnContext:
    """Return a spawn context of our own, whatever start method the embedding application set."""
    import multiprocessing

    return multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class ServerArgsPayload:
    """Server arguments kept as opaque bytes, so that unpickling them imports nothing before the child is ready."""

    _pickle: bytes = field(repr=False)

    @classmethod
    def capture(cls, server_args: object) -> Self:
        """Take the picture of `server_args`.

        Raises:
            pickle.PicklingError: they cannot be pickled.
        """
        return cls(pickle.dumps(server_args, protocol=pickle.HIGHEST_PROTOCOL))

    def materialize(self) -> Any:
        """Unpickle, which imports the modules of the arguments. Call it after hooks are applied.

        Raises:
            Exception: what those imports raise.
        """
        return pickle.loads(self._pickle)  # noqa: S301 -- our own parent's bytes, through multiprocessing's own pipe


@dataclass(frozen=True)
class SchedulerProcessSpec:
    """All that a scheduler child needs, without importing the runtime."""

    local_rank: int
    rank: int
    server_args: ServerArgsPayload
    pipe_writer: Connection


class Phases(Protocol):
    """The phases of a runtime: `core.runtime.Runtime`, or a face that looks them up under its own names."""

    def init_backend(self) -> object:
        """Initialise the device."""

    def load_plugins(self) -> object:
        """Register hooks."""

    def apply_plugin_hooks(self) -> object:
        """Patch their targets."""


def bootstrap(runtime: Phases, *, serve: Callable[[], Callable[[], object]], init_backend: bool) -> None:
    """Bring a child up in order: backend, plugins registered, hooks applied, then the work itself.

    Args:
        runtime: the runtime of this process.
        serve: called once hooks are applied; imports the runtime, materialises arguments and returns the patched function to call.
        init_backend: whether this child touches the device.

    Raises:
        BaseException: what a phase raises; nothing after it runs.
    """
    if init_backend:
        runtime.init_backend()
    runtime.load_plugins()
    runtime.apply_plugin_hooks()
    serve()()


def warn_of_early_imports(
    prefix: str,
    allowed: Sequence[str],
    *,
    namespaces: Sequence[str] = (),
    modules: Mapping[str, Any] | None = None,
    logger: Callable[[], logging.Logger] = lambda: logging.getLogger(__name__),
) -> tuple[str, ...]:
    """Warn of runtime modules that this child imported before its platform was ready, naming them and the script that did it.

    Args:
        prefix: what the names of runtime modules begin with, dot included.
        allowed: modules that may be there already, with everything below them.
        namespaces: packages that hold the allowed modules and import nothing themselves.
        modules: the modules that are there; `sys.modules` by default.
        logger: gives who warns, where there is something to say.

    Returns:
        The names, sorted.
    """
    loaded = sys.modules if modules is None else modules
    early = tuple(
        sorted(
            name
            for name in list(loaded)
            if name.startswith(prefix) and name not in namespaces and not any(name == top or name.startswith(top + ".") for top in allowed)
        )
    )
    if early:
        more = f" (+{len(early) - _SHOWN} more)" if len(early) > _SHOWN else ""
        script = getattr(loaded.get("__main__"), "__file__", None) or "the launching script"
        logger().warning(
            "Runtime modules were imported before this worker initialized its platform: %s%s. spawn runs the module scope of %s in every "
            "child, so classes and registrations made there are out of reach of platform and hooks. Move the import under "
            'if __name__ == "__main__": or into the function that uses it.',
            ", ".join(early[:_SHOWN]),
            more,
            script,
        )
    return early


def die_with_parent(parent: int | None = None) -> None:
    """End this process when its parent ends, however that happens.

    On Linux the kernel does it; a watching thread does it elsewhere, and where the kernel's signal was refused.

    Args:
        parent: the parent's id, where it is known; the present parent otherwise.
    """
    expected = parent if parent is not None else os.getppid()
    armed = _arm_kernel()
    if os.getppid() != expected or not _parent_lives():
        os._exit(1)  # it died before the signal was armed
    if not armed:
        threading.Thread(target=_watch, args=(expected,), name="parent-watcher", daemon=True).start()


def _parent_lives() -> bool:
    """Whether the process that started this one through multiprocessing still runs; true where it was started otherwise."""
    process = sys.modules.get("multiprocessing.process")
    known = process.parent_process() if process is not None else None
    return known is None or bool(known.is_alive())


def _arm_kernel() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    import ctypes
    import signal

    try:
        status: int = ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (OSError, AttributeError):
        return False
    return status == 0


def _watch(parent: int, pause: float = 0.5) -> None:
    while os.getppid() == parent:
        threading.Event().wait(pause)
    os._exit(1)
