"""The chain of `core` fed by a child: its effects are questions, each asked once. Owns what stands before and after the chain."""

from __future__ import annotations

import contextlib
import re
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_plug.core.entrypoints import Candidate
from sglang_plug.core.policy import POLICIES, policy
from sglang_plug.core.resolution import Failure, Resolution, Step
from sglang_plug.core.selection import Activation, Choice, Detection, plugins_to_load, select
from sglang_plug.errors import CatalogueError
from sglang_plug.probe import answers, location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sglang_plug.core.environ import Settings
    from sglang_plug.core.policy import Policy
    from sglang_plug.probe.parent import Probe

FINDER = str(Path(__file__).parent.parent / "standin" / "finder.py")
ACTIVATION_LIMIT = 20.0
IMPORT_LIMIT = 180.0
MEMORY_LIMIT = 4 << 30  # bytes of data
PATIENCE = 1.0  # seconds without a word
NOTHING: Mapping[str, Any] = {"imports": [], "platforms": {}, "verdict": {}, "plugins": {}, "together": {}}  # a rehearsal without facts
UNPROBED = {"cpu-engine", "always"}  # detectors that need no look at the machine


@dataclass(frozen=True)
class Limits:
    """How long and how large a stranger's code may get: seconds for one callback, seconds for `import sglang`, bytes of data."""

    timeout: float = ACTIVATION_LIMIT
    import_timeout: float = IMPORT_LIMIT
    memory: int | None = MEMORY_LIMIT


@dataclass(frozen=True)
class Decision:
    """One runtime's answer with all that led to it.

    Attributes:
        policy: the rules that were applied.
        resolution: the platform, or the error, with the trail.
        choices: what becomes of each hook plugin.
        hardware: what the detectors saw, by built-in name; empty where they were not asked.
        location: where the returned class was found without importing it (`inside/source.py`), None for built-ins and errors.
        host: what the real host (or the stand-in) did in a child, where it was asked.
    """

    policy: Policy
    resolution: Resolution
    choices: tuple[Choice, ...] = ()
    hardware: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    location: Mapping[str, Any] | None = None
    host: Mapping[str, Any] | None = None


class Inquiry:
    """The chain's effects, by way of a child: one environment, one release, any number of runtimes. Each question is asked once.

    Args:
        probe: the child.
        facts: its answer to `environment`.
        settings: the variables that count.
        release: by whose rules.
        limits: for strangers' code.

    Attributes:
        progress: told what is waited for, when that takes long.
    """

    def __init__(self, probe: Probe, facts: Mapping[str, Any], settings: Settings, release: str, limits: Limits) -> None:
        self.probe = probe
        self.facts = facts
        self.settings = settings
        self.release = release
        self.limits = limits
        self.has_sglang = facts["sglang"]["kind"] in {"installed", "source"}
        self.progress: Callable[[str], None] = lambda text: None
        self._hardware: dict[str, dict[str, Any]] = {}
        self._rehearsals: dict[str, Mapping[str, Any]] = {}
        self._changed: dict[str, list[str]] = {}  # by candidate

    def candidates(self, group: str | None) -> tuple[Candidate, ...]:
        """Return the entry points of a group in the host's order."""
        rows = [row for row in self.facts["entry_points"] if row["group"] == group]
        return tuple(Candidate(row["name"], row["value"], row["group"], row["dist"], row["version"]) for row in rows)

    def decide(self, runtime: str) -> Decision:
        """Return one runtime's decision."""
        try:
            rules = policy(runtime, self.release)
        except CatalogueError as exc:
            failure = Failure("RuntimeError", str(exc), hint="install SGLang 0.5.11 or newer")
            step = Step("release", self.release, "failed", str(exc))
            return Decision(policy(runtime), Resolution(runtime, "error", steps=(step,), error=failure))
        before = self._variables(rules)
        broken = self._broken_metadata()
        if broken is not None:
            return Decision(rules, Resolution(runtime, "error", steps=(*before, broken[0]), error=broken[1]))
        candidates = self.candidates(rules.platform_group)
        resolution = select(
            rules,
            self.settings,
            candidates,
            activate=lambda candidate: self.activate(rules, candidate),
            detect=lambda name: self.detect(rules, name),
        )
        resolution = replace(
            resolution,
            steps=(*before, *resolution.steps),
            error=self._mention_alias(rules, self._mention_builtins(rules, resolution.error)),
        )
        resolution = self._mention_changes(resolution, candidates)
        resolution, found = self._look_up_class(resolution)
        plugins = self.candidates(rules.hook_group) if rules.hook_group else ()
        choices = plugins_to_load(rules, self.settings, plugins, candidates, resolution) if resolution.outcome != "error" else ()
        return Decision(rules, resolution, choices, self._seen(rules), found)

    def activate(self, rules: Policy, candidate: Candidate) -> Activation:
        """Load and call one candidate in a fork; in host order where it needs SGLang."""
        request = {
            "op": "activate",
            "candidates": [{"value": candidate.value}],
            "timeout": self.limits.timeout,
            "memory": self.limits.memory,
        }
        with self._waiting(f"waiting for {candidate.name} ({candidate.value}), {self.limits.timeout:g} s at the most"):
            reply = self.probe.ask(request, timeout=self.limits.timeout + 30.0)
        if reply.value is None:
            return Activation(error=answers.lost(reply.ended, reply.stderr), fatal=True)
        facts, key = reply.value[0], candidate_id(candidate)
        if facts["kind"] != "needs_host":
            self._changed[key] = facts.get("changed", [])
            return answers.activation(facts)
        trials = self.rehearse(rules)["platforms"]
        if key in trials:
            self._changed[key] = (trials[key]["value"] or {}).get("changed", [])
        else:
            return Activation(error=answers.unrehearsed(self.rehearse(rules), facts["at"]), fatal=True)
        return answers.rehearsed(trials[key])

    def rehearse(self, rules: Policy, plugins: tuple[Candidate, ...] = ()) -> Mapping[str, Any]:
        """Run the host in a child: `import sglang` first, then the platforms, then the plugins; return its facts.

        The real SGLang where it is installed, else the stand-in.

        Args:
            rules: of the runtime.
            plugins: the hook plugins that the host is expected to run.
        """
        key = "\n".join([rules.runtime, *map(candidate_id, plugins)])
        if key not in self._rehearsals:
            runtime = rules.runtime
            request = {
                "op": "host",
                "runtimes": [runtime],
                "platforms": {runtime: [_row(candidate) for candidate in self._asked(rules)]},
                "plugins": {runtime: [_row(candidate) for candidate in plugins]},
                "backends": [],
                "import_timeout": self.limits.import_timeout,
                "memory": self.limits.memory,
                "jobs": 1,
                "standin": None if self.has_sglang else FINDER,
                "timeout": self.limits.timeout,
            }
            whole = 2 * self.limits.import_timeout + self.limits.timeout * (4 + len(plugins))
            host = "SGLang" if self.has_sglang else "the stand-in"
            with self._waiting(f"running {host} in a child, to see what it does"):
                reply = self.probe.ask({**request, "whole_timeout": whole}, timeout=whole + 30.0)
            facts = (reply.value or {}).get("value")
            ended = (reply.value or {}).get("ended") or {"kind": reply.ended}
            self._rehearsals[key] = facts if facts is not None else {**NOTHING, "ended": ended, "output": (reply.value or {}).get("output")}
        return self._rehearsals[key]

    @contextlib.contextmanager
    def _waiting(self, text: str) -> Iterator[None]:
        """Say what is waited for, once it takes longer than a person likes to wait without a word."""
        timer = threading.Timer(PATIENCE, self.progress, (text,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _asked(self, rules: Policy) -> list[Candidate]:
        """The platform plugins that the host would import."""
        candidates = self.candidates(rules.platform_group)
        selected = self.settings.selector(rules.selector) or ""
        selected = selected.strip() if rules.trims_selector else selected
        if selected:
            return [candidate for candidate in candidates if candidate.name == selected and selected.lower() not in rules.aliases]
        allowed = self.settings.plugins if rules.allowlist_filters_platforms else None
        return [candidate for candidate in candidates if allowed is None or candidate.name in allowed]

    def detect(self, rules: Policy, name: str) -> Detection:
        """Tell whether a built-in's hardware is there; torch is imported only where nothing cheaper can tell."""
        detector = rules.builtin(name).detector
        if detector == "cpu-engine":
            asked = self.settings.cpu_engine
            return Detection(asked, f"SGLANG_USE_CPU_ENGINE is {'1' if asked else 'not 1'}")
        if detector == "always":
            return Detection(True, "always there")
        if detector not in self._hardware:
            names = [entry.detector for entry in rules.builtins if entry.detector not in UNPROBED]
            self._hardware.update(self.probe.require({"op": "hardware", "detectors": names, "cheap": True})["detectors"])
        if self._hardware[detector]["present"] is None:
            unknown = [name for name, found in self._hardware.items() if found["present"] is None]
            with self._waiting("importing torch, which alone can tell what hardware is there"):
                self._hardware.update(self.probe.require({"op": "hardware", "detectors": unknown}, timeout=180.0)["detectors"])
        return answers.detection(self._hardware[detector])

    def _seen(self, rules: Policy) -> dict[str, Mapping[str, Any]]:
        return {entry.name: self._hardware[entry.detector] for entry in rules.builtins if entry.detector in self._hardware}

    # -- what stands before and after the chain

    def _variables(self, rules: Policy) -> tuple[Step, ...]:
        """Say which variables count, which are beaten by an alias, and which names of the allowlist name nothing."""
        steps = []
        for name, alias in self.settings.shadowed.items():
            why = f"{alias} is set too and wins inside SGLang; the value that counts is {self.settings.raw[alias]!r}"
            steps.append(Step("variables", name, "shadowed", why))
        for name, value in self.settings.raw.items():
            target = name.replace("SGL_", "SGLANG_", 1) if name.startswith("SGL_") else name
            relevant = {rules.selector, rules.allowlist, *(["SGLANG_USE_CPU_ENGINE"] if rules.base else [])}
            if target in relevant and value:
                why = "as written" if target == name else f"SGLang reads it as {target}"
                shown = value if value == value.strip() else repr(value)
                steps.append(Step("variables", f"{name}={shown}", "set", why))
        known = {candidate.name for group in (rules.platform_group, rules.hook_group) for candidate in self.candidates(group)}
        others = {row["name"]: row["group"] for row in self.facts["entry_points"]}
        dists = {row["dist"]: row["name"] for row in self.facts["entry_points"]}
        steps += [
            Step("allowlist", f"{rules.allowlist}: {name}", "unknown", _unknown_name(name, known, others, dists))
            for name in sorted(self.settings.plugins or ())
            if name not in known
        ]
        if self.settings.plugins is not None and not self.settings.plugins:
            steps.append(Step("allowlist", rules.allowlist, "empty", "it holds separators only, which allows no plugin at all"))
        return tuple(steps)

    def _broken_metadata(self) -> tuple[Step, Failure] | None:
        """Return the failure of `importlib.metadata.entry_points()`, which one broken file causes for the whole environment."""
        for problem in self.facts["problems"]:
            if problem["fatal"]:
                where = f"{problem['path']}:{problem['line']}"
                kind = "UnicodeDecodeError" if problem["kind"] == "encoding" else "TypeError"
                why = f"{where} {problem['why']}: {problem['text'].strip()!r}"
                message = "importlib.metadata.entry_points() fails, for every package of this environment"
                hint = f"correct that line, or reinstall {problem['dist'] or 'that distribution'}"
                step = Step("metadata", where, "failed", f"{message}: {why}", data={"dist": problem["dist"]})
                return step, Failure(kind, message, cause=why, hint=hint)
        return None

    def _mention_builtins(self, rules: Policy, failure: Failure | None) -> Failure | None:
        """Tell someone who selects a built-in by name in the runtime whose selector knows none of them."""
        asked = (self.settings.selector(rules.selector) or "").strip().lower()
        other = POLICIES["diffusion"]
        if failure is None or rules.aliases or asked not in other.reserved or f"={asked!r} not found" not in failure.message.lower():
            return failure
        hint = f"{asked} is built in: type: unset {rules.selector} (only {other.selector} takes built-in names)"
        return replace(failure, hint=hint)

    def _mention_alias(self, rules: Policy, failure: Failure | None) -> Failure | None:
        """Let the hint speak of the variable that counts: a `SGL_` alias wins over the name that it would set."""
        alias = (rules.selector or "").replace("SGLANG_", "SGL_", 1)
        if failure is None or alias not in self.settings.raw:
            return failure
        return replace(failure, hint=re.sub(rf"\b(export|unset) {rules.selector}\b", rf"\1 {alias}", failure.hint or "") or None)

    def _mention_changes(self, resolution: Resolution, candidates: tuple[Candidate, ...]) -> Resolution:
        """Say what callbacks changed that SGLang reads after them; each was called in a process of its own, where that is lost."""
        detects = any(step.rule == "detect" for step in resolution.steps)
        steps = []
        for candidate in candidates:
            names = self._changed.get(candidate_id(candidate), [])
            names = [name for name in names if detects or not name.startswith(("torch.", "SGLANG_USE_CPU", "SGL_USE_CPU"))]
            if names and any(step.rule == "activate" and step.subject == candidate.name for step in resolution.steps):
                why = f"its callback changed {', '.join(names)}: what SGLang reads of that afterwards is not looked at here; --verify tells"
                steps.append(Step("effects", candidate.name, "doubtful", why))
        return replace(resolution, steps=(*resolution.steps, *steps))

    def _look_up_class(self, resolution: Resolution) -> tuple[Resolution, Mapping[str, Any] | None]:
        """Check without importing it that the returned class is there; where it surely is not, that is the answer."""
        if resolution.outcome != "plugin" or (not self.has_sglang and str(resolution.qualname).startswith("sglang.")):
            return resolution, None  # the stand-in's own classes are on no path
        values = [row["value"] for row in self.facts["entry_points"] if row["dist"] == resolution.dist]
        owned = sorted({re.split(r"[.:\s]", value.strip(), maxsplit=1)[0] for value in values})
        found = self.probe.require({"op": "locate", "qualname": resolution.qualname, "owned": owned})
        step, failure = location.judge(resolution, found, has_sglang=self.has_sglang)
        resolution = replace(resolution, steps=(*resolution.steps, step))
        if failure is not None:
            resolution = replace(resolution, outcome="error", error=failure)
        return resolution, found


def _row(candidate: Candidate) -> dict[str, Any]:
    return {"id": candidate_id(candidate), "name": candidate.name, "value": candidate.value, "dist": candidate.dist, "host": True}


def candidate_id(candidate: Candidate) -> str:
    """Return the text that names an entry point among all."""
    return f"{candidate.group}|{candidate.name}|{candidate.value}|{candidate.dist}"


def _unknown_name(name: str, known: set[str], others: Mapping[str, str], dists: Mapping[str | None, str]) -> str:
    from difflib import get_close_matches

    if name in dists:
        return f"{name!r} is a distribution; its entry point is {dists[name]!r}"
    if name in others:
        return f"{name!r} is an entry point of {others[name]}, which this runtime does not read"
    parts = re.split(r"[\s;:]+", name)
    if len(parts) > 1 and set(parts) & known:
        return f"{name!r} looks like a list; names are separated by commas"
    folded = {other.lower(): other for other in known}
    close = get_close_matches(name.strip("'\"").lower(), folded, n=1)
    return f"no plugin is called {name!r}" + (f"; did you mean {folded[close[0]]!r}?" if close else "")
