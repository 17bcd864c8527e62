"""The chain: which platform a runtime uses. Pure: effects come in as arguments."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from sglang_plug.core.admission import Choice, plugins_to_load
from sglang_plug.core.detect import Detection
from sglang_plug.core.resolution import Failure, Resolution, Step
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.core.environ import Settings
    from sglang_plug.core.policy import Builtin, Policy

__all__ = ["GOES_ON", "Activation", "Choice", "Detection", "ErrorFacts", "plugins_to_load", "select"]

GOES_ON = "; the runtime logs this and goes on"  # ends the reason of a platform plugin that failed and is passed over
# What upstream's resolver takes for a name: dotted identifiers, optionally a colon before the attributes.
_NAME = re.compile(r"(?!\d)\w+(?:\.(?!\d)\w+)*(?::(?:(?!\d)\w+(?:\.(?!\d)\w+)*)?)?")


@dataclass(frozen=True)
class ErrorFacts:
    """A stranger's exception in words.

    Attributes:
        type: the exception's class name.
        message: its text.
        cause: the root cause, where it is another exception.
        where: `file:line` of the deepest frame in the plugin.
        phase: `load` where importing the entry point failed, `call` where its callback did.
    """

    type: str
    message: str
    cause: str | None = None
    where: str | None = None
    phase: str = "call"

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True)
class Activation:
    """What one platform callback did.

    Attributes:
        returned: its text, or None.
        error: why it failed to load or raised.
        kind: the type name of what it returned (`str`, `NoneType`, `type`, …); worked out from `returned` where left out.
        seconds: how long it took.
        exception: the exception itself, where the callback ran in this process.
        fatal: the process ends with it in every mode: it exited, crashed, hung, or raised what `except Exception` does not catch.
    """

    returned: str | None = None
    error: ErrorFacts | None = None
    kind: str = ""
    seconds: float | None = None
    exception: BaseException | None = None
    fatal: bool = False

    def __post_init__(self) -> None:
        if not self.kind:
            object.__setattr__(self, "kind", "NoneType" if self.returned is None else "str")

    @property
    def active(self) -> bool:
        """Whether the callback returned something, be it right or wrong."""
        return self.error is None and self.kind != "NoneType"


def select(
    policy: Policy,
    settings: Settings,
    candidates: Iterable[Candidate],
    *,
    activate: Callable[[Candidate], Activation],
    detect: Callable[[str], Detection],
    load: Callable[[Candidate], object] | None = None,
) -> Resolution:
    """Walk the chain and return its answer with the trail that led there; an error is an answer too.

    Args:
        policy: the runtime's rules.
        settings: what the environment asks for.
        candidates: the installed platform entry points, in enumeration order; not enumerated where the selector names a built-in.
        activate: loads and calls one candidate; called only for those that the runtime would import.
        detect: tells whether a built-in's hardware is there; called by the built-in's name, in order, until one is.
        load: imports one candidate. Called for every candidate that is asked, before the first callback, where the policy imports first.
    """
    walk = _Walk(policy, activate, detect, load)
    try:
        return walk.run(settings, candidates if policy.platform_group else ())
    except _Stopped as stop:
        return Resolution(policy.runtime, "error", steps=tuple(walk.steps), error=stop.failure)


class _Stopped(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _Walk:
    """One walk along the chain, writing down its steps."""

    def __init__(
        self,
        policy: Policy,
        activate: Callable[[Candidate], Activation],
        detect: Callable[[str], Detection],
        load: Callable[[Candidate], object] | None,
    ) -> None:
        self.policy = policy
        self.activate = activate
        self.detect = detect
        self.load = load if policy.imports_first else None
        self.steps: list[Step] = []
        self.strict = not policy.open_activation
        self.asked: dict[str, list[Candidate]] = {}

    def run(self, settings: Settings, candidates: Iterable[Candidate]) -> Resolution:
        policy = self.policy
        written = settings.selector(policy.selector)
        selected = written.strip() if written and policy.trims_selector else written
        if policy.selector and not selected:
            self.note("selector", policy.selector, "unset", f"{policy.selector} is not set, so every installed platform is asked")
        if not selected:
            return self.automatic(settings, tuple(candidates))
        if selected.lower() in policy.aliases:
            return self.alias(selected.lower())
        return self.explicit(selected, tuple(candidates))

    def note(self, rule: str, subject: str, verdict: str, why: str, seconds: float | None = None, **data: Any) -> None:
        self.steps.append(Step(rule, subject, verdict, why, seconds, data))

    def stop(
        self,
        rule: str,
        subject: str,
        kind: str,
        failure: Failure,
        *,
        verdict: str = "failed",
        why: str | None = None,
        seconds: float | None = None,
    ) -> NoReturn:
        self.note(rule, subject, verdict, why or failure.message, seconds, kind=kind)
        raise _Stopped(failure)

    # -- an explicit selection

    def alias(self, name: str) -> Resolution:
        builtin = self.policy.builtin(name)
        self.note("selector", f"{self.policy.selector}={name}", "chosen", "the selector names a built-in platform; hardware is not probed")
        return self.builtin(builtin)

    def explicit(self, selected: str, candidates: tuple[Candidate, ...]) -> Resolution:
        policy = self.policy
        subject = f"{policy.selector}={selected}"
        matches = [candidate for candidate in candidates if candidate.name == selected]
        if not matches:
            self.stop("selector", subject, "unknown", self.unknown(selected, candidates))
        self.note("selector", subject, "chosen", "only the selected platform is imported")
        self.strict = True
        for candidate in candidates:
            if candidate.name != selected:
                self.note("selector", candidate.name, "skipped", "not selected; never imported", dist=candidate.dist)
        self.validate(matches)
        chosen = matches[-1]
        for loser in matches[:-1]:
            self.note("names", loser.name, "skipped", f"{chosen.dist} has an entry point of the same name and wins", dist=loser.dist)
        outcome = self.call(chosen)
        if not outcome.active:
            message = f"Platform plugin {selected!r} is installed but activate() returned None (hardware not available on this machine?)."
            hint = f"check the device driver of {selected}, or type: unset {policy.selector}"
            self.stop("activate", selected, "unavailable", Failure("RuntimeError", message, hint=hint))
        return self.plugin(chosen, outcome)

    def unknown(self, selected: str, candidates: tuple[Candidate, ...]) -> Failure:
        policy = self.policy
        # SRT lists each name once, diffusion each entry point.
        names = [c.name for c in candidates] if policy.unique_names else list(dict.fromkeys(c.name for c in candidates))
        available = ", ".join(f"{name!r}" for name in names) or "none"
        if policy.platform_group is None:
            message = f"Unsupported {policy.selector}={selected!r}"
        elif policy.unknown_selector == "ValueError":
            message = (
                f"Unsupported {policy.selector}={selected!r}; entry point not found in group {policy.platform_group!r} "
                f"(available: {available})."
            )
        else:
            message = (
                f"{policy.selector}={selected!r} not found in discovered platform plugins (available: {available}). "
                "Install the package that provides it, so that its entry point is registered."
            )
        return Failure(policy.unknown_selector, message, hint=_nearest(selected, [*names, *sorted(policy.aliases)], policy.selector))

    # -- automatic selection

    def automatic(self, settings: Settings, candidates: tuple[Candidate, ...]) -> Resolution:
        self.validate(candidates)
        asked = self.asked = self.allowed(settings, candidates)
        active: dict[str, tuple[Candidate, Activation]] = {}
        for name, group in asked.items():
            outcome, chosen = self.last(group)
            if outcome.active:
                active[name] = (chosen, outcome)
        if len(active) > 1:
            names = ", ".join(f"{name!r}" for name in active)
            message = f"Multiple platform plugins activated: {names}. Set {self.policy.selector} to select one."
            hint = f"export {self.policy.selector}={next(iter(active))}"
            self.stop("activate", names, "ambiguous", Failure("RuntimeError", message, hint=hint))
        if active:
            return self.plugin(*next(iter(active.values())))
        return self.fallback()

    def allowed(self, settings: Settings, candidates: tuple[Candidate, ...]) -> dict[str, list[Candidate]]:
        asked: dict[str, list[Candidate]] = {}
        for candidate in candidates:
            if self.policy.allowlist_filters_platforms and settings.plugins is not None and candidate.name not in settings.plugins:
                self.note("allowlist", candidate.name, "skipped", f"not in {self.policy.allowlist}; never imported", dist=candidate.dist)
            else:
                asked.setdefault(candidate.name, []).append(candidate)
                if self.load is not None:
                    self.load(candidate)
        return asked

    def last(self, group: list[Candidate]) -> tuple[Activation, Candidate]:
        """Return what the last loadable of equally named candidates did."""
        for last in range(len(group) - 1, -1, -1):
            chosen = group[last]
            outcome = self.call(chosen)
            if outcome.error is None or outcome.error.phase != "load":
                break
        for other in group[:last]:
            why = f"the entry point of {chosen.dist} has the same name and wins; this one is imported, never called"
            self.note("names", other.name, "skipped", why, dist=other.dist)
        return outcome, chosen

    def fallback(self) -> Resolution:
        for builtin in self.policy.builtins:
            found = self.detect(builtin.name)
            self.note("detect", builtin.name, "present" if found.present else "absent", found.why)
            if found.present:
                return self.builtin(builtin)
        if self.policy.base is None:
            failure = Failure("RuntimeError", "No platform plugin found. Please check your installation.")
            self.stop("fallback", self.policy.runtime, "nothing", failure)
        return self.builtin(self.policy.base)

    # -- shared

    def validate(self, candidates: Iterable[Candidate]) -> None:
        if not self.policy.unique_names:
            return
        counts = Counter(candidate.name for candidate in candidates)
        twice = sorted(name for name, count in counts.items() if count > 1)
        reserved = sorted(name for name in counts if name.lower() in self.policy.reserved)
        for offenders, reason, hint in (
            (twice, "entry-point names must be unique", "uninstall one of the packages"),
            (reserved, "entry points cannot use built-in names", "rename the entry point"),
        ):
            if offenders:
                names = ", ".join(f"{name!r}" for name in offenders)
                failure = Failure("RuntimeError", f"{self.policy.label} platform {reason}: {names}", hint=hint)
                self.stop("names", names, "conflict", failure, verdict="refused")

    def call(self, candidate: Candidate) -> Activation:
        """Activate one candidate and note what came of it; stop where the runtime would abort."""
        outcome = self.activate(candidate)
        name, dist, error = candidate.name, candidate.dist, outcome.error
        if error is not None:
            doing = "import" if error.phase == "load" else "activate()"
            if self.strict or outcome.fatal:
                failure = Failure(error.type, error.message, cause=error.cause or str(error), hint=self.way_out(name))
                why = error.message if error.message.startswith((doing, "its import")) else f"{doing} failed: {error.cause or error}"
                self.stop("activate", name, "raised", failure, why=why, seconds=outcome.seconds)
            why = f"{doing} failed: {error.cause or error}{GOES_ON}"
            self.note("activate", name, "failed", why, outcome.seconds, dist=dist, error=error.type)
        elif not outcome.active:
            self.note("activate", name, "inactive", "activate() returned None: its hardware is absent", outcome.seconds, dist=dist)
        elif self.policy.checks_return and not (outcome.returned or "").strip():
            message = f"{self.policy.label} platform plugin {name!r} must return a non-empty class qualname or None"
            hint = 'return "package.module:Class" from activate()'
            self.stop("activate", name, "bad-return", Failure("TypeError", message, cause=f"it returned {a(str(outcome.kind))}", hint=hint))
        else:
            shown = outcome.returned if outcome.returned is not None else a(str(outcome.kind))
            self.note("activate", name, "active", f"activate() returned {shown}", outcome.seconds, dist=dist, qualname=outcome.returned)
        return outcome

    def way_out(self, name: str) -> str:
        """Return what to do about a platform whose failure ends the runtime."""
        other = next((other for other in self.asked if other != name), None)
        without = f"to go on without it: export {self.policy.selector}={other}; " if other and self.policy.selector else ""
        return f"{without}where its device is absent, its callback must return None; sglang-plug doctor {name} says what to correct"

    def plugin(self, candidate: Candidate, outcome: Activation) -> Resolution:
        name, qualname = candidate.name, outcome.returned
        hint = 'return "package.module:Class" from activate()'
        if qualname is None:
            expected = f"expected string or bytes-like object, got {outcome.kind!r} from {name!r}"
            if outcome.kind == "bytes":
                expected = f"cannot use a string pattern on a bytes-like object, which {name!r} returned"
            failure = Failure("TypeError", expected, hint=hint)
            self.stop("class", name, "bad-return", failure)
        if self.policy.trims_selector:
            qualname = qualname.strip()
        bare = qualname.removesuffix("\n")  # upstream's resolver ends its pattern with `$`, which lets one line break pass
        if not _NAME.fullmatch(bare):
            self.stop("class", name, "bad-name", Failure("ValueError", f"invalid format: {qualname!r}", hint=hint))
        if bare != qualname and ":" not in qualname:  # … and then looks for a dotted name's last part as it is written
            self.stop("class", name, "bad-name", Failure("AttributeError", f"{qualname!r} ends with a line break", hint=hint))
        qualname = bare
        self.note("class", qualname, "chosen", f"the platform of {candidate.dist or name}", dist=candidate.dist)
        return Resolution(self.policy.runtime, "plugin", name, qualname, candidate.dist, tuple(self.steps))

    def builtin(self, builtin: Builtin) -> Resolution:
        self.note("fallback", builtin.name, "chosen", f"{builtin.qualname} ships with SGLang")
        return Resolution(self.policy.runtime, "builtin", builtin.name, builtin.qualname, None, tuple(self.steps))


def _nearest(selected: str, names: list[str], variable: str | None) -> str:
    from difflib import get_close_matches

    folded = {name.strip().lower(): name for name in names}
    close = get_close_matches(selected.strip().lower(), folded, n=1)
    if close:
        return f"did you mean {folded[close[0]]!r}? type: export {variable}={folded[close[0]]}"
    return "see what is installed: sglang-plug list"
