"""SP9xx: where our explanation and the host's own behaviour part. Each is a defect of ours until proven otherwise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Level
from sglang_plug.checks.rules.classes import is_stranger
from sglang_plug.checks.world import World, cause_of, find, names
from sglang_plug.probe import verification

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

_REPORT = "this is a defect of sglang-plug; please report it with the output of: sglang-plug doctor --format json"


def platform_differs(world: World) -> Iterator[Finding]:
    """SP901: the platform that we predict, and the one that the host resolved in the child."""
    for runtime, decision in world.decisions.items():
        host = verification.summarise(world.rehearsal, runtime, real=world.real)
        verdict = world.rehearsal.get("verdict", {}).get(runtime) or {}
        if verdict.get("blocked") or (host["error"] is None and host["class"] is None) or _is_no_measure(world, runtime):
            continue  # the host was not asked, or did not get that far: told by other rules
        step, _ = verification.compare(decision.resolution, host)
        if step.verdict == "differs":
            yield find(
                "SP901",
                {"kind": "host", "name": "platform", "runtime": runtime},
                f"{runtime}: {step.why}",
                hint=_REPORT,
                ours=str(decision.resolution.qualname or decision.resolution.error),
                host=str(host["class"] or host["error"]),
                level=None if world.real else Level.WARNING,
            )


def _is_no_measure(world: World, runtime: str) -> bool:
    """True where the dry run is not what the host does: it was helped over broken metadata, came to an early end, or was traced."""
    helped = any(problem["fatal"] for problem in world.facts["problems"])
    traced = any("tracer" in phase.get("effects", {}) for entry in world.of("platform", runtime) for phase in entry.phases.values())
    spoilt = ((world.rehearsal.get("verdict", {}).get(runtime) or {}).get("ended") or {}).get("kind") == "broken"
    strange = any(is_stranger(entry) for entry in world.of("platform", runtime))
    unable = any("error" in record and not record.get("plugin") for record in world.rehearsal.get("imports", ()))
    return unable or strange or helped or traced or spoilt or bool(world.rehearsal.get("ended"))


def plugins_differ(world: World) -> Iterator[Finding]:
    """SP901: the hook plugins that we expect to run, and those that the host ran."""
    for runtime, decision in world.decisions.items():
        reply = (world.rehearsal.get("together", {}).get(runtime) or {}).get("value")
        if reply is None or decision.resolution.error is not None:
            continue
        host = verification.summarise(world.rehearsal, runtime, real=world.real)
        expected = {c.candidate.name for c in decision.choices if c.verdict == "load"}
        ran = set(host["executed"])
        broken = {entry.name for entry in world.of("hook plugin", runtime) if entry.failed} | set(failed_together(world, runtime))
        missing, extra = sorted(expected - ran - broken), sorted(ran - expected)
        if (missing or extra) and "error" not in reply["phases"]["host"]:
            told = [f"we expect {names(missing)} to run, and the host did not run them"] if missing else []
            told += [f"the host ran {names(extra)}, which we take for skipped"] if extra else []
            yield find(
                "SP901",
                {"kind": "host", "name": "hook plugins", "runtime": runtime},
                f"{runtime}: {'; '.join(told)}",
                hint=_REPORT,
                level=None if world.real else Level.WARNING,
            )


def failed_together(world: World, runtime: str) -> dict[str, Mapping[str, Any]]:
    """Return the failures that the host logged for hook plugins while it loaded all of them, by name."""
    log = ((world.rehearsal.get("together", {}).get(runtime) or {}).get("value") or {}).get("log", [])
    rows = [(re.search(r"Failed to (?:load|execute)(?: general| diffusion)? plugin:? (\S+)", record["message"]), record) for record in log]
    return {match[1]: record["error"] for match, record in rows if match is not None and "error" in record}


def fails_together(world: World) -> Iterator[Finding]:
    """SP302: sound alone, and broken by what another plugin did before it."""
    for runtime in world.runtimes:
        failures = failed_together(world, runtime)
        for entry in world.of("hook plugin", runtime):
            if entry.name in failures and entry.trial is not None and not entry.failed:
                error = failures[entry.name]
                yield find(
                    "SP302",
                    entry.subject(),
                    f"{entry.label} works alone, and raises {error['type']} when it is loaded after the others",
                    cause=cause_of(error),
                    hint=f"see what the others change in the process; alone: SGLANG_PLUGINS={entry.name}",
                    level=Level.WARNING,
                )


def aborts_startup(world: World) -> Iterator[Finding]:
    """SP604: the host's own loader raised."""
    for runtime in world.runtimes:
        reply = (world.rehearsal.get("together", {}).get(runtime) or {}).get("value") or {}
        error = reply.get("phases", {}).get("host", {}).get("error")
        if error is not None:
            yield find(
                "SP604",
                {"kind": "host", "name": "hook plugins", "runtime": runtime},
                f"loading the {runtime} hook plugins aborts startup: {error['type']}: {error['message']}",
                cause=f"{error['root']['type']}: {error['root']['message']}",
                hint="repair the plugin that is named above: it ships with the selected platform",
                traceback=error["traceback"],
            )


RULES = (platform_differs, plugins_differ, fails_together, aborts_startup)
