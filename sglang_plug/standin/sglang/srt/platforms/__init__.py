"""`current_platform`, selected on first use: a face of the core's chain, under upstream's names, which its tests may patch here.

Built-in platforms import torch only inside their methods; so does the detection of hardware.
"""

from __future__ import annotations

import pkgutil
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sglang_plug.core import detect, environ, process
from sglang_plug.core.platforms import load_class
from sglang_plug.core.policy import NEWEST, policy
from sglang_plug.core.selection import Detection
from sglang_plug.errors import BadPlatformClass, PlatformUnavailable

from ..environ import envs
from ..plugins import PLATFORM_PLUGINS_GROUP, load_plugins_by_group
from .interface import SRTPlatform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sglang_plug.core.resolution import Resolution

    current_platform: SRTPlatform

_current_platform: SRTPlatform | None = None
_resolution: Resolution | None = None
_runtime = process.srt


def _resolve_platform() -> SRTPlatform:
    """Walk the chain, and import and construct the platform.

    Raises:
        PlatformError: the chain ends in an error, or the class is unusable; derives from the type that SGLang raises.
        Exception: what the selected plugin raises.
    """
    global _resolution
    _runtime.entry_points = _enumerate
    # Names are filtered before: a selection ignores the allowlist, and the automatic way has had it applied by the loader.
    _runtime.settings = lambda: environ.settings(platform=envs.SGLANG_PLATFORM.get())
    _runtime.detect = _detect
    _runtime.load_class = _load
    platform, _resolution = _runtime.create_platform()
    return platform


def _enumerate(group: str) -> Iterable[Any]:
    """Return the platform entry points: all of them for a selection, else those that the loader could import."""
    if envs.SGLANG_PLATFORM.get():
        return entry_points(group=group)
    return [
        SimpleNamespace(name=name, value="", dist=dist and SimpleNamespace(name=dist), load=lambda found=found: found)
        for name, (found, dist) in load_plugins_by_group(PLATFORM_PLUGINS_GROUP).items()
    ]


def _detect(name: str) -> Detection:
    try:
        present = bool(globals()[f"_is_{name}_available"]())
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return Detection(False, "torch is not installed")
    return Detection(present, f"{name} is {'there' if present else 'not there'}")


def _probe(name: str) -> Callable[[], bool]:
    def probe() -> bool:
        return detect.detector(_newest, environ.read())(name).present

    return probe


# A probe for each platform that the newest release tries; the chain asks those of the document.
_newest = policy("srt", NEWEST)
globals().update({f"_is_{builtin.name}_available": _probe(builtin.name) for builtin in _newest.builtins})


def _load(qualname: str, external: bool) -> type[Any]:
    return _load_platform_class(qualname) if external else load_class(_runtime.policy, qualname, external=False)


def _load_platform_class(qualname: str) -> type[SRTPlatform]:
    """Import a platform class, by SGLang's own resolver; where that one hides why, say why.

    Raises:
        BadPlatformClass: no such class, or no SRTPlatform (a TypeError, as in SGLang).
        Exception: what the import of its module raises.
    """
    try:
        found = pkgutil.resolve_name(qualname)
    except AttributeError:
        found = load_class(_runtime.policy, qualname, external=True)  # the resolver turns a failing import into an AttributeError
    if not isinstance(found, type) or not issubclass(found, SRTPlatform):
        raise BadPlatformClass(f"Expected an SRTPlatform subclass, got {type(found)}: {qualname}", subject=qualname)
    return found


def __getattr__(name: str) -> Any:
    """Offer `current_platform`, and `torch` without importing it before it is needed."""
    global _current_platform  # noqa: PLW0603 - upstream's cache, which tests clear
    if name == "current_platform":
        if _current_platform is None:
            _current_platform = _select()
        return _current_platform
    if name == "torch":
        import torch

        return torch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _again() -> tuple[Any, Any]:
    return _resolve_platform(), _resolution  # the first by its name in this module, which tests patch


def _select() -> SRTPlatform:
    if _runtime.selected:
        _runtime.platform = None  # the cache above was cleared
    _runtime.create = _again
    try:
        return _runtime.platform
    except AttributeError as error:  # inside a module's __getattr__, `from … import` would show it as "cannot import name"
        raise PlatformUnavailable(f"the selected platform plugin failed: {error}", cause=repr(error), hint="sglang-plug doctor") from error
