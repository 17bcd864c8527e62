"""One runtime in one process: select, load, apply, init, each behind its gate (S5, S6). Owns their order and whose failure counts."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, cast

from sglang_plug.core import entrypoints, environ
from sglang_plug.core.gate import Once
from sglang_plug.core.hooks import HookRegistry
from sglang_plug.core.hooktypes import HookSource, current_source
from sglang_plug.errors import EntryPointConflict, HookError, PhaseFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.core.environ import Settings
    from sglang_plug.core.policy import Policy
    from sglang_plug.core.resolution import Resolution
    from sglang_plug.core.selection import Activation, Choice, Detection, ErrorFacts


class Runtime:
    """The plugin system of one runtime in this process.

    A face that has its own way to metadata, variables, hardware, classes or phases (because its tests patch them there) sets the
    attributes below once; each is called anew whenever it is needed.

    Args:
        policy: the rules.

    Attributes:
        entry_points: enumerates a group; None for the installed metadata.
        settings: reads the environment.
        detect: tells whether a built-in's hardware is there; None for this machine's.
        load_class: imports a platform class: `(qualname, external) -> class`.
        apply_hooks: patches what is registered; the registry's own method by default.
        create: makes the platform, when it is selected.
        load: what happens behind the gate of `load_plugins`.
        apply: what happens behind the gate of `apply_plugin_hooks`.
        hooks: the registry.
        resolution: how the current platform was chosen; None before that.
        required_dist: the distribution whose plugins must work; None where there is none.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.hooks = HookRegistry(policy.loggers.hooks)
        self.entry_points: Callable[..., Iterable[Any]] | None = None
        self.settings: Callable[[], Settings] = environ.read
        self.detect: Callable[[str], Detection] | None = None
        self.load_class: Callable[[str, bool], type[Any]] = self._load_class
        self.apply_hooks: Callable[[], None] = self.hooks.apply
        self.create: Callable[[], tuple[Any, Resolution]] = self.create_platform
        self.load: Callable[[], object] = self._load
        self.apply: Callable[[], object] = self._apply
        self.resolution: Resolution | None = None
        self.required_dist: str | None = None
        self._platform: Any = None
        self._raised: BaseException | None = None
        self._imported: dict[int, Callable[[], Any]] = {}  # by the identity of what was imported
        # Selecting may be tried again: nothing has been changed by an attempt that failed (upstream does the same).
        self._selecting = Once(f"{policy.label} platform selection", final=False)
        self.loading = Once(f"{policy.label} plugin registration")
        self.applying = Once(f"{policy.label} hook application")
        self.initialising = Once(f"{policy.label} platform backend initialization")
        self._platform_log = logging.getLogger(policy.loggers.platforms)
        self._plugin_log = logging.getLogger(policy.loggers.plugins)

    # -- select

    @property
    def platform(self) -> Any:
        """The current platform, selected on first use.

        Raises:
            PlatformError: the chain ends in an error.
            PhaseFailed: read from inside a callback while the platform is being selected.
            Exception: what the selected plugin raises, unchanged.
        """
        if self._platform is None and not self._selecting.run(self._select):
            message = "current_platform is read while it is being selected"
            hint = "an activate() callback and the module of a platform class must not use current_platform"
            raise PhaseFailed(message, subject=self.policy.runtime, hint=hint)
        return self._platform

    @platform.setter
    def platform(self, platform: Any) -> None:
        """Set or forget the platform, as tests do."""
        self._platform = platform
        if platform is None:
            self.resolution = None
            self._selecting.reset()

    @property
    def selected(self) -> bool:
        """Whether the platform has been selected; asking does not select it."""
        return self._platform is not None

    def resolve(self) -> Resolution:
        """Walk the chain with real effects and return its answer; neither cached nor raised."""
        self._raised = None
        self._imported.clear()
        settings = self.settings()
        from sglang_plug.core import detect, selection

        probe = self.detect or detect.detector(self.policy, settings)
        candidates = self._platform_candidates()
        try:
            return selection.select(self.policy, settings, candidates, activate=self._activate, detect=probe, load=self._import)
        finally:
            self._imported.clear()

    def _platform_candidates(self) -> Iterator[Candidate]:
        """Enumerate when the chain asks, which it does not where the selector names a built-in."""
        group = self.policy.platform_group
        candidates = self.installed(group) if group else ()
        if candidates:
            self._announce(self._platform_log, group, candidates)
        yield from candidates

    def resolve_or_raise(self) -> Resolution:
        """Resolve, uncached, and raise what ends in an error as SGLang does.

        Raises:
            PlatformError: the chain ends in an error.
            Exception: what the selected plugin raises, unchanged.
        """
        resolution = self.resolve()
        if resolution.error is None:
            return resolution
        raised, self._raised = self._raised, None
        if resolution.steps[-1].data.get("kind") == "raised" and raised is not None:
            raise raised
        from sglang_plug.core import platforms

        raise platforms.error_of(resolution)

    def create_platform(self, resolution: Resolution | None = None) -> tuple[Any, Resolution]:
        """Resolve, import and construct the platform, uncached.

        Args:
            resolution: what the chain answered, where that is known.

        Raises:
            PlatformError: the chain ends in an error, or the class is unusable.
            Exception: what the selected plugin raises, unchanged.
        """
        from sglang_plug.core import platforms

        resolution = resolution or self.resolve_or_raise()
        external = resolution.outcome == "plugin"
        qualname = cast("str", resolution.qualname)
        if external:
            self._platform_log.info("OOT platform plugin activated: %s -> %s", resolution.name, qualname)
        platform = self.load_class(qualname, external)()
        if external:
            platforms.check_instance(self.policy, qualname, platform)
        return platform, resolution

    def selected_dist(self) -> str | None:
        """Return the distribution of the selected external platform; None where a built-in is selected."""
        return (self.platform is not None and self.resolution is not None and self.resolution.dist) or None

    def installed(self, group: str) -> tuple[Candidate, ...]:
        """Return the candidates of `group` in this process."""
        return entrypoints.installed(group, self.entry_points)

    def _select(self) -> None:
        platform, resolution = self.create()
        self._platform, self.resolution = platform, resolution  # together, and only once both are whole

    def _load_class(self, qualname: str, external: bool) -> type[Any]:
        from sglang_plug.core.platforms import load_class

        return load_class(self.policy, qualname, external=external)

    def _import(self, candidate: Candidate) -> None:
        """Import a platform plugin ahead of its callback, and keep what came of it."""
        try:
            callback = entrypoints.load(candidate)
        except Exception as error:  # noqa: BLE001 -- raised again when its turn comes to be called
            failed = error

            def again() -> object:
                raise failed

            self._imported[id(candidate)] = again
        else:
            self._imported[id(candidate)] = lambda: callback

    def _activate(self, candidate: Candidate) -> Activation:
        from sglang_plug.core.selection import Activation

        begin = time.perf_counter()
        phase = "load"
        try:
            callback = self._imported[id(candidate)]() if id(candidate) in self._imported else entrypoints.load(candidate)
            phase = "call"
            returned = callback()
        except Exception as error:  # noqa: BLE001 -- whatever a stranger raises is an answer; the chain decides what it means
            self._raised = error
            self._platform_log.error("Failed to activate platform plugin: %s", candidate.name, exc_info=error)
            return Activation(None, facts_of(error, phase), seconds=time.perf_counter() - begin, exception=error)
        text = returned if isinstance(returned, str) else None
        return Activation(text, kind=type(returned).__name__, seconds=time.perf_counter() - begin)

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
            self._announce(self._plugin_log, group, candidates)
            loaded = self.import_plugins(self._choose(candidates))
            for callback, choice in loaded.values():
                self.run_plugin(choice, callback)
        if self.policy.applies_on_load:
            self.apply_hooks()

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

    @staticmethod
    def _announce(log: logging.Logger, group: str | None, candidates: tuple[Candidate, ...]) -> None:
        log.info("Available plugins for group %s:", group)
        for candidate in candidates:
            log.info("  - %s -> %s", candidate.name, candidate.value)


class _RequiredHooks(HookError, RuntimeError):
    """A hook of the selected platform's package cannot be applied (RuntimeError upstream)."""


def facts_of(error: BaseException, phase: str = "call") -> ErrorFacts:
    """Return an exception in words, with its root cause."""
    from sglang_plug.core import platforms
    from sglang_plug.core.selection import ErrorFacts

    root = platforms.root_cause(error)
    cause = None if root is error else f"{type(root).__name__}: {root}"
    return ErrorFacts(type(error).__name__, str(error), cause, platforms.place_of(root), phase)


def _source(candidate: Candidate) -> HookSource:
    return HookSource(candidate.name, candidate.dist)
