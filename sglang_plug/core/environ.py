"""The only reader of SGLANG_* variables. Owns aliases and emptiness; never trims a selector and never writes the environment."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from sglang_plug.errors import BadVariable

if TYPE_CHECKING:
    from collections.abc import Mapping

PLATFORM = "SGLANG_PLATFORM"
DIFFUSION_PLATFORM = "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"
PLUGINS = "SGLANG_PLUGINS"
CPU_ENGINE = "SGLANG_USE_CPU_ENGINE"
_NOTHING: Mapping[str, str] = MappingProxyType({})
VARIABLES = (PLATFORM, DIFFUSION_PLATFORM, PLUGINS, CPU_ENGINE)


class Settings(NamedTuple):
    """What the environment asks for, after aliases.

    Attributes:
        platform: the SRT selector exactly as written; None where unset or empty.
        diffusion_platform: the diffusion selector exactly as written (the policy trims it); None where unset or empty.
        plugins: the allowlist, names trimmed; None where unset or empty, empty for `","`.
        cpu_engine: whether the CPU engine is asked for (the text is exactly `1`).
        raw: every variable that counted, under the name it was set by.
        shadowed: variables that are set and lose, each with the alias that wins over it.
    """

    platform: str | None = None
    diffusion_platform: str | None = None
    plugins: frozenset[str] | None = None
    cpu_engine: bool = False
    raw: Mapping[str, str] = _NOTHING
    shadowed: Mapping[str, str] = _NOTHING

    def selector(self, variable: str | None) -> str | None:
        """Return the value of the selector `variable`; None where it is unset or no release reads it."""
        return {PLATFORM: self.platform, DIFFUSION_PLATFORM: self.diffusion_platform}.get(variable or "")


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of `environ` (this process's by default), where `SGL_X` wins over `SGLANG_X`.

    Raises:
        BadVariable: a value is not text in this system's encoding.
    """
    source = os.environ if environ is None else environ
    effective: dict[str, str] = {}
    raw: dict[str, str] = {}
    shadowed: dict[str, str] = {}
    for name in VARIABLES:
        alias = name.replace("SGLANG_", "SGL_", 1)
        if alias in source:
            effective[name] = raw[alias] = _text(alias, source[alias])
            if name in source:
                shadowed[name] = alias
        elif name in source:
            effective[name] = raw[name] = _text(name, source[name])
    return settings(
        platform=effective.get(PLATFORM),
        diffusion_platform=effective.get(DIFFUSION_PLATFORM),
        plugins=effective.get(PLUGINS),
        cpu_engine=effective.get(CPU_ENGINE),
        raw=raw,
        shadowed=shadowed,
    )


def settings(
    *,
    platform: str | None = None,
    diffusion_platform: str | None = None,
    plugins: str | None = None,
    cpu_engine: str | None = None,
    raw: Mapping[str, str] | None = None,
    shadowed: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings that these texts stand for: what `read` uses, and a face that has its own way to the variables."""
    return Settings(
        platform=platform or None,
        diffusion_platform=diffusion_platform or None,
        plugins=frozenset(name.strip() for name in plugins.split(",") if name.strip()) if plugins else None,
        cpu_engine=cpu_engine == "1",
        raw=raw or _NOTHING,
        shadowed=shadowed or _NOTHING,
    )


def _text(name: str, value: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise BadVariable(f"{name} is not readable text: {value!r}", subject=name, hint=f"set it again, or type: unset {name}")
    return value
