"""The hook API of the SRT runtime: a face of the core's registry, under upstream's names."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from sglang_plug.core import process
from sglang_plug.core.hooktypes import HookSource, HookType
from sglang_plug.core.hooktypes import current_source as _current_plugin_source
from sglang_plug.standin.missing import Missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.core.hooks import HookRegistry as Registry
    from sglang_plug.core.hooks import Undo

__all__ = ["HookRegistry", "HookSource", "HookType", "_current_plugin_source", "plugin_hook"]

logger = logging.getLogger(process.srt.policy.loggers.hooks)
logger.addFilter(Missing())


class HookRegistry:
    """This process's SRT hooks. Register in a plugin's callback; `load_plugins()` applies."""

    _registry: ClassVar[Registry] = process.srt.hooks
    _hooks: ClassVar[dict[str, list[Any]]] = _registry.hooks
    _patched: ClassVar[set[str]] = _registry.patched

    @classmethod
    def register(
        cls, target: str, hook: Callable[..., Any], hook_type: HookType = HookType.AFTER, *, source: HookSource | None = None
    ) -> Undo:
        """Keep `hook` for `target` and return the way back. Nothing is imported or patched yet.

        Raises:
            TypeError: the hook does not fit its type.
        """
        return cls._registry.register(target, hook, hook_type, source=source)

    @classmethod
    def is_hook_applied(cls, target: str, callback: Callable[..., Any], hook_type: HookType = HookType.AFTER) -> bool:
        """Tell whether `callback` stands on `target` as a hook of this type (newer than 0.5.23)."""
        return cls._registry.is_applied(target, callback, hook_type)

    @classmethod
    def apply_hooks(cls) -> None:
        """Patch every target that is not patched yet; a target that fails is logged and left untouched."""
        cls._registry.apply()

    @classmethod
    def reset(cls) -> None:
        """Forget all hooks, for tests; patches stay."""
        cls._registry.reset()


def plugin_hook(target: str, type: HookType = HookType.AFTER) -> Callable[[Any], Any]:  # noqa: A002 - upstream's name
    """Return a decorator that registers its function or class and returns it unchanged."""
    return process.srt.hooks.decorator(target, type)
