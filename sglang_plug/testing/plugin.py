"""The pytest plugin: fixtures only, inert until a test asks for one. Loaded at every start of pytest, so it imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sglang_plug.testing.hooking import Hooked
    from sglang_plug.testing.installs import FakeInstalls


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting that puts the stand-in on the path for imports at the top of test modules."""
    parser.addini(
        "sglang_standin",
        "make `import sglang` find sglang-plug's stand-in at the top of test modules too, where SGLang is not installed",
        type="bool",
        default=False,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Put the stand-in on the path, where the project's settings ask for it."""
    if config.getini("sglang_standin"):
        from sglang_plug.testing import engine

        engine.prepare()


@pytest.fixture
def plugin_world() -> Iterator[None]:
    """Give the test a clean plugin world: variables, `sys.path`, modules, registries and gates are put back when it ends."""
    from sglang_plug.testing import world

    with world.restored():
        yield


@pytest.fixture
def fake_install(plugin_world: None, tmp_path: Path) -> FakeInstalls:
    """Install fake distributions: `fake_install("dist", {group: {name: "module:callback"}}, {"module.py": "…"})`."""
    from sglang_plug.testing.installs import FakeInstalls

    return FakeInstalls(tmp_path / "fake-installs")


@pytest.fixture
def hooked(plugin_world: None) -> Iterator[Callable[..., Hooked]]:
    """Apply a hook plugin's hooks for this test: `hooked("entry-point")` or `hooked(callback)`; `runtime="diffusion"` for the other."""
    from sglang_plug.testing import hooking

    made: list[Hooked] = []

    def apply(plugin: str | Callable[[], Any], *, runtime: str = "srt") -> Hooked:
        made.append(hooking.apply(plugin, runtime))
        return made[-1]

    yield apply
    for one in reversed(made):
        one.revert()


@pytest.fixture
def spawned_worker(plugin_world: None) -> Callable[..., Any]:
    """Call a function in a spawned worker, after what SGLang does there before it.

    `spawned_worker(function, *args, platform="my_device", runtime="srt", env={}, timeout=120)` selects the platform, sets its backend
    up and applies the hooks, in the order of the runtime, and returns the function's result.
    """
    from sglang_plug.testing import worker

    return worker.call
