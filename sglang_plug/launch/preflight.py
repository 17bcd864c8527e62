"""Everything that is known before a launch: the plan, who will serve, what is loaded, and what speaks against it. Starts no engine."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Finding, Level
from sglang_plug.core.policy import DIFFUSION, SRT
from sglang_plug.errors import CatalogueError, LaunchError
from sglang_plug.launch import foresight, traps
from sglang_plug.launch import plan as plans
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.hooktraps import foreign_device
from sglang_plug.probe.environment import SELECTORS, variables_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sglang_plug.core.resolution import Resolution
    from sglang_plug.core.selection import Choice
    from sglang_plug.launch.foresight import Foreseen
    from sglang_plug.launch.plan import Plan
    from sglang_plug.probe.decision import Survey
    from sglang_plug.probe.environment import Environment


@dataclass(frozen=True)
class Request:
    """What the user asked for; see `plan.make` for the fields. `fingerprint` is what this node must have, among several."""

    environment: Environment
    tokens: tuple[str, ...] = ()
    engine: str = "auto"
    runtime: str = "auto"
    platform: str | None = None
    plugins: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True)
class Preflight:
    """The answer.

    Attributes:
        plan: what will be started.
        resolution: who will serve, with the trail.
        choices: what becomes of each hook plugin.
        variables: the SGLANG_* and SGL_* variables that the engine will see.
        findings: what there is to say, most severe first.
        hooks: those that the plugins' source registers.
        survey: all that was found in the environment, for reports.
        fingerprint: equal on nodes where SGLang, plugins and variables are equal.
    """

    plan: Plan
    resolution: Resolution | None = None
    choices: Sequence[Choice] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    hooks: Sequence[Foreseen] = ()
    survey: Survey | None = None
    fingerprint: str | None = None

    def refusals(self, allowed: Iterable[str] = ()) -> list[Finding]:
        """Return the findings that forbid the start, without those that the user allows."""
        names = {code.upper() for code in allowed}
        return [finding for finding in self.findings if finding.level is Level.ERROR and finding.code not in names]


def examine(request: Request) -> Preflight:
    """Decide, without importing sglang, who would serve, and find what speaks against the launch.

    Raises:
        LaunchError: the stand-in is asked for where SGLang is installed, or SGLang where it is not.
        ProbeError: the interpreter cannot be inspected.
        CatalogueError: the installed SGLang has no plugin system.
    """
    from sglang_plug.probe.decision import survey

    arguments = EngineArguments(request.tokens)
    runtime = plans.runtime_of(arguments) if request.runtime == "auto" else request.runtime
    changes = variables_for(platform=request.platform, plugins=request.plugins, runtimes=(runtime,))
    found = survey(request.environment.with_variables(changes), (runtime,))
    if (settled := _settled(request, found.facts["entry_points"])) != request:
        return examine(settled)
    plan = _plan(request, found.facts["sglang"])
    decision = found.decisions[runtime]
    situation = traps.Situation(plan, decision.resolution, decision.choices, fingerprint(found), request.fingerprint)
    path = found.facts["interpreter"]["path"]
    own = decision.resolution.dist if decision.resolution.outcome == "plugin" else None
    hooks, foreseen = foresight.foresee(decision.choices, path, found.release, runtime, own=own)
    if own is not None and decision.resolution.qualname:
        foreseen += foresight.not_out_of_tree(decision.resolution.qualname, path, found.release, runtime)
    device = foresight.device_type(decision.resolution.qualname, path) if own is not None and decision.resolution.qualname else None
    foreseen += foreign_device(device or "", (decision.resolution.qualname or "").replace(":", "."))
    told = [*_undecided(decision.resolution, found), *_misspelt(found, request.environment.env, runtime)]
    findings = [*told, *traps.find(situation), *foreseen]
    findings.sort(key=lambda finding: finding.level.rank)
    return Preflight(plan, decision.resolution, decision.choices, dict(found.settings.raw), findings, hooks, found, situation.fingerprint)


def skip(request: Request) -> Preflight:
    """Return the plan alone: only whether SGLang is installed is looked up.

    Raises:
        LaunchError, ProbeError: as `examine`.
    """
    from sglang_plug.probe.parent import Probe

    with Probe(request.environment) as probe:
        facts = probe.require({"op": "environment"})
    return Preflight(_plan(_settled(request, facts["entry_points"]), facts["sglang"]))


def _settled(request: Request, rows: Sequence[Mapping[str, str]]) -> Request:
    """Return the request with the runtime that a platform of one runtime alone decides, where no model on this machine does."""
    if request.runtime != "auto" or request.platform is None:
        return request
    arguments = EngineArguments(request.tokens)
    local = arguments.model is not None and Path(arguments.model).expanduser().exists()
    if local or arguments.text("kind") is not None or _runtimes(request.platform, rows) != ["diffusion"]:
        return request
    return replace(request, runtime="diffusion")


def _runtimes(platform: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the runtimes in which a name selects a platform, plugin or built-in."""
    return [
        policy.runtime
        for policy in (SRT, DIFFUSION)
        if platform in policy.aliases or any((row["group"], row["name"]) == (policy.platform_group, platform) for row in rows)
    ]


def _plan(request: Request, sglang: Mapping[str, str | None]) -> Plan:
    installed = sglang["kind"] in {"installed", "source"}
    python = request.environment.python
    if request.engine == "standin" and installed:
        raise LaunchError(
            "the stand-in keeps out of the way of a real SGLang",
            subject=python,
            cause=f"SGLang {sglang['version']} is installed there ({sglang['origin']})",
            hint="serve with --engine sglang, or with --python of an environment without SGLang",
        )
    if request.engine == "sglang" and not installed:
        raise LaunchError(
            "SGLang is not installed in the engine's environment",
            subject=python,
            cause=f"a bare folder of that name is no installation: {sglang['origin']}" if sglang["kind"] == "directory" else None,
            hint=f"install it (`{python} -m pip install sglang`), name another --python, or take --engine standin",
        )
    return plans.make(
        request.environment,
        request.tokens,
        engine="sglang" if installed else "standin",
        release=sglang["version"] if installed else None,
        runtime=request.runtime,
        platform=request.platform,
        plugins=request.plugins,
    )


def _undecided(resolution: Resolution, found: Survey) -> list[Finding]:
    """SP050: no platform can be decided, so the engine would not start.

    Of a plugin that raised, the cause is where; of a name that another runtime knows, the way is that runtime.
    """
    error = resolution.error
    if error is None:
        return []
    subject = {"kind": "host", "name": resolution.runtime, "runtime": resolution.runtime}
    message, cause, hint = f"{error.type}: {error.message}", error.cause, error.hint
    last = resolution.steps[-1] if resolution.steps else None
    selected = found.settings.platform if resolution.runtime == "srt" else found.settings.diffusion_platform
    if last is not None and last.data.get("kind") == "raised":
        if cause is not None and cause.startswith(message):  # the same error, and where it is
            cause = cause[len(message) :].strip(" ()") or None
        message = f"platform plugin {last.subject!r} fails: {message}"
    elif last is not None and last.data.get("kind") == "unknown" and selected:
        others = [name for name in _runtimes(selected, found.facts["entry_points"]) if name != resolution.runtime]
        if others:
            cause, hint = f"{selected!r} is a platform of the {others[0]} runtime only", f"serve with --runtime {others[0]}"
    return [Finding("SP050", Level.ERROR, subject, message, cause, hint)]


def _misspelt(found: Survey, env: Mapping[str, str], runtime: str) -> Iterator[Finding]:
    """SP108: a near miss of a variable; fatal where the platform was to be selected by it, and no other variable selects one."""
    from sglang_plug.checks.rules.variables import near_misses
    from sglang_plug.contract import catalogue

    near = near_misses(env)
    if not near:
        return
    try:
        real = catalogue.load(catalogue.nearest(found.release)).environment
    except CatalogueError:
        real = frozenset()
    selected = found.settings.platform if runtime == "srt" else found.settings.diffusion_platform
    for name, meant in near:
        value = env[name]
        if name in real or not value:
            continue
        fatal = meant == SELECTORS[runtime] and not selected
        way = f"unset {name}; export {meant}={shlex.quote(value)}" + ("; or go on with --allow SP108" if fatal else "")
        level = Level.ERROR if fatal else Level.WARNING
        subject = {"kind": "variable", "name": name, "value": value}
        yield Finding("SP108", level, subject, f"{name} is read by nobody; did you mean {meant}?", None, way)


def fingerprint(found: Survey) -> str:
    """Return a short text that is equal on two nodes when SGLang, its plugins and the variables that count are equal there."""
    facts = [
        found.facts["sglang"]["version"],
        sorted([row["group"], row["name"], row["value"], row["dist"], row["version"]] for row in found.facts["entry_points"]),
        sorted(found.settings.raw.items()),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]
