"""One runtime's platform in one process: the chain walked with real effects, and its answer imported, constructed and kept (S3, S4).

Knows nothing of hook plugins.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, cast

from sglang_plug.core import entrypoints, environ
from sglang_plug.core.gate import Once
from sglang_plug.errors import PhaseFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.core.environ import Settings
    from sglang_plug.core.policy import Policy
    from sglang_plug.core.resolution import Resolution
    from sglang_plug.core.selection import Activation, Detection


class Selector:
    """Selects the platform of one runtime, on first use.

    Args:
        policy: the rules.

    Attributes:
        entry_points: enumerates a group; None for the installed metadata.
        settings: reads the environment.
        detect: tells whether a built-in's hardware is there; None for this machine's.
        load_class: imports a platform class: `(qualname, external) -> class`.
        create: makes the platform, when it is selected.
        resolution: how the current platform was chosen; None before that.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.entry_points: Callable[..., Iterable[Any]] | None = None
        self.settings: Callable[[], Settings] = environ.read
        self.detect: Callable[[str], Detection] | None = None
        self.load_class: Callable[[str, bool], type[Any]] = self._load_class
        self.create: Callable[[], tuple[Any, Resolution]] = self.create_platform
        self.resolution: Resolution | None = None
        self._platform: Any = None
        self._raised: BaseException | None = None
        self._imported: dict[int, Callable[[], Any]] = {}  # by the identity of what was imported
        # Selecting may be tried again: nothing has been changed by an attempt that failed (upstream does the same).
        self._selecting = Once(f"{policy.label} platform selection", final=False)
        self._platform_log = logging.getLogger(policy.loggers.platforms)

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
            self.announce(self._platform_log, group, candidates)
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
        from sglang_plug.core.platforms import facts_of
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

    @staticmethod
    def announce(log: logging.Logger, group: str | None, candidates: tuple[Candidate, ...]) -> None:
        """Say what is installed."""
        log.info("Available plugins for group %s:", group)
        for candidate in candidates:
            log.info("  - %s -> %s", candidate.name, candidate.value)
