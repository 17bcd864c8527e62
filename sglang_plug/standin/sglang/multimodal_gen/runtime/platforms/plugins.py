"""The diffusion hook API and its two phases: `load_plugins()` registers, `apply_plugin_hooks()` resolves targets and patches.

A face over the core's diffusion runtime, in the parts that upstream's tests take hold of; each looks the others up in this module at
call time. (`sglang.multimodal_gen.plugins` is the entry-point group, not a module.) Source: S5, S6, S9.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from sglang_plug.core import entrypoints
from sglang_plug.core.entrypoints import Candidate
from sglang_plug.core.gate import Once as _Once
from sglang_plug.core.gate import State as _OnceState
from sglang_plug.core.hooktypes import HookSource, HookType
from sglang_plug.core.hooktypes import current_source as _current_plugin_source
from sglang_plug.core.process import diffusion as _runtime
from sglang_plug.core.resolution import Resolution
from sglang_plug.core.selection import Choice, plugins_to_load

from ....srt.plugins.hook_registry import HookRegistry as _SrtHookRegistry
from . import PLATFORM_PLUGINS_GROUP, get_selected_platform_dist

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "GENERAL_PLUGINS_GROUP",
    "HookRegistry",
    "HookSource",
    "HookType",
    "_Once",
    "_OnceState",
    "_current_plugin_source",
    "apply_plugin_hooks",
    "load_plugins",
    "plugin_hook",
]

GENERAL_PLUGINS_GROUP = _runtime.policy.hook_group
_plugin_registration = _runtime.loading
_hook_application = _runtime.applying
_required_dist: str | None = None


class HookRegistry(_SrtHookRegistry):
    """The hooks of the diffusion runtime in this process; SRT has its own."""

    _registry = _runtime.hooks
    _hooks = _registry.hooks
    _patched = _registry.patched


def plugin_hook(target: str, type: HookType = HookType.AFTER) -> Callable[[Any], Any]:  # noqa: A002 - upstream's name
    """Return a decorator that registers its function or class and returns it unchanged."""

    def keep(hook: Any) -> Any:
        HookRegistry.register(target, hook, type)
        return hook

    return keep


def load_plugins() -> None:
    """Import and run the diffusion plugins, once in this process. Registers only: no target is imported.

    Raises:
        PhaseFailed: it failed before in this process.
        BaseException: what a plugin of the selected platform's distribution raises.
    """
    _runtime.load_plugins()


def apply_plugin_hooks() -> None:
    """Resolve targets and patch them, once in this process; registers first where that has not been done.

    Raises:
        PhaseFailed: it, or the registration before it, failed before in this process.
        RuntimeError: a hook of the selected platform's own distribution cannot be applied.
        BaseException: what such a plugin raises.
    """
    _runtime.apply_plugin_hooks()


def _load() -> None:
    global _required_dist  # noqa: PLW0603 - where upstream keeps it
    _required_dist = _runtime.required_dist = _register_plugins_once()


def _apply() -> None:
    HookRegistry.apply_hooks()
    if _required_dist:
        _require_hooks_applied(_required_dist)


def _register_plugins_once() -> str | None:
    plugins = _discover()
    required = get_selected_platform_dist() if plugins else None
    for name, (callback, dist) in plugins.items():
        candidate = Candidate(name, "", GENERAL_PLUGINS_GROUP or "", dist)
        _runtime.run_plugin(Choice(candidate, "load", "", required is not None and dist == required), callback)
    return required


def _get_excluded_dists() -> set[str]:
    selected = get_selected_platform_dist()
    platforms = entrypoints.installed(PLATFORM_PLUGINS_GROUP or "", entry_points)
    return {candidate.dist for candidate in platforms if candidate.dist} - {selected}


def _discover() -> dict[str, tuple[Callable[[], Any], str | None]]:
    candidates = entrypoints.installed(GENERAL_PLUGINS_GROUP or "", entry_points)
    if not candidates:
        return {}  # and the platform need not be known
    excluded = [Candidate("", "", PLATFORM_PLUGINS_GROUP or "", dist) for dist in _get_excluded_dists()]
    required = get_selected_platform_dist()
    resolution = Resolution(_runtime.policy.runtime, "plugin" if required else "builtin", dist=required)
    choices = _runtime.admit(plugins_to_load(_runtime.policy, _runtime.settings(), candidates, excluded, resolution))
    loaded = _runtime.import_plugins(choices)
    return {name: (callback, choice.candidate.dist) for name, (callback, choice) in loaded.items()}


def _require_hooks_applied(required_dist: str) -> None:
    _runtime.require_applied(required_dist)


def _discard_hooks_from_source(source: HookSource) -> None:
    _runtime.hooks.discard(source)


def _reset_lifecycle_for_tests() -> None:
    global _required_dist  # noqa: PLW0603
    _required_dist = None
    _runtime.reset_plugins()


_runtime.load = _load
_runtime.apply = _apply
