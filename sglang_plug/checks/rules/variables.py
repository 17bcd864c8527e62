"""SP1xx: what the environment variables ask for, and whether it can be had."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level
from sglang_plug.checks.world import World, close, find, names, variable
from sglang_plug.core import environ
from sglang_plug.core.policy import NEWEST, SRT, policy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from sglang_plug.checks.model import Finding

BUILTIN_NAMES = {entry.name for rules in (policy("srt", NEWEST), policy("diffusion", NEWEST)) for entry in rules.builtins}
#: Names that people write and nobody reads -> the variable they mean.
MISNOMERS = {
    "SGLANG_DIFFUSION_PLATFORM": environ.DIFFUSION_PLATFORM,
    "SGLANG_DIFFUSION_OVERRIDE": environ.DIFFUSION_PLATFORM,
    "SGLANG_PLATFORM_OVERRIDE": environ.PLATFORM,
    "SGLANG_SRT_PLATFORM": environ.PLATFORM,
    "SGLANG_PLATFORM_PLUGIN": environ.PLATFORM,
    "SGLANG_PLATFORM_PLUGINS": environ.PLATFORM,
    "SGLANG_SRT_PLUGINS": environ.PLUGINS,
    "SGLANG_GENERAL_PLUGINS": environ.PLUGINS,
    "SGLANG_DIFFUSION_PLUGINS": environ.PLUGINS,
    "SGLANG_ALLOWED_PLUGINS": environ.PLUGINS,
    "SGLANG_PLUGIN_ALLOWLIST": environ.PLUGINS,
    "SGLANG_PLUGINS_ALLOWLIST": environ.PLUGINS,
    "SGLANG_ENABLED_PLUGINS": environ.PLUGINS,
    "SGLANG_MULTIMODAL_GEN_PLATFORM": environ.DIFFUSION_PLATFORM,
    "SGLANG_MULTIMODAL_GEN_PLATFORM_OVERRIDE": environ.DIFFUSION_PLATFORM,
    "SGLANG_CPU_ENGINE": environ.CPU_ENGINE,
}


_ALL = {"all", "*", "none", "0", "1", "true", "false", "no", "yes", "off", "on", "any"}


def platform_unknown(world: World) -> Iterator[Finding]:
    """SP101: SRT takes entry-point names only, exactly as written."""
    value = world.settings.platform
    known = [entry.name for entry in world.of("platform", "srt")]
    if "srt" not in world.runtimes or not value or value in known:
        return
    cause, hint = _why_unknown(world, value, known)
    yield find(
        "SP101",
        variable(_written_as(world, environ.PLATFORM), value),
        f"SGLANG_PLATFORM={value!r} names no installed platform (installed: {names(known) or 'none'}): `import sglang` raises RuntimeError",
        cause=cause,
        hint=hint,
    )


def _why_unknown(world: World, value: str, known: Sequence[str]) -> tuple[str | None, str]:
    unset = "to let SGLang choose: unset SGLANG_PLATFORM"
    folded = {name.lower(): name for name in known}
    if value.strip() != value and value.strip() in known:
        return "the value has blanks around it, and SGLang does not trim it", f"export SGLANG_PLATFORM={value.strip()}"
    if value.strip().lower() in folded:
        meant = folded[value.strip().lower()]
        return f"upper and lower case count; the installed one is '{meant}'", f"export SGLANG_PLATFORM={meant}"
    if value.strip().lower() in BUILTIN_NAMES:
        return f"'{value.strip()}' is built in: only the diffusion selector takes it by name, SRT finds it by itself", unset
    if any(entry.name == value for entry in world.of("platform", "diffusion")):
        return f"'{value}' is a diffusion platform", f"export SGLANG_DIFFUSION_PLATFORM_OVERRIDE={value}"
    dists = {entry.dist: entry.name for entry in world.of("platform", "srt")}
    if value in dists:
        return f"'{value}' is a distribution; its entry point is '{dists[value]}'", f"export SGLANG_PLATFORM={dists[value]}"
    if any(entry.name == value for entry in world.others):
        other = next(entry for entry in world.others if entry.name == value)
        return f"{other.dist} declares it in the group {other.group!r}, which SGLang does not read", f"declare it in {SRT.platform_group}"
    first = next((part for part in re.split(r"[\s,;:|]+", value) if part in known), None)
    if first is not None:
        return "it takes the name of one entry point, and nothing else", f"export SGLANG_PLATFORM={first}"
    near = close(value, known)
    return None, f"did you mean '{near}'? export SGLANG_PLATFORM={near}" if near else f"install the package that provides it, or {unset}"


def override_unknown(world: World) -> Iterator[Finding]:
    """SP102: diffusion takes built-in names in any case, and entry-point names exactly."""
    decision = world.decisions.get("diffusion")
    value = (world.settings.diffusion_platform or "").strip()
    if decision is None or not value:
        return
    known = [entry.name for entry in world.of("platform", "diffusion")]
    aliases = sorted(decision.policy.aliases)
    if value in known or value.lower() in decision.policy.aliases:
        return
    near = close(value, [*known, *aliases])
    srt = any(entry.name == value for entry in world.of("platform", "srt")) if "srt" in world.runtimes else False
    yield find(
        "SP102",
        variable(_written_as(world, environ.DIFFUSION_PLATFORM), value),
        f"SGLANG_DIFFUSION_PLATFORM_OVERRIDE={value!r} names neither an installed diffusion platform (installed: {names(known) or 'none'}) "
        f"nor a built-in one ({', '.join(aliases)})",
        cause=f"'{value}' is a platform of the SRT runtime" if srt else None,
        hint=f"did you mean '{near}'? export SGLANG_DIFFUSION_PLATFORM_OVERRIDE={near}"
        if near
        else "unset SGLANG_DIFFUSION_PLATFORM_OVERRIDE",
    )


def allowlist_unknown(world: World) -> Iterator[Finding]:
    """SP103: the allowlist holds entry-point names, exactly; what matches nothing is not reported by SGLang."""
    allowed = world.settings.plugins
    if not allowed:
        return
    known = sorted({entry.name for entry in world.entries if entry.kind in {"platform", "hook plugin"}})
    for name in sorted(allowed - set(known)):
        cause, hint = _why_not_allowed(world, name, known)
        yield find(
            "SP103",
            variable(_written_as(world, environ.PLUGINS), name),
            f"SGLANG_PLUGINS names {name!r}, which is no installed plugin (installed: {names(known) or 'none'}); SGLang says nothing",
            cause=cause,
            hint=hint,
        )


def _why_not_allowed(world: World, name: str, known: Sequence[str]) -> tuple[str | None, str]:
    bare = name.strip("'\"")
    if bare != name and bare in known:
        return "the quotes are part of the value", f"export SGLANG_PLUGINS={bare}"
    parts = [part for part in re.split(r"[\s;:|]+", bare) if part]
    if len(parts) > 1 and parts[0] in known and any(entry.value.endswith(f":{parts[1]}") for entry in world.entries):
        return "the name alone counts, not the function", f"write {parts[0]}"
    if len(parts) > 1 and set(parts) & set(known):
        return "names are separated by commas", f"export SGLANG_PLUGINS={','.join(parts)}"
    folded = {other.lower(): other for other in known}
    if bare.lower() in folded:
        return "upper and lower case count", f"write {folded[bare.lower()]}"
    normal = re.sub(r"[-_.]+", "-", bare).lower()
    owned = [entry.name for entry in world.entries if re.sub(r"[-_.]+", "-", entry.dist).lower() == normal]
    if owned:
        return f"{name!r} is a distribution; its entry point is {names(owned)}", f"export SGLANG_PLUGINS={','.join(dict.fromkeys(owned))}"
    if any(entry.module.partition(".")[0] == bare for entry in world.entries):
        entry = next(entry for entry in world.entries if entry.module.partition(".")[0] == bare)
        return f"{name!r} is a module; the entry point is '{entry.name}'", f"export SGLANG_PLUGINS={entry.name}"
    if bare.lower() in _ALL:
        return "it has no names for all or for none", "to load all: unset SGLANG_PLUGINS; to load none: export SGLANG_PLUGINS=,"
    near = close(bare, known)
    return None, f"did you mean '{near}'?" if near else "remove it, or install the package that provides it"


def allowlist_empty(world: World) -> Iterator[Finding]:
    """SP104: separators only load nothing, while an empty text loads everything."""
    if world.settings.plugins is not None and not world.settings.plugins:
        yield find(
            "SP104",
            variable(_written_as(world, environ.PLUGINS), world.settings.raw.get(_written_as(world, environ.PLUGINS), "")),
            "SGLANG_PLUGINS holds separators only: no hook plugin is loaded, and no platform is found automatically",
            cause="an unset or empty variable loads every plugin; only separators load none",
            hint="unset SGLANG_PLUGINS to load all plugins",
            level=None if world.entries else Level.INFO,
        )


def allowlist_hides_platform(world: World) -> Iterator[Finding]:
    """SP105: in SRT the allowlist also filters automatic platform discovery."""
    allowed = world.settings.plugins
    decision = world.decisions.get("srt")
    if allowed is None or world.settings.platform or decision is None or not decision.policy.allowlist_filters_platforms:
        return
    chosen = decision.resolution.outcome == "plugin"
    fallback = decision.resolution.name or "an error"
    for entry in world.of("platform", "srt"):
        if entry.name not in allowed:
            result = f"'{decision.resolution.name}' runs" if chosen else f"the built-in platform '{fallback}' runs instead"
            yield find(
                "SP105",
                entry.subject(),
                f"SGLANG_PLUGINS does not list '{entry.name}', so {entry.label} is not even imported: {result}",
                hint=f"export SGLANG_PLATFORM={entry.name}, or add '{entry.name}' to SGLANG_PLUGINS",
                level=Level.INFO if chosen else None,
            )


def allowlist_drops_own_hooks(world: World) -> Iterator[Finding]:
    """SP106: the selected platform's package brings hooks that the allowlist leaves out."""
    allowed = world.settings.plugins
    if allowed is None:
        return
    for runtime, decision in world.decisions.items():
        if decision.resolution.outcome != "plugin":
            continue
        lost = [e.name for e in world.of("hook plugin", runtime) if e.row["dist"] == decision.resolution.dist and e.name not in allowed]
        if lost:
            yield find(
                "SP106",
                variable(_written_as(world, environ.PLUGINS)),
                f"SGLANG_PLUGINS leaves out {names(lost)} of {decision.resolution.dist}, the package of the selected platform "
                f"'{decision.resolution.name}': it runs without its own hooks",
                hint=f"add {', '.join(lost)} to SGLANG_PLUGINS",
            )


def old_alias(world: World) -> Iterator[Finding]:
    """SP107: SGLang copies SGL_X over SGLANG_X."""
    for name, alias in world.settings.shadowed.items():
        value = world.settings.raw.get(alias, "")
        yield find(
            "SP107",
            variable(alias, value),
            f"{alias}={value!r} overrides {name}={world.environment.env.get(name, '')!r} inside SGLang: {value!r} counts",
            hint=f"unset {alias}",
        )
    for alias, value in world.settings.raw.items():
        if alias.startswith("SGL_") and alias not in world.settings.shadowed.values():
            name = alias.replace("SGL_", "SGLANG_", 1)
            yield find(
                "SP107",
                variable(alias, value),
                f"{alias} is the old name of {name}; SGLang still reads it, with a warning",
                hint=f"unset {alias}; export {name}={shlex.quote(value)}" if value else f"unset {alias}",
                level=Level.INFO,
            )


def misspelt_variable(world: World) -> Iterator[Finding]:
    """SP108: near misses of the variables that select plugins."""
    real = world.catalogue.environment if world.catalogue is not None else frozenset()
    for name, meant in near_misses(world.environment.env, real):
        value = world.environment.env[name]
        yield find(
            "SP108",
            variable(name, value),
            f"{name} is read by nobody; did you mean {meant}?",
            hint=f"unset {shlex.quote(name)}; export {meant}={shlex.quote(value)}" if value else f"unset {shlex.quote(name)}",
        )
    value = world.environment.env.get("VLLM_PLUGINS", "")
    hit = sorted({entry.name for entry in world.entries if entry.name} & {part.strip() for part in value.split(",")})
    if hit:
        yield find(
            "SP108",
            variable("VLLM_PLUGINS", value),
            f"VLLM_PLUGINS names {names(hit)}, but SGLang reads SGLANG_PLUGINS only",
            hint=f"export SGLANG_PLUGINS={value}",
        )


def near_misses(env: Mapping[str, str], real: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return each variable of `env` that resembles one that selects plugins, with the one meant; `real` are SGLang's own names."""
    found = [(name, misspelling(name)) for name in sorted(env) if name not in real]
    return [(name, meant) for name, meant in found if meant is not None]


def misspelling(name: str) -> str | None:
    """Return the variable that a near miss means; None for SGLang's own variables, and for all that resemble none."""
    aliases = {known.replace("SGLANG_", "SGL_", 1) for known in environ.VARIABLES}
    if name in environ.VARIABLES or name in aliases:
        return None
    upper = name.upper().replace("-", "_")
    if upper in environ.VARIABLES:
        return upper
    if upper in MISNOMERS:
        return MISNOMERS[upper]
    if not upper.startswith(("SG", "GL", "SL", "SLG")):
        return None
    short = next((known for known in environ.VARIABLES if distance(upper, known.replace("SGLANG_", "SGL_", 1)) == 1), None)
    return next((known for known in environ.VARIABLES if distance(upper, known) <= 2), short)


def distance(left: str, right: str) -> int:
    """Return how many insertions, deletions, changes and swaps of neighbours lead from one text to the other; 3 stands for more than 2."""
    if abs(len(left) - len(right)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        earlier, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return min(row[-1], 3)


def cpu_engine_unread(world: World) -> Iterator[Finding]:
    """SP110: SRT compares the text with `1`, and with nothing else."""
    name = _written_as(world, environ.CPU_ENGINE)
    value = world.settings.raw.get(name, "")
    if "srt" in world.runtimes and value and not world.settings.cpu_engine and value.strip().lower() not in {"0", "false", "no", "off"}:
        yield find(
            "SP110",
            variable(name, value),
            f"{name}={value!r} counts as unset: SRT's choice of a platform takes the text '1' alone",
            hint=f"export {environ.CPU_ENGINE}=1",
        )


def _written_as(world: World, name: str) -> str:
    """Return the variable that sets `name`: itself or its old alias."""
    alias = name.replace("SGLANG_", "SGL_", 1)
    return alias if alias in world.settings.raw else name


RULES = (
    platform_unknown,
    override_unknown,
    allowlist_unknown,
    allowlist_empty,
    allowlist_hides_platform,
    allowlist_drops_own_hooks,
    old_alias,
    misspelt_variable,
    cpu_engine_unread,
)
