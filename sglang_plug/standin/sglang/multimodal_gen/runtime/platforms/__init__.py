"""The diffusion platform of this process: a face over the core's diffusion runtime. `current_platform` is resolved at its first use.

Import-safe: no torch, no runtime module. What tests patch here (`entry_points`, `envs`, `resolve_name`, `builtin_platform_plugins`,
`_current_platform`) is looked up in this module at call time. Source: S4, `sglang/multimodal_gen/runtime/platforms/__init__.py`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from types import ModuleType
from typing import TYPE_CHECKING

from sglang_plug.core import detect as hardware
from sglang_plug.core import environ, platforms
from sglang_plug.core.gate import State
from sglang_plug.core.objects import load as resolve_name
from sglang_plug.core.process import diffusion as _runtime
from sglang_plug.core.resolution import Resolution
from sglang_plug.core.selection import Detection

from ... import envs
from .interface import AttentionBackendEnum, Platform, PlatformEnum

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "BUILTIN_PLATFORM_NAMES",
    "PLATFORM_PLUGINS_GROUP",
    "AttentionBackendEnum",
    "Platform",
    "PlatformEnum",
    "current_platform",
    "get_selected_platform_dist",
    "initialize_current_platform",
    "resolve_current_platform_cls_qualname",
]

PLATFORM_PLUGINS_GROUP = _runtime.policy.platform_group
_BUILTIN_PLATFORM_QUALNAMES = {builtin.name: builtin.qualname for builtin in _runtime.policy.builtins}
BUILTIN_PLATFORM_NAMES = frozenset(_BUILTIN_PLATFORM_QUALNAMES)

current_platform: Platform  # given by __getattr__


@dataclass(frozen=True)
class _PlatformSelection:
    qualname: str
    plugin_name: str | None = None
    distribution_name: str | None = None
    resolution: Resolution | None = field(default=None, compare=False, repr=False)

    @property
    def is_external(self) -> bool:
        return self.plugin_name is not None


def _settings() -> environ.Settings:
    return environ.read()._replace(diffusion_platform=envs.SGLANG_DIFFUSION_PLATFORM_OVERRIDE or None)


def _probe(name: str) -> Callable[[], str | None]:
    def probe() -> str | None:
        found = hardware.detector(_runtime.policy, _settings())(name)
        return _BUILTIN_PLATFORM_QUALNAMES[name] if found.present else None

    probe.__name__ = probe.__qualname__ = f"{name}_platform_plugin"
    probe.__doc__ = f"Return the built-in {name} platform's class name, or None where its hardware is absent."
    return probe


#: The built-in platforms in the order in which they are tried, each with its detector.
builtin_platform_plugins = {builtin.name: _probe(builtin.name) for builtin in _runtime.policy.builtins}
_OWN_PROBES = dict(builtin_platform_plugins)
globals().update({probe.__name__: probe for probe in _OWN_PROBES.values()})


def _detect(name: str) -> Detection:
    probe = builtin_platform_plugins[name]
    if probe is _OWN_PROBES[name]:
        return hardware.detector(_runtime.policy, _settings())(name)  # with the reason
    return Detection(probe() is not None, f"{probe!r} answered")


def _load_platform_class(qualname: str, *, external: bool | None = None) -> type[Platform]:
    if external is None:
        external = qualname not in _BUILTIN_PLATFORM_QUALNAMES.values()
    return platforms.load_class(_runtime.policy, qualname, external=external, load=resolve_name)


_runtime.entry_points = lambda **wanted: entry_points(**wanted)  # noqa: PLW0108 - the module's name, as it is then
_runtime.settings = _settings
_runtime.detect = _detect
_runtime.load_class = lambda qualname, external: _load_platform_class(qualname, external=external)


def _select_current_platform() -> _PlatformSelection:
    return _selection(_runtime.resolve_or_raise())


def _selection(resolution: Resolution) -> _PlatformSelection:
    plugin = resolution.name if resolution.outcome == "plugin" else None
    return _PlatformSelection(resolution.qualname or "", plugin, resolution.dist, resolution)


def _create() -> tuple[Platform, Resolution]:
    selection = _select_current_platform()
    outcome = "plugin" if selection.is_external else "builtin"
    made = Resolution(_runtime.policy.runtime, outcome, selection.plugin_name, selection.qualname, selection.distribution_name)
    return _runtime.create_platform(selection.resolution or made)


_runtime.create = _create


def resolve_current_platform_cls_qualname() -> str:
    """Return the selected class's name; nothing is imported beyond the callbacks, and nothing is kept.

    Raises:
        PlatformError: the chain ends in an error.
        Exception: what the selected callback raises, unchanged.
    """
    return _select_current_platform().qualname


def _resolve_current_platform() -> Platform:
    platform: Platform = _runtime.platform
    return platform


def get_selected_platform_dist() -> str | None:
    """Return the distribution of the selected external platform; None where a built-in is selected.

    Raises:
        PlatformError: the chain ends in an error.
    """
    return _runtime.selected_dist()


def initialize_current_platform() -> None:
    """Run `init_backend()`, once in this process. Only workers call it (S7.4).

    Raises:
        PhaseFailed: it failed before in this process; it is never tried again.
        BaseException: what selecting the platform or its `init_backend()` raises.
    """
    _runtime.init_backend()


class _Face(ModuleType):
    """Lets tests set and restore the state that upstream keeps in this module's globals."""

    @property
    def current_platform(self) -> Platform:
        return _resolve_current_platform()

    @property
    def _current_platform(self) -> Platform | None:
        return _resolve_current_platform() if _runtime.selected else None

    @_current_platform.setter
    def _current_platform(self, platform: Platform | None) -> None:
        _runtime.platform = platform

    @_current_platform.deleter
    def _current_platform(self) -> None:
        _runtime.platform = None

    @property
    def _current_platform_selection(self) -> _PlatformSelection | None:
        return _selection(_runtime.resolution) if _runtime.resolution is not None else None

    @_current_platform_selection.setter
    def _current_platform_selection(self, selection: None) -> None:
        _runtime.resolution = None

    @property
    def _backend_init_done(self) -> bool:
        return _runtime.initialising.state not in (State.NOT_STARTED, State.RUNNING)

    @_backend_init_done.setter
    def _backend_init_done(self, done: bool) -> None:
        if not done:
            _runtime.reset_backend()

    @property
    def _backend_init_error(self) -> BaseException | None:
        return _runtime.initialising.error

    @_backend_init_error.setter
    def _backend_init_error(self, error: BaseException | None) -> None:
        _runtime.initialising.error = error


sys.modules[__name__].__class__ = _Face
