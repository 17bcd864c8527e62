"""Which platform each runtime would use in an environment, and why: one child is asked once for all. Never imports sglang or a plugin."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sglang_plug.core import environ
from sglang_plug.core.policy import NEWEST, POLICIES, policy
from sglang_plug.core.resolution import Failure, Resolution, Step
from sglang_plug.probe import headstart
from sglang_plug.probe.inquiry import Decision, Inquiry, Limits
from sglang_plug.probe.parent import Probe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sglang_plug.core.environ import Settings
    from sglang_plug.probe.environment import Environment

RESOLVES_AT_IMPORT = (0, 5, 13)  # since then `import sglang` itself selects the SRT platform
UNINSTALLED = "no SGLang is installed there"


@dataclass(frozen=True)
class Survey:
    """What was found in an environment, and decided for it.

    Attributes:
        facts: the child's answer to `environment`: interpreter, sglang, entry points, problems, shadowed distributions.
        settings: the variables that count.
        release: the SGLang release whose rules were applied.
        assumed: why that release, where no installed SGLang says it; None where one does.
        decisions: by runtime.
    """

    facts: Mapping[str, Any]
    settings: Settings
    release: str
    assumed: str | None
    decisions: Mapping[str, Decision]

    @property
    def has_sglang(self) -> bool:
        """Whether a real SGLang is installed there."""
        return self.facts["sglang"]["kind"] in {"installed", "source"}

    @property
    def rules(self) -> str | None:
        """By whose rules it was decided, in words; None where those are the installed release's own."""
        if numbers(self.release) > numbers(NEWEST):
            return f"by the rules of SGLang {NEWEST}: those of {self.release} are not known to this sglang-plug"
        why = "the newest known" if self.assumed == UNINSTALLED else self.assumed
        return f"by the rules of SGLang {self.release}, {why}" if why else None


def decide(
    environment: Environment, runtimes: Iterable[str], *, release: str | None = None, verify: bool = False, limits: Limits | None = None
) -> dict[str, Resolution]:
    """Return each runtime's resolution in an environment.

    Args:
        environment: where to look.
        runtimes: `srt`, `diffusion`.
        release: by whose rules; None takes the installed SGLang's, or the newest known.
        verify: also run the host in a child; a difference is an error.
        limits: for strangers' code.

    Raises:
        ProbeError: the interpreter cannot be inspected.
        CatalogueError: the release is unknown or has no plugin system.
    """
    found = survey(environment, runtimes, release=release, verify=verify, limits=limits)
    return {runtime: decision.resolution for runtime, decision in found.decisions.items()}


def survey(
    environment: Environment,
    runtimes: Iterable[str],
    *,
    release: str | None = None,
    verify: bool = False,
    limits: Limits | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Survey:
    """Look, decide and return everything; see `decide` for the arguments and what is raised. `progress` is told what takes long."""
    settings = environ.read(environment.env)
    with headstart.take(environment) as probe:
        facts = probe.require(headstart.FIRST)
        chosen, assumed = choose_release(facts["sglang"], release)
        inquiry = Inquiry(probe, facts, settings, chosen, limits or Limits())
        inquiry.progress = progress
        decisions = {runtime: inquiry.decide(runtime) for runtime in runtimes}
        _break_import(inquiry, decisions, known=assumed is None or release is not None)
        if verify:
            from sglang_plug.probe import verification

            decisions = verification.verify(inquiry, decisions)
    return Survey(facts, settings, chosen, assumed, decisions)


def runtimes_with(environment: Environment, platform: str, runtimes: Sequence[str]) -> tuple[str, ...]:
    """Return those of `runtimes` in which a platform of that name is installed or built in; all of them where none knows it.

    Raises:
        ProbeError: the interpreter cannot be inspected.
    """
    with Probe(environment) as probe:
        rows = probe.require({"op": "environment"})["entry_points"]
    owned = {row["group"] for row in rows if row["name"] == platform}
    known = [name for name in runtimes if POLICIES[name].platform_group in owned or platform.strip().lower() in POLICIES[name].aliases]
    return tuple(known or runtimes)


def choose_release(sglang: Mapping[str, Any], wanted: str | None) -> tuple[str, str | None]:
    """Return the release whose rules count, and why it is assumed where no installed SGLang says it.

    Raises:
        CatalogueError: `wanted` is no release that is known, or one without a plugin system.
    """
    if wanted is not None:
        return _asked_for(wanted.strip().removeprefix("v"))
    version = sglang["version"]
    if sglang["kind"] not in {"installed", "source"}:
        return NEWEST, UNINSTALLED
    if version is None or numbers(version) < (0, 1):
        return NEWEST, f"the installed SGLang says {version or 'no version'}"
    return version, None


def _asked_for(wanted: str) -> tuple[str, str]:
    from sglang_plug.contract import catalogue

    if wanted in {"newest", "latest"}:
        return catalogue.newest(), f"the {wanted} known"
    policy("srt", wanted)  # says what is wrong with a text that is no version, and with a release before the plugin system
    known = catalogue.named(wanted)
    return known, "asked for" if known == wanted else f"which stand for {wanted}"


def numbers(release: str) -> tuple[int, ...]:
    """Return the first numbers of a version, to compare."""
    return tuple(int(part) for part in re.findall(r"\d+", release.split("+", maxsplit=1)[0])[:3])


def _break_import(inquiry: Inquiry, decisions: dict[str, Decision], *, known: bool) -> None:
    """Since 0.5.13 `import sglang` selects the SRT platform: where that fails, diffusion does not start either."""
    if "diffusion" not in decisions or numbers(inquiry.release) < RESOLVES_AT_IMPORT:
        return
    srt = decisions.get("srt") or inquiry.decide("srt")
    own = decisions["diffusion"]
    if srt.resolution.error is None:
        return
    cause = srt.resolution.error
    why = f"importing sglang selects the SRT platform first, and that fails: {cause.type}: {cause.message}"
    step = Step("import", "import sglang", "failed" if known else "doubtful", why)
    resolution = replace(own.resolution, steps=(*own.resolution.steps, step))
    if known:
        message = "`import sglang` fails before diffusion selects a platform"
        hints = [failure.hint for failure in (cause, own.resolution.error) if failure is not None and failure.hint]
        failure = Failure(cause.type, message, cause=f"{cause.type}: {cause.message}", hint="; then: ".join(dict.fromkeys(hints)) or None)
        resolution = replace(resolution, outcome="error", error=failure)
    decisions["diffusion"] = replace(own, resolution=resolution)
