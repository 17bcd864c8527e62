"""The host-order rehearsal for doctor: which plugins are tried, one question to the child, and our own decisions from its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.core.policy import policy
from sglang_plug.core.selection import Activation, plugins_to_load
from sglang_plug.errors import CatalogueError
from sglang_plug.probe import answers, inquiry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sglang_plug.checks.world import Entry, World
    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.core.policy import Policy
    from sglang_plug.probe.parent import Probe


@dataclass(frozen=True)
class Limits:
    """How long and how large strangers' code may get: seconds for one plugin, for `import sglang`; bytes; how many at a time.

    `isolation` says whether a plugin gets a fork or an interpreter of its own: `auto`, `fork`, `spawn`.
    Without a time limit of its own a plugin gets 20 s, and 90 s where it may import much of real SGLang.
    """

    timeout: float | None = None
    import_timeout: float = 180.0
    memory: int | None = 4 << 30
    jobs: int = 2
    isolation: str = "auto"


class Rehearsed(inquiry.Inquiry):
    """The chain fed by what the rehearsal has shown: no plugin is run again."""

    def __init__(self, probe: Probe, world: World, trials: Mapping[str, Any]) -> None:
        super().__init__(probe, world.facts, world.settings, world.release, inquiry.Limits())
        self._trials = trials

    def activate(self, rules: Policy, candidate: Candidate) -> Activation:
        """Return what the candidate did when it was tried."""
        trial = self._trials.get(inquiry.candidate_id(candidate))
        if trial is None:
            return super().activate(rules, candidate)
        return answers.rehearsed(trial)


class Rehearsal:
    """One rehearsal of everything that is to be examined in a world."""

    def __init__(self, probe: Probe, world: World, limits: Limits, progress: Callable[[str], None]) -> None:
        self._probe = probe
        self._world = world
        self._limits = limits
        self._timeout = limits.timeout or (90.0 if world.real else 20.0)
        self._progress = progress
        self._rules: dict[str, Policy] = {}

    def run(self) -> None:
        """Try the plugins, and fill in the world's trials, rehearsal and decisions."""
        world = self._world
        for runtime in world.runtimes:
            try:
                self._rules[runtime] = policy(runtime, world.release)
            except CatalogueError:  # a release without plugins, or a newer one: told by the rules on the host
                continue
        self._settle()
        facts = self._ask(builtin=False)
        broken = [record for record in facts.get("imports", ()) if "error" in record]
        if broken and any(verdict.get("continued") == "host" for verdict in facts.get("verdict", {}).values()):
            facts = self._merge(facts, broken)
        world.rehearsal = facts
        for entry in world.entries:
            kept = "plugins" if entry.kind == "hook plugin" else "platforms" if entry.kind == "platform" else "backends"
            entry.trial = facts.get(kept, {}).get(entry.id)
        mine = Rehearsed(self._probe, world, facts.get("platforms", {}))
        world.decisions = {runtime: mine.decide(runtime) for runtime in self._rules}
        self._skip_by_choice()

    def _merge(self, first: dict[str, Any], broken: list[dict[str, Any]]) -> dict[str, Any]:
        """Start again with a built-in platform: the chosen one breaks SGLang's own import, and hooks are still to be examined."""
        for record in broken:
            record["plugin"] = True
        second = self._ask(builtin=True)
        return {**second, "imports": [*broken, *second.get("imports", ())], "platforms": first["platforms"], "verdict": first["verdict"]}

    # -- who is tried

    def _settle(self) -> None:
        """Say for every entry whether the host runs it, as far as that is known before anything ran."""
        for runtime, rules in self._rules.items():
            self._settle_platforms(runtime, rules)
            plugins = self._world.of("hook plugin", runtime)
            platforms = self._candidates(self._world.of("platform", runtime))
            for entry, choice in zip(
                plugins, plugins_to_load(rules, self._world.settings, self._candidates(plugins), platforms, None), strict=True
            ):
                by_platform = choice.verdict == "skipped" and not rules.excludes_by_selector and not choice.why.startswith("not in")
                if (choice.verdict == "skipped" and not by_platform) or choice.verdict in {"refused", "shadowed"}:
                    entry.host, entry.skipped = False, choice.why
        for entry in self._world.entries:
            asked = self._world.names and (entry.name in self._world.names or entry.dist in self._world.names)
            known = entry.runtime in self._rules
            entry.tried = bool(known and (asked if self._world.names else entry.host))

    def _settle_platforms(self, runtime: str, rules: Policy) -> None:
        world = self._world
        selected = world.selected(runtime)
        platforms = world.of("platform", runtime)
        names = [entry.name for entry in platforms]
        refused = rules.unique_names and not selected and (len(names) != len(set(names)) or any(n.lower() in rules.reserved for n in names))
        for entry in platforms:
            if selected and (entry.name != selected or selected.lower() in rules.aliases):
                entry.host, entry.skipped = False, f"{rules.selector}={selected} selects another"
            elif refused:
                entry.host, entry.skipped = False, "the names of the installed platforms are refused first"
            elif not selected and rules.allowlist_filters_platforms and entry.name not in (world.settings.plugins or {entry.name}):
                entry.host, entry.skipped = False, f"{rules.allowlist} does not list it"

    def _skip_by_choice(self) -> None:
        """Take over, from our decisions, why the host leaves hook plugins alone."""
        for runtime, decision in self._world.decisions.items():
            whys = {inquiry.candidate_id(c.candidate): c.why for c in decision.choices if c.verdict == "skipped"}
            for entry in self._world.of("hook plugin", runtime):
                if entry.id in whys:
                    entry.host, entry.skipped = False, whys[entry.id]
                    entry.tried = entry.trial is not None

    def _candidates(self, entries: list[Entry]) -> tuple[Candidate, ...]:
        from sglang_plug.core.entrypoints import Candidate

        return tuple(Candidate(e.name, e.value, e.group, e.row["dist"], e.row["version"]) for e in entries)

    # -- the one question

    def _ask(self, *, builtin: bool) -> dict[str, Any]:
        world, limits = self._world, self._limits
        rows = {kind: {r: self._rows(kind, r) for r in self._rules} for kind in ("platform", "hook plugin")}
        backends = self._rows("serve backend", "srt") if "srt" in self._rules else []
        count = sum(len(part) for kind in rows.values() for part in kind.values()) + len(backends)
        runtimes = [r for r in self._rules if r == "srt" or self._matters(r, rows)]
        host = f"SGLang {world.release}" if world.real else "the stand-in"
        self._progress(f"rehearsing {count} plugin{'s' * (count != 1)} on {host}")
        request = {
            "op": "host",
            "runtimes": runtimes,
            "platforms": rows["platform"],
            "plugins": rows["hook plugin"],
            "backends": backends,
            "timeout": self._timeout,
            "import_timeout": limits.import_timeout,
            "memory": limits.memory,
            "jobs": limits.jobs,
            "standin": None if world.real else inquiry.FINDER,
            "hardware": {} if world.real else self._hardware(),
            "tolerate": any(problem["fatal"] for problem in world.facts["problems"]),
            "builtin": builtin,
            "isolation": limits.isolation,
        }
        whole = 3 * limits.import_timeout + (self._timeout + 1) * (count + 4)
        if limits.isolation != "fork":  # each trial may need to import SGLang again
            whole += 3 * limits.import_timeout * (count + 4)
        reply = self._probe.ask({**request, "whole_timeout": whole}, timeout=whole + 30)
        answer = reply.value or {}
        if answer.get("value") is None:
            return {**inquiry.NOTHING, "ended": answer.get("ended") or {"kind": reply.ended}, "output": answer.get("output")}
        facts: dict[str, Any] = answer["value"]
        return facts

    def _hardware(self) -> dict[str, Any]:
        """What cheap looks tell of the machine; the stand-in then need not ask torch."""
        names = {builtin.detector for rules in self._rules.values() for builtin in rules.builtins} - inquiry.UNPROBED
        found: dict[str, Any] = self._probe.require({"op": "hardware", "detectors": sorted(names), "cheap": True})["detectors"]
        return found

    def _matters(self, runtime: str, rows: Mapping[str, Mapping[str, Any]]) -> bool:
        """Diffusion is loaded only where something of it is installed or selected."""
        return bool(rows["platform"].get(runtime) or rows["hook plugin"].get(runtime))

    def _rows(self, kind: str, runtime: str) -> list[dict[str, Any]]:
        dists = {entry.row["dist"] for entry in self._world.of("platform", runtime)}
        rules = self._rules[runtime]
        return [
            {
                "id": entry.id,
                "name": entry.name,
                "value": entry.value,
                "dist": entry.row["dist"],
                "host": entry.host,
                "platform_dist": not rules.excludes_by_selector and entry.row["dist"] in dists and not self._world.names,
            }
            for entry in self._world.of(kind, runtime)
            if entry.tried
        ]
