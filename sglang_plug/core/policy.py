"""How the two runtimes differ, as data, dated by release. Owns every difference; holds no behaviour and reads nothing.

Values here and below are named tuples, not dataclasses: importing `dataclasses` alone costs a third of the core's import budget.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sglang_plug.core import entrypoints, environ
from sglang_plug.errors import CatalogueError


class Builtin(NamedTuple):
    """A platform that ships with the runtime.

    Attributes:
        name: its short name (`cpu`, `cuda`, …; `base` for the bare SRT platform).
        qualname: its class.
        device_name: what the class calls its device.
        device_type: the torch device type.
        enum: the member of the runtime's `PlatformEnum`.
        detector: the probe in `core.detect` that tells whether its hardware is there.
    """

    name: str
    qualname: str
    device_name: str
    device_type: str
    enum: str
    detector: str


#: Where each runtime's `HookRegistry`, `HookType` and `plugin_hook` are imported from.
REGISTRIES = {"srt": "sglang.srt.plugins.hook_registry", "diffusion": "sglang.multimodal_gen.runtime.platforms.plugins"}


class Loggers(NamedTuple):
    """Upstream's logger names, which operators filter by."""

    platforms: str
    plugins: str
    hooks: str = REGISTRIES["srt"]


class Policy(NamedTuple):
    """One runtime's answers along the common walk: select, load, apply, init.

    Attributes:
        runtime: `srt` or `diffusion`.
        release: the SGLang release it describes, or `document`.
        label: the word that messages use for the runtime.
        selector: the variable that selects a platform; None where the release reads none.
        trims_selector: surrounding spaces of the selector and of a returned class name are dropped.
        platform_group, hook_group: entry-point groups; None before the release that introduced them.
        allowlist_filters_platforms: `SGLANG_PLUGINS` also filters automatic platform discovery.
        aliases: built-in names that the selector takes without probing hardware.
        reserved: names that no platform entry point may have.
        unique_names: equal names of platforms, and of plugins, are refused; else the last one wins.
        open_activation: automatic selection logs a callback that raises and goes on; else startup aborts.
        imports_first: automatic selection imports every plugin before it calls the first; else one after the other.
        unknown_selector: the built-in error type for a selector that names nothing.
        checks_return: a callback must return a non-empty text or None; else anything but None counts as active.
        builtins: the fallbacks in the order in which they are tried.
        base: what remains when no fallback's hardware is there; None where the last built-in always is.
        platform_class: the class that a platform derives from.
        oot_enum: the value that `_enum` of an external platform must be; None where that is not checked.
        required_attributes: texts that an external platform must define.
        required_dist: plugins of the selected platform's distribution must load, run and apply.
        excludes_by_selector: the distributions to skip follow from the selector; else from the selected platform.
        excludes_own_dist: a distribution with a second, unselected platform name loses its own plugins (a flaw of the releases).
        applies_on_load: loading applies the hooks at once; else that is a phase of its own.
        names_imports: hooks registered while a plugin's module is imported belong to that plugin.
        discards_failed: the hooks of a plugin that fails are dropped.
    """

    runtime: str
    release: str
    label: str
    selector: str | None
    trims_selector: bool
    platform_group: str | None
    hook_group: str | None
    allowlist_filters_platforms: bool
    aliases: frozenset[str]
    reserved: frozenset[str]
    unique_names: bool
    open_activation: bool
    imports_first: bool
    unknown_selector: str
    checks_return: bool
    builtins: tuple[Builtin, ...]
    base: Builtin | None
    platform_class: str
    oot_enum: str | None
    required_attributes: tuple[str, ...]
    required_dist: bool
    excludes_by_selector: bool
    excludes_own_dist: bool
    applies_on_load: bool
    names_imports: bool
    discards_failed: bool
    loggers: Loggers
    allowlist: str = environ.PLUGINS

    def builtin(self, name: str) -> Builtin:
        """Return the built-in platform `name`.

        Raises:
            KeyError: this runtime has none of that name.
        """
        known = (*self.builtins, self.base) if self.base else self.builtins
        return {entry.name: entry for entry in known}[name]


def _srt(name: str, cls: str, detector: str, device_type: str | None = None) -> Builtin:
    return Builtin(name, f"sglang.srt.platforms.{name}.{cls}", name, device_type or name, name.upper(), detector)


def _diffusion(name: str, cls: str, detector: str, device_type: str | None = None) -> Builtin:
    return Builtin(name, f"sglang.multimodal_gen.runtime.platforms.{name}.{cls}", name, device_type or name, name.upper(), detector)


_SRT_BUILTINS = {
    entry.name: entry
    for entry in (
        _srt("cpu", "CpuSRTPlatform", "cpu-engine"),
        _srt("sail", "SailSRTPlatform", "torch-sail", "cuda"),
        _srt("cuda", "CudaSRTPlatform", "torch-cuda"),
        _srt("npu", "NPUSRTPlatform", "torch-npu"),
        _srt("rocm", "RocmSRTPlatform", "torch-rocm", "cuda"),
        _srt("xpu", "XpuSRTPlatform", "torch-xpu"),
        _srt("musa", "MusaSRTPlatform", "torch-musa"),
        _srt("mps", "MpsSRTPlatform", "torch-mps"),
    )
}
_SRT_BASE = Builtin("base", "sglang.srt.platforms.interface.SRTPlatform", "unknown", "cpu", "UNSPECIFIED", "always")
# The detection order of every release since 0.5.11, and of the document.
_DIFFUSION_BUILTINS = (
    _diffusion("mps", "MpsPlatform", "torch-mps-backend"),
    _diffusion("xpu", "XpuPlatform", "torch-xpu-devices"),
    _diffusion("rocm", "RocmPlatform", "amdsmi", "cuda"),
    _diffusion("cuda", "CudaPlatform", "nvml"),
    _diffusion("npu", "NPUPlatformBase", "torch-npu-loose"),
    _diffusion("musa", "MusaPlatform", "mtml"),
    _diffusion("cpu", "CpuPlatform", "always"),
)
_RESERVED = frozenset({"cpu", "cuda", "rocm", "xpu", "mps", "npu", "musa"})


def _chain(*names: str) -> tuple[Builtin, ...]:
    return tuple(_SRT_BUILTINS[name] for name in names)


SRT = Policy(
    runtime="srt",
    release="document",
    label="SRT",
    selector=environ.PLATFORM,
    trims_selector=False,
    platform_group=entrypoints.SRT_PLATFORMS,
    hook_group=entrypoints.SRT_PLUGINS,
    allowlist_filters_platforms=True,
    aliases=frozenset(),
    reserved=frozenset(),
    unique_names=False,
    open_activation=True,
    imports_first=True,
    unknown_selector="RuntimeError",
    checks_return=False,
    builtins=_chain("cpu", "cuda", "rocm", "xpu"),
    base=_SRT_BASE,
    platform_class="sglang.srt.platforms.interface.SRTPlatform",
    oot_enum=None,
    required_attributes=(),
    required_dist=False,
    excludes_by_selector=True,
    excludes_own_dist=False,
    applies_on_load=True,
    names_imports=False,
    discards_failed=False,
    loggers=Loggers("sglang.srt.platforms", "sglang.srt.plugins"),
)

DIFFUSION = Policy(
    runtime="diffusion",
    release="document",
    label="Diffusion",
    selector=environ.DIFFUSION_PLATFORM,
    trims_selector=True,
    platform_group=entrypoints.DIFFUSION_PLATFORMS,
    hook_group=entrypoints.DIFFUSION_PLUGINS,
    allowlist_filters_platforms=False,
    aliases=_RESERVED - {"xpu"},
    reserved=_RESERVED,
    unique_names=True,
    open_activation=False,
    imports_first=False,
    unknown_selector="ValueError",
    checks_return=True,
    builtins=_DIFFUSION_BUILTINS,
    base=None,
    platform_class="sglang.multimodal_gen.runtime.platforms.interface.Platform",
    oot_enum="sglang.multimodal_gen.runtime.platforms.interface.PlatformEnum.OOT",
    required_attributes=("device_name", "device_type"),
    required_dist=True,
    excludes_by_selector=False,
    excludes_own_dist=False,
    applies_on_load=False,
    names_imports=True,
    discards_failed=True,
    loggers=Loggers("sglang.multimodal_gen.runtime.platforms", "sglang.multimodal_gen.runtime.platforms.plugins"),
)

POLICIES = {"srt": SRT, "diffusion": DIFFUSION}

# When each fallback list of SRT came in; later rows win.
_SRT_CHAINS: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...] = (
    ((0, 5, 11), ()),
    ((0, 5, 13), ("cuda", "rocm")),
    ((0, 5, 14), ("cpu", "cuda", "rocm")),
    ((0, 5, 17), ("cpu", "cuda", "rocm", "xpu")),
    ((0, 5, 20), ("cpu", "cuda", "npu", "rocm", "xpu")),
    ((0, 5, 22), ("cpu", "cuda", "npu", "rocm", "xpu", "musa", "mps")),
    ((0, 5, 23), ("cpu", "sail", "cuda", "npu", "rocm", "xpu", "musa", "mps")),
)
NEWEST = ".".join(map(str, _SRT_CHAINS[-1][0]))  # the newest release whose rules are known
_VERSION = re.compile(r"v?(\d+(?:\.\d+)*)")


def policy(runtime: str, release: str | None = None) -> Policy:
    """Return the policy of `runtime`: the document's, or the one that `release` of SGLang keeps.

    A release newer than the newest known one is read as that; suffixes such as `.post1` and `+local` do not count.

    Raises:
        CatalogueError: no such runtime, not a version, or a release without a plugin system.
    """
    if runtime not in POLICIES:
        raise CatalogueError(f"no such runtime: {runtime!r}", subject=runtime, hint="use one of: " + ", ".join(POLICIES))
    if release is None or release == "document":
        return POLICIES[runtime]
    number = _number(release)
    if number < (0, 5, 11):
        raise CatalogueError(f"SGLang {release} has no plugin system", subject=release, hint="it came with 0.5.11")
    return _srt_at(number, release) if runtime == "srt" else _diffusion_at(number, release)


def _number(release: str) -> tuple[int, ...]:
    match = _VERSION.match(release.strip())
    if match is None:
        raise CatalogueError(f"not a release of SGLang: {release!r}", subject=release, hint="write it like 0.5.23")
    return tuple(int(part) for part in match[1].split("."))[:3]


def _srt_at(number: tuple[int, ...], release: str) -> Policy:
    names = [row for since, row in _SRT_CHAINS if since <= number][-1]
    return SRT._replace(release=release, builtins=_chain(*names), excludes_own_dist=True)


def _diffusion_at(number: tuple[int, ...], release: str) -> Policy:
    dated = DIFFUSION._replace(release=release, aliases=_RESERVED if number >= (0, 5, 20) else DIFFUSION.aliases)
    if number < (0, 5, 17):
        strict = tuple(entry._replace(detector="nvml-only") if entry.name == "cuda" else entry for entry in dated.builtins)
        dated = dated._replace(builtins=strict)
    if number < (0, 5, 21):
        dated = dated._replace(platform_group=None, hook_group=None, reserved=frozenset())
    if number < (0, 5, 13):
        dated = dated._replace(selector=None, aliases=frozenset())
    return dated
