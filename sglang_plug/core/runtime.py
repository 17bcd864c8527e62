"""One runtime in one process: select, load, apply, init, each behind its gate (S5, S6). Owns their order and whose failure counts."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from sglang_plug.core import entrypoints
from sglang_plug.core.gate import Once
from sglang_plug.core.hooks import HookRegistry
from sglang_plug.core.hooktypes import HookSource, current_source
from sglang_plug.core.selector import Selector
from sglang_plug.errors import EntryPointConflict, HookError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.core.policy import Policy
    from sglang_plug.core.selection import Choice


class Runtime(Selector):
    """The plugin system of one runtime in this process.

    A face that has its own way to metadata, variables, hardware, classes or phases (because its tests patch them there) sets the
    attributes here and of `Selector` once; each is called anew whenever it is needed.

    Args:
        policy: the rules.

    Attributes:
        load: what happens behind the gate of `load_plugins`.
        apply: what happens behind the gate of `apply_plugin_hooks`.
        hooks: the registry.
        required_dist: the distribution whose plugins must work; None where there is none.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.hooks = HookRegistry(policy.loggers.hooks)
        self.load: Callable[[], object] = self._load
        self.apply: Callable[[], object] = self._apply
        self.required_dist: str | None = None
        self.loading = Once(f"{policy.label} plugin registration")
        self.applying = Once(f"{policy.label} hook application")
        self.initialising = Once(f"{policy.label} platform backend initialization")
        self._plugin_log = logging.getLogger(policy.loggers.plugins)

    # -- load

    def load_plugins(self) -> bool:
        """Import and run the hook plugins, once; where the policy says so, apply their hooks at once.

        Returns:
            False to a call from inside a plugin's callback, which returns at once: the outer call finishes.

        Raises:
            PhaseFailed: it failed before in this process.
            BaseException: what a required plugin raises, or SystemExit and the like from any.
        """
        return self.loading.run(self.load)

    def _load(self) -> None:
        group = self.policy.hook_group
        candidates = self.installed(group) if group else ()
        if candidates:
            self.announce(self._plugin_log, group, candidates)
            loaded = self.import_plugins(self._choose(candidates))
            for callback, choice in loaded.values():
                self.run_plugin(choice, callback)
        if self.policy.applies_on_load:
            self.hooks.apply()

    def _choose(self, candidates: tuple[Candidate, ...]) -> tuple[Choice, ...]:
        from sglang_plug.core.selection import plugins_to_load

        resolution = None
        if self.policy.required_dist:
            self.required_dist = self.selected_dist()
            resolution = self.resolution
        known = self.installed(self.policy.platform_group) if self.policy.platform_group else ()
        return self.admit(plugins_to_load(self.policy, self.settings(), candidates, known, resolution))

    def admit(self, choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        """Say what is skipped, and return the choices.

        Raises:
            EntryPointConflict: names are equal where that is refused.
        """
        refused = sorted({choice.candidate.name for choice in choices if choice.verdict == "refused"})
        if refused:
            names = ", ".join(f"{name!r}" for name in refused)
            message = f"{self.policy.label} plugin entry-point names must be unique: {names}"
            raise EntryPointConflict(message, subject=names, hint="uninstall one of the packages")
        for choice in choices:
            if choice.verdict == "skipped":
                self._plugin_log.info("Skipping plugin %s (dist %s): %s", choice.candidate.name, choice.candidate.dist, choice.why)
        return choices

    def import_plugins(self, choices: tuple[Choice, ...]) -> dict[str, tuple[Callable[[], object], Choice]]:
        """Import every chosen plugin; of equal names the last that imports stays, at the place of the first.

        Raises:
            Exception: what the import of a required plugin raises.
        """
        loaded: dict[str, tuple[Callable[[], object], Choice]] = {}
        for choice in choices:
            if choice.verdict not in {"load", "shadowed"}:
                continue
            candidate = choice.candidate
            token = current_source.set(_source(candidate)) if self.policy.names_imports else None
            try:
                callback = entrypoints.load(candidate)
                if self.policy.discards_failed and not callable(callback):
                    raise TypeError(f"{self.policy.label} plugin {candidate.name!r} must resolve to a callable")
                loaded[candidate.name] = (callback, choice)
                self._plugin_log.info("Loaded plugin %s from group %s", candidate.name, candidate.group)
            except Exception as error:  # noqa: BLE001 -- a broken plugin must not take others down
                self._failed(choice, error, "Failed to load plugin %s from group %s", candidate.name, candidate.group)
            finally:
                if token is not None:
                    current_source.reset(token)
        return loaded

    def run_plugin(self, choice: Choice, callback: Callable[[], object]) -> None:
        """Call a plugin's callback as its source.

        Raises:
            Exception: what a required plugin raises.
            BaseException: SystemExit and the like from any.
        """
        token = current_source.set(_source(choice.candidate))
        try:
            callback()
            self._plugin_log.info("Executed general plugin: %s", choice.candidate.name)
        except Exception as error:  # noqa: BLE001 -- a broken plugin must not take others down
            self._failed(choice, error, "Failed to execute general plugin: %s", choice.candidate.name)
        finally:
            current_source.reset(token)

    def _failed(self, choice: Choice, error: Exception, message: str, *words: object) -> None:
        if self.policy.discards_failed:
            self.hooks.discard(_source(choice.candidate))
        if choice.required:
            raise error
        self._plugin_log.error(message, *words, exc_info=error)

    # -- apply

    def apply_plugin_hooks(self) -> None:
        """Resolve targets and patch them, once; registers first where that has not been done.

        Raises:
            PhaseFailed: it, or the registration before it, failed before in this process.
            HookError: a hook of the selected platform's own package cannot be applied.
            BaseException: what a required plugin raises.
        """
        if self.load_plugins():
            self.applying.run(self.apply)

    def _apply(self) -> None:
        self.hooks.apply()
        if self.required_dist is not None:
            self.require_applied(self.required_dist)

    def require_applied(self, dist: str) -> None:
        """See that every hook of the selected platform's package is applied, without those of others where they are in the way.

        Raises:
            HookError: one cannot be.
        """

        def own(hook: Any) -> bool:
            source = hook[2]  # a plain tuple where a test put one there
            return source is not None and bool(source.dist_name == dist)

        def missing() -> list[str]:
            return sorted(t for t, hooks in self.hooks.hooks.items() if t not in self.hooks.patched and any(own(hook) for hook in hooks))

        mixed = [target for target in missing() if not all(own(hook) for hook in self.hooks.hooks[target])]
        if mixed:
            self._plugin_log.error("Applying the hooks of %s alone on: %s", dist, ", ".join(mixed))
            self.hooks.apply(mixed, only=own)
        left = missing()
        if left:
            cause = self.hooks.failures.get(left[0])
            message = f"Selected platform package {dist!r} could not apply hooks on: {', '.join(left)}"
            raise _RequiredHooks(message, subject=left[0], cause=str(cause), hint="sglang-plug doctor") from cause

    # -- init

    def init_backend(self) -> None:
        """Run the platform's `init_backend()`, once.

        Raises:
            PhaseFailed: it failed before in this process.
            BaseException: what selecting the platform or its `init_backend()` raises.
        """
        self.initialising.run(self._init)

    def _init(self) -> None:
        self.platform.init_backend()

    def reset(self) -> None:
        """Forget everything but the patches, for tests."""
        self.platform = None
        self.required_dist = None
        self.reset_plugins()
        self.initialising.reset()
        self.hooks.reset()

    def reset_plugins(self) -> None:
        """Forget that plugins were loaded and hooks applied, for tests."""
        self.required_dist = None
        self.loading.reset()
        self.applying.reset()

    def reset_backend(self) -> None:
        """Forget that the backend was initialised, for tests."""
        self.initialising.reset()


class _RequiredHooks(HookError, RuntimeError):
    """A hook of the selected platform's package cannot be applied (RuntimeError upstream)."""


def _source(candidate: Candidate) -> HookSource:
    return HookSource(candidate.name, candidate.dist)
