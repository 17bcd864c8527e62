"""Hooks of one plugin, applied for a test and taken back. Owns how a registration is caught, whichever registry it goes to."""

from __future__ import annotations

import contextlib
import importlib
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.core import entrypoints
from sglang_plug.core.hooks import HookRegistry, HookType
from sglang_plug.core.policy import REGISTRIES
from sglang_plug.testing import engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sglang_plug.core.entrypoints import Candidate


@dataclass(frozen=True)
class Registration:
    """One hook that a plugin registered.

    Attributes:
        target: as the plugin wrote it.
        function: the hook.
        type: `before`, `after`, `around` or `replace`.
        runtime: whose registry it went to.
    """

    target: str
    function: Callable[..., Any] = field(repr=False)
    type: str
    runtime: str


@dataclass
class Hooked:
    """A plugin's hooks in force.

    Attributes:
        registrations: what it registered, in order.
        failures: target to the reason why it could not be patched.
    """

    registrations: tuple[Registration, ...]
    registry: HookRegistry = field(repr=False)

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that are patched."""
        return tuple(sorted(self.registry.patched))

    @property
    def failures(self) -> dict[str, Exception]:
        """Target to the reason why it could not be patched; SGLang would log it and go on."""
        return self.registry.failures

    def revert(self) -> None:
        """Take every patch back."""
        self.registry.revert()


def apply(plugin: str | Callable[[], Any], runtime: str) -> Hooked:
    """Run the callback of `plugin`, an entry point's name or the callback itself, and apply what it registers with `runtime`."""
    __tracebackhide__ = True
    callback = plugin if callable(plugin) else None
    with caught() as registrations:
        (callback or load(find(plugin, runtime)))()  # type: ignore[arg-type]
    mine = tuple(entry for entry in registrations if entry.runtime == runtime)
    registry = HookRegistry()
    for entry in mine:
        registry.register(entry.target, entry.function, HookType(entry.type))
    registry.apply()
    return Hooked(mine, registry)


def find(name: str, runtime: str) -> Candidate:
    """Return the installed hook plugin of that name, or fail the test."""
    __tracebackhide__ = True
    group = engine.policy(runtime).hook_group or ""
    candidates = entrypoints.installed(group)
    for candidate in candidates:
        if candidate.name == name:
            return candidate
    known = ", ".join(candidate.name for candidate in candidates) or "none"
    pytest.fail(f"no entry point {name!r} in group {group} (installed: {known}); install the package, and start Python anew", pytrace=False)


def load(candidate: Candidate) -> Any:
    """Import the callback anew, so that decorators at the top of its module register again."""
    package = candidate.value.partition(":")[0].partition(".")[0]
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]
    return entrypoints.load(candidate)


@contextlib.contextmanager
def caught() -> Iterator[list[Registration]]:
    """Catch what is registered in the block, with either runtime's registry; nothing reaches the registries themselves."""
    engine.prepare()
    found: list[Registration] = []
    undo: list[Callable[[], None]] = []
    try:
        for runtime, module in REGISTRIES.items():
            undo.append(_divert(importlib.import_module(module).HookRegistry, runtime, found))
        yield found
    finally:
        for step in reversed(undo):
            step()


def _divert(registry: Any, runtime: str, found: list[Registration]) -> Callable[[], None]:
    """Let the registry's own rules judge each registration, then keep it instead of the registry."""
    own = vars(registry).get("register")

    def register(cls: Any, target: str, hook: Any, hook_type: Any = None, source: Any = None) -> None:
        kind = hook_type.value if hook_type is not None else HookType.AFTER.value
        HookRegistry().register(target, hook, HookType(kind))
        found.append(Registration(target, hook, kind, runtime))

    registry.register = classmethod(register)

    def restore() -> None:
        if own is None:
            del registry.register
        else:
            registry.register = own

    return restore
