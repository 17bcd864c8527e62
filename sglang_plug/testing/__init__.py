"""The test kit for plugin authors: conformance tests, fixtures and fake installs. Importing it imports nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglang_plug.testing.hook_contract import HookContract
    from sglang_plug.testing.hooking import Hooked, Registration
    from sglang_plug.testing.installs import FakeInstalls
    from sglang_plug.testing.platform_contract import PlatformContract
    from sglang_plug.testing.worker import WorkerFailed

__all__ = ["FakeInstalls", "HookContract", "Hooked", "PlatformContract", "Registration", "WorkerFailed"]

_HOMES = {
    "FakeInstalls": "installs",
    "HookContract": "hook_contract",
    "Hooked": "hooking",
    "PlatformContract": "platform_contract",
    "Registration": "hooking",
    "WorkerFailed": "worker",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is asked for: pytest loads this package in every test run of the environment."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
