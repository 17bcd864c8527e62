"""A function called in a spawned worker, after what SGLang does there before it: platform, backend, plugins, hooks (S4, S6, S7).

Only standard types cross to the child before SGLang is ready there: the function travels as bytes that are opened last.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import sys
import traceback
from typing import TYPE_CHECKING, Any

from sglang_plug.core.policy import REGISTRIES
from sglang_plug.testing import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection


class WorkerFailed(AssertionError):
    """The worker raised, ended or took too long. Its text holds the worker's own traceback."""


def call(
    function: Callable[..., Any],
    *args: Any,
    platform: str | None = None,
    runtime: str = "srt",
    env: Mapping[str, str] | None = None,
    timeout: float = 120.0,
) -> Any:
    """Return `function(*args)`, called in a spawned worker in which the runtime is set up.

    Args:
        function: importable in the child, as `multiprocessing` wants it.
        args: what it is given; pickled.
        platform: the entry point to select; None leaves the selection to the environment.
        runtime: `srt` or `diffusion`.
        env: variables of the worker.
        timeout: seconds until it is killed.

    Raises:
        WorkerFailed: it raised, ended or took too long.
    """
    policy = engine.policy(runtime)
    changes: dict[str, str | None] = dict(env or {})
    if platform is not None and policy.selector:
        changes.setdefault(policy.selector, platform)
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe(duplex=False)
    payload = pickle.dumps((function, args))
    child = context.Process(target=_main, args=(far, runtime, engine.child_environment(changes), list(sys.path), payload))
    child.start()
    far.close()
    try:
        return _answer(near, child, timeout)
    finally:
        near.close()
        child.kill()
        child.join()


def _answer(near: Connection, child: Any, timeout: float) -> Any:
    if not near.poll(timeout):
        raise WorkerFailed(f"the worker did not answer within {timeout:g} seconds")
    try:
        kind, value = pickle.loads(near.recv_bytes())  # noqa: S301 - our own child wrote it
    except EOFError:
        child.join()
        raise WorkerFailed(f"the worker ended with status {child.exitcode} before it answered") from None
    if kind == "raised":
        raise WorkerFailed(f"the worker raised\n{value}")
    return value


def report(runtime: str) -> dict[str, Any]:
    """Say, in a worker, what its platform is and how its backend was set up."""
    package = "sglang.srt.platforms" if runtime == "srt" else "sglang.multimodal_gen.runtime.platforms"
    kind = type(importlib.import_module(package).current_platform)
    return {
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "initialised": len(_returned),
        "returned": repr(_returned[0]) if _returned else None,
    }


_returned: list[Any] = []  # by each call of init_backend() in this process


def _main(far: Connection, runtime: str, environ: dict[str, str], path: list[str], payload: bytes) -> None:
    """Be the child."""
    os.environ.clear()
    os.environ.update(environ)
    sys.path[:] = path
    try:
        from sglang_plug.standin import finder

        finder.install()
        (_srt if runtime == "srt" else _diffusion)()
        function, args = pickle.loads(payload)  # noqa: S301 - our own parent wrote it
        answer = pickle.dumps(("returned", function(*args)))
    except BaseException:  # noqa: BLE001 - whatever happens here is the answer
        answer = pickle.dumps(("raised", traceback.format_exc()))
    far.send_bytes(answer)


def _srt() -> None:
    """Start as a scheduler does: importing SGLang resolves the platform, plugins load, the model runner sets the backend up."""
    importlib.import_module("sglang")
    platform = importlib.import_module("sglang.srt.platforms").current_platform
    _count(platform)
    importlib.import_module("sglang.srt.plugins").load_plugins()
    if platform.is_out_of_tree():
        platform.init_backend()


def _diffusion() -> None:
    """Start as a GPU worker does: the backend before plugins, plugins before targets."""
    platforms = importlib.import_module("sglang.multimodal_gen.runtime.platforms")
    _count(platforms.current_platform)
    platforms.initialize_current_platform()
    plugins = importlib.import_module(REGISTRIES["diffusion"])
    plugins.load_plugins()
    plugins.apply_plugin_hooks()


def _count(platform: Any) -> None:
    """Write down each call of the class's `init_backend()`."""
    kind = type(platform)
    original = kind.init_backend

    def init_backend(self: Any) -> Any:
        _returned.append(original(self))
        return _returned[-1]

    kind.init_backend = init_backend
