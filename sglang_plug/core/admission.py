"""Which hook plugins a runtime loads, skips or refuses (S3.3, S4.4, S5). Pure: metadata and settings in, choices out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sglang_plug.core.entrypoints import Candidate
    from sglang_plug.core.environ import Settings
    from sglang_plug.core.policy import Policy
    from sglang_plug.core.resolution import Resolution


@dataclass(frozen=True)
class Choice:
    """What happens to one hook plugin.

    Attributes:
        candidate: its entry point.
        verdict: `load`, `skipped`, `shadowed` (imported, never called: a later one has its name) or `refused` (startup aborts).
        why: the reason in words.
        required: it ships with the selected platform, so its failure aborts startup.
    """

    candidate: Candidate
    verdict: str
    why: str
    required: bool = False


def plugins_to_load(
    policy: Policy,
    settings: Settings,
    candidates: Iterable[Candidate],
    platform_candidates: Iterable[Candidate],
    resolution: Resolution | None = None,
) -> tuple[Choice, ...]:
    """Return what becomes of each hook plugin, in enumeration order.

    Args:
        policy: the runtime's rules.
        settings: what the environment asks for.
        candidates: the installed hook entry points.
        platform_candidates: the installed platform entry points, which tell the platform packages.
        resolution: the platform chosen; needed where the policy excludes by it.
    """
    excluded = _excluded(policy, settings, tuple(platform_candidates), resolution)
    own = resolution.dist if policy.required_dist and resolution is not None and resolution.outcome == "plugin" else None
    choices: list[Choice] = []
    for candidate in candidates:
        required = own is not None and candidate.dist == own
        if settings.plugins is not None and candidate.name not in settings.plugins:
            choices.append(Choice(candidate, "skipped", f"not in {policy.allowlist}", required))
        elif candidate.dist is not None and candidate.dist in excluded:
            choices.append(Choice(candidate, "skipped", excluded[candidate.dist], required))
        else:
            choices.append(Choice(candidate, "load", "ships with the selected platform" if required else "installed", required))
    return _settle_names(policy, choices)


def _excluded(policy: Policy, settings: Settings, platforms: tuple[Candidate, ...], resolution: Resolution | None) -> dict[str, str]:
    """Return the distributions whose plugins are skipped, each with the reason."""
    if policy.excludes_by_selector:
        selected = settings.selector(policy.selector)
        if not selected:
            return {}
        kept = set() if policy.excludes_own_dist else {c.dist for c in platforms if c.name == selected}
        why = "its distribution provides a platform that {} does not select"
        return {c.dist: why.format(policy.selector) for c in platforms if c.dist and c.name != selected and c.dist not in kept}
    chosen = resolution.dist if resolution is not None else None
    return {c.dist: "its distribution provides a platform that is not the selected one" for c in platforms if c.dist and c.dist != chosen}


def _settle_names(policy: Policy, choices: list[Choice]) -> tuple[Choice, ...]:
    last = {choice.candidate.name: index for index, choice in enumerate(choices) if choice.verdict == "load"}
    count = Counter(choice.candidate.name for choice in choices if choice.verdict == "load")
    settled: list[Choice] = []
    for index, choice in enumerate(choices):
        name = choice.candidate.name
        if choice.verdict != "load" or count[name] == 1:
            settled.append(choice)
        elif policy.unique_names:
            why = f"{policy.label} plugin entry-point names must be unique: {name!r}"
            settled.append(Choice(choice.candidate, "refused", why, choice.required))
        elif index != last[name]:
            winner = choices[last[name]].candidate.dist
            why = f"the entry point of {winner} has the same name and wins; this one is imported, never called"
            settled.append(Choice(choice.candidate, "shadowed", why, choice.required))
        else:
            settled.append(choice)
    return tuple(settled)
