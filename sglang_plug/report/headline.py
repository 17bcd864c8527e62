"""One sentence per runtime: which platform it will use and why, or why it will not start. Values in, words out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_plug.core.selection import GOES_ON
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from sglang_plug.core.resolution import Failure, Step
    from sglang_plug.probe.decision import Survey
    from sglang_plug.probe.inquiry import Decision


@dataclass(frozen=True)
class Headline:
    """A decision in a sentence.

    Attributes:
        text: the sentence.
        tone: `good`, `warn` (it works, but not as its author may think) or `bad`.
        advice: what to type, where there is something to do.
    """

    text: str
    tone: str
    advice: str | None = None


def headline(survey: Survey, runtime: str) -> Headline:
    """Return the sentence for one runtime."""
    decision = survey.decisions[runtime]
    resolution = decision.resolution
    label = decision.policy.label
    if resolution.error is not None and resolution.error.type == "VerificationError":
        return Headline(
            f"{label}: {resolution.error.message}" + (f" ({cause})" if (cause := resolution.error.cause) else ""),
            "bad",
            resolution.error.hint,
        )
    if resolution.error is not None:
        return Headline(f"{label} will not start: {_error(resolution.error)}", "bad", resolution.error.hint)
    if resolution.outcome == "plugin":
        by = f"selected by {decision.policy.selector}" if _is_selected(decision) else "the only active platform plugin"
        doubt = next((step for step in resolution.steps if step.rule == "source" and step.verdict == "doubtful"), None)
        verified = any(step.rule == "verify" and step.verdict == "agrees" for step in resolution.steps)
        if doubt is not None and not verified:
            text = f"{label} will try {resolution.name} ({resolution.qualname}) of {resolution.dist}, {by}: {doubt.why}"
            return Headline(text, "warn", "to see it tried: sglang-plug resolve --verify")
        text = f"{label} will use {resolution.name} ({resolution.qualname}) of {resolution.dist}, {by}"
        return Headline(text, "warn" if warnings(decision) else "good")
    return _builtin(decision)


def _error(failure: Failure) -> str:
    """The failure in one line, its cause told once."""
    cause = failure.cause or ""
    if cause and failure.message in cause:
        return cause if cause.startswith(failure.type) else f"{failure.type}: {cause}"
    return f"{failure.type}: {failure.message}" + (f" ({cause})" if cause and cause not in failure.message else "")


def _is_selected(decision: Decision) -> bool:
    return any(step.rule == "selector" and step.verdict == "chosen" for step in decision.resolution.steps)


def _builtin(decision: Decision) -> Headline:
    resolution, label = decision.resolution, decision.policy.label
    what = "the base SRTPlatform (device unknown)" if resolution.name == "base" else f"the built-in platform {resolution.name}"
    failed = failures(decision)
    asked = [step for step in resolution.steps if step.rule == "activate"]
    if failed:
        causes = "; ".join(f"{step.subject}: {step.why.removesuffix(GOES_ON)}" for step in failed)
        text = f"{label} falls back to {what}, because {len(failed)} of {counted(len(asked), 'platform plugin')} failed: {causes}"
        return Headline(text, "bad", f"to make the failure fatal: export {decision.policy.selector}={failed[0].subject}")
    hidden = [step for step in resolution.steps if step.rule == "allowlist" and step.verdict == "skipped"]
    if hidden:
        names = ", ".join(step.subject for step in hidden)
        plural = "s" if len(hidden) > 1 else ""
        text = f"{label} falls back to {what}: {decision.policy.allowlist} leaves out the platform plugin{plural} {names}"
        return Headline(
            text,
            "warn",
            f"add {hidden[0].subject} to {decision.policy.allowlist}, or: export {decision.policy.selector}={hidden[0].subject}",
        )
    if _is_selected(decision):
        return Headline(f"{label} will use {what} ({resolution.qualname}), selected by {decision.policy.selector}", "good")
    why = "no installed platform plugin is active here" if asked else "no platform plugin is installed"
    if any(step.rule == "import" for step in resolution.steps):
        return Headline(f"{label} would use {what} ({resolution.qualname}), but `import sglang` would fail before that", "bad")
    return Headline(f"{label} will use {what} ({resolution.qualname}): {why}", "good")


def failures(decision: Decision) -> list[Step]:
    """Return the steps in which a platform plugin failed and the runtime went on."""
    return [step for step in decision.resolution.steps if step.rule == "activate" and step.verdict == "failed"]


def warnings(decision: Decision) -> list[str]:
    """Return what failed or was left out on the way although a platform was found, one line each."""
    label = decision.policy.label
    lines = []
    for step in decision.resolution.steps:
        if step.rule == "activate" and step.verdict == "failed" and decision.resolution.error is None:
            lines.append(f"{label}: platform plugin {step.subject!r}: {step.why}")
        elif step.rule == "allowlist" and step.verdict == "skipped":
            lines.append(f"{label}: platform plugin {step.subject!r} is left out by {decision.policy.allowlist}")
        elif step.verdict in {"shadowed", "unknown", "empty", "doubtful"} and step.rule in {
            "variables",
            "allowlist",
            "effects",
            "source",
            "import",
        }:
            lines.append(f"{label}: {step.subject}: {step.why}")
        elif step.rule == "names" and step.verdict == "skipped":
            lines.append(f"{label}: platform plugin {step.subject!r} of {step.data.get('dist')}: {step.why}")
        elif step.rule == "verify" and step.verdict in {"failed", "differs"}:
            lines.append(f"{label}: {step.subject}: {step.why}")
    lines += [
        f"{label}: hook plugin {choice.candidate.name!r} of the selected platform's own distribution is skipped: {choice.why}"
        for choice in decision.choices
        if choice.verdict == "skipped" and decision.resolution.dist is not None and choice.candidate.dist == decision.resolution.dist
    ]
    absent = {step.data.get("dist") for step in decision.resolution.steps if step.rule == "activate" and step.verdict == "inactive"}
    lines += [
        f"{label}: hook plugin {choice.candidate.name!r} of {choice.candidate.dist} runs although its platform is inactive here"
        for choice in decision.choices
        if choice.verdict == "load" and choice.candidate.dist is not None and choice.candidate.dist in absent
    ]
    lines += [f"{label}: {choice.why}" for choice in decision.choices if choice.verdict == "refused"]
    return lines


def context(survey: Survey) -> str:
    """Return the line that says what was looked at."""
    interpreter, sglang = survey.facts["interpreter"], survey.facts["sglang"]
    where = f"{interpreter['executable']} (Python {interpreter['version']})"
    if survey.has_sglang:
        host = f"SGLang {sglang['version'] or 'of unknown version'} at {sglang['origin']}"
    elif sglang["kind"] == "directory":
        host = f"no SGLang ({sglang['origin']} is a folder of that name, not an installation)"
    else:
        host = "no SGLang"
    rules = f"; {survey.rules}" if survey.rules else ""
    return f"{where}; {host}{rules}"
