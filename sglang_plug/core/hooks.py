"""A runtime's hooks: registered, undone, applied. Owns the registry's rules and messages (S9); the patching itself is `core.patching`."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from sglang_plug.core import objects
from sglang_plug.core.hooktypes import Hook, HookSource, HookType, current_source
from sglang_plug.core.patching import Patch, Session
from sglang_plug.core.wrapping import chain
from sglang_plug.errors import HookTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Hook", "HookRegistry", "HookSource", "HookType", "Undo", "current_source"]


class Undo:
    """The way back of one registration. Calling it again does nothing."""

    def __init__(self, registry: HookRegistry, target: str, hook: Hook) -> None:
        self._registry: HookRegistry | None = registry
        self.target = target
        self.hook = hook

    def __call__(self) -> None:
        """Forget the hook; where its target is patched, patch it anew without it."""
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.withdraw(self.target, self.hook)


class HookRegistry:
    """The hooks of one runtime in this process.

    Attributes:
        hooks: target -> its hooks in registration order. Targets are dotted: both spellings are one key.
        patched: the targets that are patched.
        patches: target -> its patch.
        applied: target -> the hooks that its patch runs.
        failures: target -> why its last application failed.
    """

    def __init__(self, logger: str | logging.Logger = "sglang.srt.plugins.hook_registry") -> None:
        self.hooks: dict[str, list[Hook]] = {}
        self.patched: set[str] = set()
        self.patches: dict[str, Patch] = {}
        self.applied: dict[str, tuple[Hook, ...]] = {}
        self.failures: dict[str, Exception] = {}
        self._log = logging.getLogger(logger) if isinstance(logger, str) else logger
        self._lock = threading.Lock()

    def register(
        self, target: str, hook: Callable[..., Any], hook_type: HookType = HookType.AFTER, *, source: HookSource | None = None
    ) -> Undo:
        """Keep `hook` for `target` and return the way back. Nothing is imported or patched yet.

        Args:
            target: what to hook, dotted or with a colon.
            hook: a function, or with REPLACE a function or class.
            hook_type: how it meets the target.
            source: who registers; by default the plugin whose callback is running.

        Raises:
            HookTypeError: the hook does not fit its type; nothing is registered then.
        """
        _check(target, hook, hook_type)
        key = objects.dotted(target)
        entry = Hook(hook_type, hook, source or current_source.get())
        with self._lock:
            others = self.hooks.setdefault(key, [])
            earlier = [other for other in others if other.type is HookType.REPLACE]
            others.append(entry)
        if hook_type is HookType.REPLACE and earlier:
            self._log.warning(
                "Multiple REPLACE hooks on '%s': previous (%s [%s]) will be overridden by (%s [%s]). "
                "The last registered REPLACE takes effect.",
                key,
                _name(earlier[-1].function),
                earlier[-1].origin,
                _name(hook),
                entry.origin,
            )
        self._log.debug("Registered %s hook on %s [%s]", hook_type.value, key, entry.origin)
        return Undo(self, key, entry)

    def decorator(self, target: str, type: HookType = HookType.AFTER) -> Callable[[Any], Any]:  # noqa: A002 -- upstream's name
        """Return a decorator that registers its function or class and returns it unchanged.

        Raises:
            HookTypeError: as `register`, when it is put on something.
        """

        def keep(hook: Any) -> Any:
            self.register(target, hook, type)
            return hook

        return keep

    def withdraw(self, target: str, hook: Hook) -> None:
        """Forget one hook, and patch its target anew without it where it is patched, with every patch that stands on that one."""
        with self._lock:
            kept = self.hooks.get(target, [])
            index = next((index for index, other in enumerate(kept) if other is hook), None)
            if index is None:
                return
            del kept[index]
            if not kept:
                del self.hooks[target]
            above = self._standing_on(target) if target in self.patches else []
        taken = [(each, self.applied.pop(each)) for each in reversed(above) if self._unpatch(each)]
        for each, hooks in reversed(taken):
            self.apply([each], only=None if each == target else partial(_among, hooks))

    def _standing_on(self, target: str) -> list[str]:
        """Return the target and all that were patched later on top of its patch, in the order of application."""
        found: list[str] = []
        for name, patch in self.patches.items():
            below = (name.startswith(f"{other}.") or patch.place.original is self.patches[other].alias for other in found)
            if name == target or any(below):
                found.append(name)
        return found

    def _unpatch(self, target: str) -> bool:
        """Take a patch back, and tell whether its target is free to be patched anew."""
        free = self.patches.pop(target).revert()
        if free:
            self.patched.discard(target)
        return free

    def discard(self, source: HookSource) -> None:
        """Forget every hook that `source` registered and that is not applied yet."""
        with self._lock:
            for target in list(self.hooks):
                kept = [hook for hook in self.hooks[target] if hook.source != source]
                if kept:
                    self.hooks[target] = kept
                else:
                    del self.hooks[target]

    def apply(self, targets: Iterable[str] | None = None, *, only: Callable[[Hook], bool] | None = None) -> None:
        """Patch every target that is not patched yet; a target that fails is logged and left untouched.

        Targets whose class is replaced come first, then all by name, so that hooks on members land on the replacement.

        Args:
            targets: no others than these.
            only: no other hooks than those for which it is true.
        """
        wanted = None if targets is None else set(targets)
        session = Session()
        try:
            for target, hooks in sorted(self.hooks.items(), key=_order):
                if target in self.patched or (wanted is not None and target not in wanted):
                    continue
                try:
                    self._apply(session, target, [hook for hook in hooks if only is None or only(hook)])
                except Exception as error:  # noqa: BLE001 -- importing a target may raise anything; the others go on
                    self.failures[target] = error
                    self._log.exception("Failed to apply hooks to %s", target)
        finally:
            session.finish()

    def _apply(self, session: Session, target: str, hooks: list[Hook]) -> None:
        place = objects.locate(target, session)
        self._warn(place, hooks)
        patch = session.patch(place, chain(place.original, hooks))
        self.patched.add(target)
        self.patches[target] = patch
        self.applied[target] = tuple(hooks)
        self.failures.pop(target, None)
        sources = ", ".join(sorted({hook.origin for hook in hooks}))
        self._log.info("Applied %d hook(s) to %s (from: %s)", len(hooks), target, sources)

    def _warn(self, place: objects.Place, hooks: list[Hook]) -> None:
        """Say what is risky about these hooks on this place.

        Raises:
            HookTypeError: they cannot be applied to it at all.
        """
        target = place.text
        replaces = [hook for hook in hooks if hook.type is HookType.REPLACE]
        others = [hook for hook in hooks if hook.type is not HookType.REPLACE]
        if place.kind == "class" and others:
            got = others[0]
            message = (
                f"Target '{target}' is a class. Only HookType.REPLACE is allowed for class targets (got {got.type.value}). "
                f"To hook a method, use '{target}.<method_name>' instead."
            )
            raise HookTypeError(message, subject=target, cause=f"registered by {got.origin}", hint=f"hook {target}.__init__ instead")
        if place.kind == "value":
            self._log.warning("Target '%s' is a %s, not a function: it becomes one", target, type(place.original).__name__)
        replaced_class = target.rpartition(".")[0] in self.patched and isinstance(place.parent, type)
        if replaced_class and replaces and place.own:
            self._log.warning(
                "Method REPLACE on '%s' will override the class REPLACE's own implementation of '%s'. If this is unintended, remove "
                "the method REPLACE and change the replacement class, or wrap it with AROUND. (from: %s)",
                target,
                place.attribute,
                ", ".join(hook.origin for hook in replaces),
            )
        arounds = [hook for hook in hooks if hook.type is HookType.AROUND]
        if len(arounds) > 1:
            self._log.warning(
                "Multiple AROUND hooks on '%s' (%d hooks, from: %s). If any AROUND hook skips calling original_fn, "
                "inner hooks will be bypassed.",
                target,
                len(arounds),
                ", ".join(hook.origin for hook in arounds),
            )
        if replaces and others:
            kinds = ", ".join(sorted({hook.type.value for hook in others}))
            self._log.info("Target '%s' has both REPLACE and %s hooks: REPLACE is applied first, the others wrap it", target, kinds)

    def is_applied(self, target: str, function: Callable[..., Any], hook_type: HookType = HookType.AFTER) -> bool:
        """Tell whether `function` stands on `target` as a hook of this type: registered before its target was patched, and not undone."""
        hooks = self.applied.get(objects.dotted(target), ())
        return any(hook.function is function and hook.type is hook_type for hook in hooks)

    def revert(self) -> None:
        """Take every patch back, the last one first; the hooks stay registered."""
        for target, patch in reversed(list(self.patches.items())):
            patch.revert()
            self.patched.discard(target)
        self.patches.clear()
        self.applied.clear()

    def reset(self) -> None:
        """Forget hooks and bookkeeping and, as upstream does, leave the patches where they are."""
        self.hooks.clear()
        self.patched.clear()
        self.patches.clear()
        self.applied.clear()
        self.failures.clear()


def _check(target: str, hook: Any, hook_type: Any) -> None:
    if not isinstance(target, str):
        raise HookTypeError(f"a hook's target is a text, not {target!r}", hint='write it like "package.module.function"')
    if not isinstance(hook_type, HookType):
        kinds = ", ".join(f"HookType.{kind.name}" for kind in HookType)
        raise HookTypeError(f"Unknown hook type: {hook_type!r}", subject=target, hint=f"use one of {kinds}")
    if isinstance(hook, type) and hook_type is not HookType.REPLACE:
        message = (
            f"Class {hook.__name__} can only be used with HookType.REPLACE, got HookType.{hook_type.name}. "
            "Use a function for BEFORE/AFTER/AROUND hooks."
        )
        raise HookTypeError(message, subject=target, hint="register it with HookType.REPLACE")
    if not callable(hook):
        raise HookTypeError(f"a hook is a function or a class, not {hook!r}", subject=target)


def _order(item: tuple[str, list[Hook]]) -> tuple[bool, str]:
    target, hooks = item
    return (not any(hook.type is HookType.REPLACE and isinstance(hook.function, type) for hook in hooks), target)


def _among(hooks: tuple[Hook, ...], hook: Hook) -> bool:
    return any(hook is other for other in hooks)


def _name(hook: Any) -> str:
    return getattr(hook, "__qualname__", None) or repr(hook)
