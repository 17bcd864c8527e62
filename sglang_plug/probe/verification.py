"""Our explanation beside what the host really did in a child: platform, error, hook plugins. A difference is an error with both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sglang_plug.core.resolution import Failure, Resolution, Step
from sglang_plug.probe import answers
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_plug.probe.inquiry import Decision, Inquiry


def verify(inquiry: Inquiry, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    """Run the host for each runtime; return the decisions with its word added, as errors where it differs or fails later than the chain."""
    return {runtime: _verify_one(inquiry, decision) for runtime, decision in decisions.items()}


def _verify_one(inquiry: Inquiry, decision: Decision) -> Decision:
    rules = decision.policy
    facts = inquiry.rehearse(rules, tuple(choice.candidate for choice in decision.choices if choice.verdict == "load"))
    host = summarise(facts, rules.runtime, real=inquiry.has_sglang)
    enum = rules.builtin(decision.resolution.name).enum if decision.resolution.outcome == "builtin" and decision.resolution.name else None
    step, failure = compare(decision.resolution, host, enum)
    if failure is not None and failure.type == "VerificationError":
        failure = _blame(failure, decision.resolution, facts)
    steps = (*decision.resolution.steps, step, *_plugin_steps(decision, host))
    resolution = replace(decision.resolution, steps=steps)
    if failure is not None:
        resolution = replace(resolution, outcome="error", error=failure)
    return replace(decision, resolution=resolution, host=host)


def _blame(failure: Failure, ours: Resolution, facts: Mapping[str, Any]) -> Failure:
    """Tell a plugin that answers differently each time, or changes what is asked next, from a defect of ours."""
    effect = next((step for step in ours.steps if step.rule == "effects"), None)
    if effect is not None:
        cause = f"platform plugin {effect.subject!r}: {effect.why.partition(':')[0]}"
        return replace(failure, cause=cause, hint="let activate() change nothing that SGLang reads, and answer with None or a class")
    said = {
        step.subject: step.data.get("qualname") for step in ours.steps if step.rule == "activate" and step.verdict in {"active", "inactive"}
    }
    for key, trial in facts["platforms"].items():
        name, report = key.split("|")[1], trial["value"]
        if name in said and report is not None and "returned" in report and report["returned"].get("text") != said[name]:
            cause = f"activate() of {name!r} returned {said[name]!r} the first time and {report['returned'].get('text')!r} the second"
            return replace(failure, cause=cause, hint="let activate() answer by what the machine has, the same every time")
        if name in said and report is not None and report.get("touched"):
            cause = f"activate() of {name!r} reads current_platform, while SGLang asks it which platform that is"
            return replace(failure, cause=cause, hint="ask the driver or torch directly")
    return failure


def summarise(facts: Mapping[str, Any], runtime: str, *, real: bool) -> dict[str, Any]:
    """Return what the host chose or raised, whose classes the callbacks named, and which plugins it ran, as a flat dictionary.

    `at_import` is true where the error is SRT's, which ends `import sglang` before this runtime is asked.
    """
    summary: dict[str, Any] = dict.fromkeys(("class", "enum", "device_name", "error", "shown"))
    summary["at_import"] = False
    summary["engine"] = "sglang" if real else "standin"
    summary["version"] = facts.get("sglang", {}).get("version")
    summary.update(_platform(facts, runtime))
    if summary["class"] is None and summary["error"] is None:
        summary["error"] = _import_failure(facts)
    summary["resolved"] = _resolved(facts)
    together = facts["together"].get(runtime) or {}
    log = (together.get("value") or {}).get("log", [])
    messages = [record["message"] for record in log]
    summary["executed"] = sorted(_after(messages, ("Executed general plugin: ", "Executed diffusion plugin: ")))
    summary["targets"] = (together.get("value") or {}).get("targets", [])
    summary["failed"] = [*_failed_alone(facts), *(record["message"] for record in log if record["level"] in {"ERROR", "CRITICAL"})]
    return summary


def _failed_alone(facts: Mapping[str, Any]) -> list[str]:
    """Say which hook plugins failed when each was tried by itself, for those the host is not asked to run all together."""
    found = []
    for key, trial in facts["plugins"].items():
        name, report = key.split("|")[1], trial["value"]
        if report is None:
            found.append(f"{name}: {answers.ending({**trial, 'stage': None})}")
            continue
        errors = [phase["error"] for phase in report["phases"].values() if phase.get("error")]
        found += [f"{name}: {error['type']}: {error['message']}" for error in errors[:1]]
    return found


def _resolved(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the class that each callback's text led to, for a name may be another one's alias."""
    found = {}
    for trial in facts["platforms"].values():
        report = trial["value"] or {}
        text, cls = report.get("returned", {}).get("text"), report.get("class", {}).get("qualname")
        if text and cls:
            found[text.strip()] = cls
    return found


def _platform(facts: Mapping[str, Any], runtime: str) -> dict[str, Any]:
    verdict = facts["verdict"].get(runtime)
    if runtime != "srt" and facts.get("sglang", {}).get("resolves_at_import"):
        first = _platform(facts, "srt")  # `import sglang` ends there; the dry run went on to see what comes behind
        if first.get("error"):
            return {**first, "at_import": True}
    if verdict is None:
        return {}
    if verdict.get("blocked"):
        return {"error": _blocked(facts, verdict["blocked"])}
    report = verdict.get("value")
    if report is None:
        ending = answers.ending({**verdict, "stage": "host"})
        return {"error": {"type": ending.type, "message": ending.message, "cause": ending.cause}}
    failed = report["phases"]["host"].get("error")
    if failed:
        shown = report["phases"].get("shown", {}).get("error") or {}
        return {"error": _words(failed), "shown": f"{shown.get('type')}: {shown.get('message')}" if shown else None}
    return {key: report["chosen"][key] for key in ("class", "enum", "device_name")}


def _blocked(facts: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    for key, trial in facts["platforms"].items():
        if key.split("|")[1] in names:
            found = answers.rehearsed(trial).error
            if found is not None:
                return {"type": found.type, "message": found.message, "cause": found.cause}
    return {"type": "RuntimeError", "message": f"the host did not survive {', '.join(names)}", "cause": None}


def _import_failure(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    for record in facts["imports"]:
        if "error" in record:
            return _words(record["error"])
    ended = facts.get("ended")
    if ended is None:
        return None
    if {"code", "name", "seconds"} & set(ended):
        found = answers.ending({"ended": ended, "stage": "rehearsal"})
        kind, message, cause = found.type, found.message, found.cause
    else:
        kind, message, cause = "RuntimeError", f"the host's dry run ended ({ended['kind']})", None
    return {"type": kind, "message": message, "cause": str((facts.get("output") or {}).get("head", "")).strip()[-2000:] or cause}


def _words(facts: Mapping[str, Any]) -> dict[str, Any]:
    found = answers.error(facts, "call")
    return {"type": found.type, "message": found.message, "cause": found.cause}


def _after(messages: list[str], prefixes: tuple[str, ...]) -> list[str]:
    return [message.removeprefix(prefix) for message in messages for prefix in prefixes if message.startswith(prefix)]


def compare(ours: Resolution, host: Mapping[str, Any], enum: str | None = None) -> tuple[Step, Failure | None]:
    """Return the step for the trail, and the failure where the host failed or went elsewhere.

    Args:
        ours: our answer.
        host: the host's, from `summarise`.
        enum: of the built-in that we name: the host may take a variant of its class, by what the machine has.
    """
    subject = f"{host['engine']} {host['version'] or ''}".strip()
    if host["error"] is not None:
        theirs = host["error"]
        if ours.error is not None and (ours.name is not None or same_error(ours.error.type, theirs["type"])):  # one plugin's failure
            return Step("verify", subject, "agrees", f"the host ends with {theirs['type']}: {theirs['message']}"), None
        why = f"the host ends with {theirs['type']}: {theirs['message']}"
        if ours.outcome == "plugin" or host.get(
            "at_import"
        ):  # the chain ends where the class is loaded; what its module or constructor does, only the host shows
            hint = "try: sglang-plug doctor"
            return Step("verify", subject, "failed", why), Failure(theirs["type"], theirs["message"], cause=theirs["cause"], hint=hint)
        return _differ(subject, why, ours)
    if ours.error is not None:
        return _differ(subject, f"the host chose {host['class']}", ours)
    if host["class"] is None:
        message = f"the host ({subject}) gave no answer in its dry run"
        return Step("verify", subject, "failed", message), Failure("VerificationError", message, hint="try: sglang-plug doctor --verbose")
    variant = enum is not None and host["enum"] == enum and host["class"].startswith("sglang.")
    if variant or _is_chosen(ours.qualname, host):
        return Step("verify", subject, "agrees", f"the host chose {host['class']} (device {host['device_name']})"), None
    return _differ(subject, f"the host chose {host['class']}", ours)


def same_error(ours: str, theirs: str) -> bool:
    """Tell whether two error types are one: compared by their last name, since the host may use a class of its own."""
    return ours.rsplit(".", maxsplit=1)[-1] == theirs.rsplit(".", maxsplit=1)[-1]


def _is_chosen(ours: str | None, host: Mapping[str, Any]) -> bool:
    """Tell whether the host's class is the one we name, by what each callback's text led to there, where that is known."""
    known = host["resolved"]
    if known and ours not in known:
        return ours is not None and ours.replace(":", ".") == host["class"]
    return same_class(known.get(ours, ours), host["class"])


def same_class(ours: str | None, theirs: str) -> bool:
    """Tell whether two names are one class: a plugin may return a re-exported one, so the class name decides where modules differ."""
    if ours is None:
        return False
    dotted = ours.replace(":", ".")
    return dotted == theirs or dotted.rsplit(".", maxsplit=1)[-1] == theirs.rsplit(".", maxsplit=1)[-1]


def _differ(subject: str, theirs: str, ours: Resolution) -> tuple[Step, Failure]:
    mine = f"{ours.error.type}: {ours.error.message}" if ours.error else f"{ours.name} ({ours.qualname})"
    message = f"our explanation differs from the host: we say {mine}; {theirs}"
    failure = Failure("VerificationError", message, hint="this is a defect of sglang-plug; please report it with this output")
    return Step("verify", subject, "differs", message), failure


def _plugin_steps(decision: Decision, host: Mapping[str, Any]) -> list[Step]:
    """Say for the hook plugins whether the host ran those that we expect."""
    expected = sorted(choice.candidate.name for choice in decision.choices if choice.verdict == "load")
    if host["error"] is not None or not (expected or host["executed"]):
        return []
    missing = [name for name in expected if name not in host["executed"]]
    extra = [name for name in host["executed"] if name not in expected]
    counts = f"{len(host['executed'])} of {counted(len(expected), 'hook plugin')} ran, {counted(len(host['targets']), 'target')} patched"
    if not missing and not extra:
        return [Step("verify", "hook plugins", "agrees", counts)]
    why = "; ".join(
        part
        for part in (
            counts,
            f"did not run: {', '.join(missing)}" if missing else "",
            f"ran although skipped by our rules: {', '.join(extra)}" if extra else "",
            *host["failed"][:3],
        )
        if part
    )
    return [Step("verify", "hook plugins", "differs" if extra else "failed", why)]
