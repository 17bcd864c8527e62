"""Doctor: gathers an environment's facts, rehearses its plugins in a child, and runs every rule over them. Never imports a plugin."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Finding, Level
from sglang_plug.checks.rehearsal import Limits, Rehearsal
from sglang_plug.checks.rules import (
    activation,
    callbacks,
    classes,
    crossing,
    differences,
    effects,
    hooks,
    host,
    installations,
    metadata,
    overrides,
    reach,
    targets,
    values,
    variables,
)
from sglang_plug.checks.rules.callbacks import judge_return
from sglang_plug.checks.standing import beyond_standin
from sglang_plug.checks.world import KINDS, Entry, World, cause_of, find, variable
from sglang_plug.core import environ
from sglang_plug.errors import BadVariable, SglangPlugError
from sglang_plug.probe.decision import choose_release
from sglang_plug.probe.parent import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sglang_plug.core.environ import Settings
    from sglang_plug.probe.environment import Environment
    from sglang_plug.probe.inquiry import Decision

RULES = (
    *host.RULES,
    *variables.RULES,
    *metadata.RULES,
    *installations.RULES,
    *activation.RULES,
    *callbacks.RULES,
    *effects.RULES,
    *classes.RULES,
    *values.RULES,
    *overrides.RULES,
    *hooks.RULES,
    *targets.RULES,
    *reach.RULES,
    *crossing.RULES,
    *differences.RULES,
)


@dataclass(frozen=True)
class Report:
    """What doctor found.

    Attributes:
        host: the interpreter, the SGLang, the release whose rules count, and the decisions, as plain values.
        entry_points: one row for each, with what came of it.
        findings: most severe first.
    """

    host: dict[str, Any]
    entry_points: list[dict[str, Any]] = field(default_factory=list)
    findings: tuple[Finding, ...] = ()

    @property
    def summary(self) -> dict[str, int]:
        """How many findings of each level, and how many entry points were seen and examined."""
        counts = {level.value: sum(f.level is level for f in self.findings) for level in Level}
        examined = sum(row["outcome"] != "skipped" for row in self.entry_points)
        return {**counts, "entry_points": len(self.entry_points), "examined": examined}

    def failed(self, *, strict: bool = False) -> bool:
        """True where there are errors; with `strict` warnings count too."""
        return any(f.level is Level.ERROR or (strict and f.level is Level.WARNING) for f in self.findings)


def examine(
    environment: Environment,
    names: Sequence[str] = (),
    *,
    runtimes: Sequence[str] = ("srt", "diffusion"),
    limits: Limits | None = None,
    explicit_python: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Report:
    """Examine the plugins of an environment.

    Args:
        environment: where to look.
        names: entry points or distributions to examine, also where the host would leave them alone; empty for all that the host runs.
        runtimes: `srt`, `diffusion`.
        limits: for strangers' code.
        explicit_python: the user named the interpreter.
        progress: told what is being done.

    Raises:
        ProbeError: the interpreter cannot be inspected.
        SglangPlugError: a name is not installed.
    """
    try:
        settings = environ.read(environment.env)
    except BadVariable as exc:
        unreadable = find("SP109", variable(str(exc.subject)), str(exc), hint=exc.hint)
        return Report({"python": environment.python}, findings=(unreadable,))
    limits = limits or Limits()
    progress(f"reading the metadata of {environment.python}")
    with Probe(environment) as probe:
        facts = probe.require({"op": "environment", "detail": True})
        world = _world(environment, facts, settings, runtimes=tuple(runtimes), names=tuple(names), limits=limits)
        world.explicit_python = explicit_python
        world.module_facts = _other_launch(environment)
        Rehearsal(probe, world, limits, progress).run()
    findings = [finding for rule in RULES for finding in rule(world)]
    return Report(_host(world), [_row(world, entry) for entry in (*world.entries, *world.others)], order(_about(world, findings)))


def _world(
    environment: Environment,
    facts: dict[str, Any],
    settings: Settings,
    *,
    runtimes: tuple[str, ...],
    names: tuple[str, ...],
    limits: Limits,
) -> World:
    release, assumed = choose_release(facts["sglang"], None)
    rows = [Entry(row) for row in facts["entry_points"]]
    world = World(
        environment,
        facts,
        settings,
        release,
        assumed,
        runtimes,
        names,
        entries=[entry for entry in rows if entry.group in KINDS],
        others=[entry for entry in rows if entry.group not in KINDS],
        limits={"memory": (limits.memory or 0) / (1 << 20)},
    )
    known = {text for entry in rows for text in (entry.name, entry.dist)}
    for name in names:
        if name not in known:
            from sglang_plug.checks.world import close

            near = close(name, sorted(known))
            raise SglangPlugError(
                f"no plugin is called {name!r} there",
                subject=environment.python,
                hint=f"did you mean {near!r}?" if near else "see what is installed: sglang-plug list",
            )
    return world


def _other_launch(environment: Environment) -> dict[str, Any] | None:
    """Return the metadata as `python -m` sees it, where the working directory holds any; None where both must be equal."""
    from dataclasses import replace

    try:
        local = any(name.endswith((".egg-info", ".dist-info")) for name in os.listdir(environment.cwd))
    except OSError:
        return None
    if not local or environment.launch != "script" or os.path.abspath(environment.cwd) in _folders(environment):
        return None
    with Probe(replace(environment, launch="module")) as probe:
        facts: dict[str, Any] = probe.require({"op": "environment"})
    return facts


def _folders(environment: Environment) -> list[str]:
    return [os.path.abspath(part) for part in environment.env.get("PYTHONPATH", "").split(os.pathsep) if part]


def _about(world: World, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Keep the findings about the names asked for; those about the host and its variables stay."""
    if not world.names:
        yield from findings
        return
    wanted = set(world.names) | {e.name for e in world.entries if e.dist in world.names}
    wanted |= {e.dist for e in (*world.entries, *world.others) if e.name in wanted}
    for finding in findings:
        mine = {finding.subject.get(key) for key in ("name", "dist")} & wanted
        if mine or finding.subject["kind"] in {"variable", "host"} or any(f"'{name}'" in finding.message for name in wanted):
            yield finding


def order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings most severe first, each once; equal ones in the order of the rules."""
    once = {(f.code, f.level, f.message, tuple(sorted(f.subject.items()))): f for f in findings}
    return tuple(sorted(once.values(), key=lambda f: (f.level.rank, f.code, f.subject.get("name", ""))))


def _host(world: World) -> dict[str, Any]:
    sglang, interpreter = world.facts["sglang"], world.facts["interpreter"]
    return {
        "python": interpreter["executable"],
        "version": interpreter["version"],
        "prefix": interpreter["prefix"],
        "cwd": world.environment.cwd,
        "launch": world.environment.launch,
        "sglang": {**sglang, "engine": "sglang" if world.real else "standin"},
        "release": world.release,
        "assumed": world.assumed,
        "variables": dict(world.settings.raw),
        "platforms": {
            runtime: {
                "outcome": decision.resolution.outcome,
                "name": decision.resolution.name,
                "qualname": decision.resolution.qualname,
                "dist": decision.resolution.dist,
                "error": _why_none(world, runtime, decision),
                "steps": [{"rule": s.rule, "subject": s.subject, "verdict": s.verdict, "why": s.why} for s in decision.resolution.steps],
            }
            for runtime, decision in world.decisions.items()
        },
        "isolation": world.rehearsal.get("isolation"),
        "seconds": {record["module"]: round(record["seconds"], 3) for record in world.rehearsal.get("imports", ())},
    }


def _why_none(world: World, runtime: str, decision: Decision) -> str | None:
    """Return why a runtime ends without a platform, though one may have been chosen; None where it has one."""
    error = decision.resolution.error
    if error is not None:
        return error.message if " " in error.message else f"{error.type}: {error.message}"
    chosen = [e for e in world.of("platform", runtime) if (e.name, e.row["dist"]) == (decision.resolution.name, decision.resolution.dist)]
    broken = next((e for entry in chosen for phase in ("class", "instance") if (e := entry.error(phase)) is not None), None)
    if decision.resolution.outcome != "plugin" or broken is None or beyond_standin(world, broken) is not None:
        return None
    return f"{decision.resolution.qualname} fails: {cause_of(broken)}"


def _is_applied(hook: Mapping[str, Any], target: Mapping[str, Any] | None) -> bool:
    return bool(target and target.get("patched")) and not hook.get("late")


def _row(world: World, entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {key: entry.row[key] for key in ("name", "group", "value", "dist", "version")}
    row |= {"kind": entry.kind, "runtime": entry.runtime or None, "where": entry.row["where"]}
    if entry.trial is None:
        left_out = f"--runtime leaves {entry.runtime} out" if entry.runtime not in world.runtimes else "not asked for"
        unasked = "the dry run did not reach it" if entry.tried else left_out
        return {**row, "outcome": "skipped", "why": entry.skipped or (unasked if entry.runtime else "no runtime reads its group")}
    returned = entry.report.get("returned") or {}
    wrong = entry.kind == "platform" and bool(returned) and returned["type"] != "NoneType" and judge_return(returned) is not None
    inactive = entry.kind == "platform" and returned.get("type") == "NoneType"
    broken = next((e for phase in ("load", "call", "class") if (e := entry.error(phase)) is not None), None)
    untried = broken is not None and beyond_standin(world, broken) is not None
    row["outcome"] = "untried" if untried else "failed" if entry.failed or wrong else "inactive" if inactive else "ok"
    row["seconds"] = {name: round(phase["seconds"], 4) for name, phase in entry.phases.items()}
    if entry.kind == "platform":
        row["returned"] = returned.get("text")
    if entry.kind == "hook plugin":
        met = [world.target(hook["registry"], hook["target"]) for hook in entry.hooks]
        row["hooks"] = {"registered": len(entry.hooks), "applied": sum(map(_is_applied, entry.hooks, met))}
    return row
