"""Loading of SRT hook plugins: a face of the core's runtime, under upstream's names, which its tests may patch here."""

from __future__ import annotations

import logging
import threading
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from sglang_plug.core import entrypoints, environ, process
from sglang_plug.core.admission import Choice, plugins_to_load
from sglang_plug.core.entrypoints import SRT_PLATFORMS as PLATFORM_PLUGINS_GROUP
from sglang_plug.core.entrypoints import SRT_PLUGINS as GENERAL_PLUGINS_GROUP
from sglang_plug.core.entrypoints import Candidate

from ..environ import envs
from .hook_registry import HookRegistry, HookSource, _current_plugin_source

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "GENERAL_PLUGINS_GROUP",
    "PLATFORM_PLUGINS_GROUP",
    "HookRegistry",
    "HookSource",
    "_current_plugin_source",
    "load_plugins",
    "load_plugins_by_group",
]

logger = logging.getLogger(__name__)

_plugins_loaded = False  # upstream's flag, which tests set
_begun = False  # whether it was set here
_flag = threading.Lock()


def load_plugins() -> None:
    """Import and run the installed hook plugins and apply their hooks, once per process. A plugin that fails is logged."""
    global _plugins_loaded, _begun  # noqa: PLW0603 - upstream's flag
    with _flag:
        if _plugins_loaded and not _begun:
            return
        if _begun and not _plugins_loaded:
            process.srt.reset_plugins()
        _plugins_loaded = _begun = True
    process.srt.load = _load
    process.srt.load_plugins()


def _load() -> None:
    for name, (callback, dist) in load_plugins_by_group(GENERAL_PLUGINS_GROUP, _get_excluded_dists()).items():
        process.srt.run_plugin(Choice(Candidate(name, "", GENERAL_PLUGINS_GROUP, dist), "load", "installed"), callback)
    HookRegistry.apply_hooks()


def load_plugins_by_group(group: str, excluded_dists: set[str] | None = None) -> dict[str, tuple[Callable[[], Any], str | None]]:
    """Import the allowed entry points of `group` and return each name's object and distribution; of equal names the last stays.

    One that cannot be imported is logged.
    """
    allowed = environ.settings(plugins=envs.SGLANG_PLUGINS.get()).plugins
    loaded: dict[str, tuple[Callable[[], Any], str | None]] = {}
    candidates = entrypoints.installed(group, entry_points)
    if candidates:
        process.srt.announce(logger, group, candidates)
    for candidate in candidates:
        if allowed is not None and candidate.name not in allowed:
            logger.info("Skipping plugin %s (not in SGLANG_PLUGINS)", candidate.name)
        elif excluded_dists and candidate.dist in excluded_dists:
            logger.info("Skipping plugin %s (dist %s excluded by SGLANG_PLATFORM)", candidate.name, candidate.dist)
        else:
            try:
                loaded[candidate.name] = (entrypoints.load(candidate), candidate.dist)
                logger.info("Loaded plugin %s from group %s", candidate.name, group)
            except Exception:
                logger.exception("Failed to load plugin %s from group %s", candidate.name, group)
    return loaded


def _get_excluded_dists() -> set[str]:
    """Return the distributions of platforms that SGLANG_PLATFORM does not select."""
    platforms = entrypoints.installed(PLATFORM_PLUGINS_GROUP, entry_points)
    asked = environ.settings(platform=envs.SGLANG_PLATFORM.get())
    choices = plugins_to_load(process.srt.policy, asked, platforms, platforms)
    return {choice.candidate.dist for choice in choices if choice.verdict == "skipped" and choice.candidate.dist}
