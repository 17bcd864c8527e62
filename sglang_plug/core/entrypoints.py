"""Installed metadata read as candidates. Owns enumeration order and its cache; imports no plugin before `load` is called."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.errors import BrokenMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SRT_PLATFORMS = "sglang.srt.platforms"
SRT_PLUGINS = "sglang.srt.plugins"
DIFFUSION_PLATFORMS = "sglang.multimodal_gen.platforms"
DIFFUSION_PLUGINS = "sglang.multimodal_gen.plugins"
SERVE_BACKENDS = "sglang.serve_backends"
GROUPS = (SRT_PLATFORMS, SRT_PLUGINS, DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, SERVE_BACKENDS)


class Candidate(NamedTuple):
    """One entry point of one distribution, as its metadata spells it.

    Attributes:
        name: the entry point's name.
        value: `module:attribute`.
        group: the entry-point group.
        dist: the distribution's name; None where the entry point does not know it.
        version: the distribution's version.
        entry_point: the object that loads it, where there is one.
    """

    name: str
    value: str
    group: str
    dist: str | None = None
    version: str | None = None
    entry_point: Any = None


def installed(group: str, entry_points: Callable[..., Iterable[Any]] | None = None) -> tuple[Candidate, ...]:
    """Return the candidates of `group` in enumeration order, duplicates kept.

    Args:
        group: the entry-point group.
        entry_points: who enumerates. `importlib.metadata.entry_points`, the default, reads each metadata file at most once
            while the import path stays the same; a face passes the name of its own module, which its tests may patch.

    Raises:
        BrokenMetadata: the metadata of some distribution, be it any, cannot be read.
    """
    from importlib import metadata

    if entry_points is None or entry_points is metadata.entry_points:
        return _scan().candidates(group)
    return tuple(_candidate(entry, group) for entry in entry_points(group=group))


def load(candidate: Candidate) -> Any:
    """Import what the candidate names and return it.

    Raises:
        Exception: whatever the import of the plugin raises, unchanged.
    """
    if candidate.entry_point is not None:
        return candidate.entry_point.load()
    from importlib.metadata import EntryPoint

    return EntryPoint(name=candidate.name, value=candidate.value, group=candidate.group).load()


def _candidate(entry: Any, group: str) -> Candidate:
    dist = getattr(entry, "dist", None)
    name = dist.name if dist else None
    version = getattr(dist, "version", None) if dist else None
    return Candidate(entry.name, entry.value, group, name, version if isinstance(version, str) else None, entry)


class _Scan:
    """One enumeration of everything installed; names of distributions are read only where a group is asked for."""

    def __init__(self, path: object, found: Any) -> None:
        self.path = path
        self._found = found
        self._names: dict[int, tuple[str | None, str | None]] = {}
        self._groups: dict[str, tuple[Candidate, ...]] = {}

    def candidates(self, group: str) -> tuple[Candidate, ...]:
        if group not in self._groups:
            self._groups[group] = tuple(self._read(entry, group) for entry in self._found.select(group=group))
        return self._groups[group]

    def _read(self, entry: Any, group: str) -> Candidate:
        dist = entry.dist
        if dist is None:
            return Candidate(entry.name, entry.value, group, entry_point=entry)
        if id(dist) not in self._names:
            facts = dist.metadata  # one read: each of dist.name and dist.version would parse the file again
            self._names[id(dist)] = (facts["Name"], facts["Version"])
        name, version = self._names[id(dist)]
        return Candidate(entry.name, entry.value, group, name, version, entry)


_last: _Scan | None = None


def _scan() -> _Scan:
    global _last  # noqa: PLW0603 -- the one cache of this process
    from importlib import metadata

    # Without a lock: finders on sys.meta_path are strangers. Two threads at once read twice, and one of the answers stays.
    path = _path_state()
    scan = _last
    if scan is None or scan.path != path:
        try:
            found = metadata.entry_points()
        except Exception as error:
            raise _broken(error) from error
        _last = scan = _Scan(path, found)
    return scan


def _broken(error: Exception) -> BrokenMetadata:
    """Return the failure of an enumeration, naming the distribution that it stumbled over."""
    from importlib import metadata

    cause = f"{type(error).__name__}: {error}"
    for dist in metadata.distributions():
        try:
            list(dist.entry_points)
        except Exception:  # noqa: BLE001 -- the one we look for; what it says is known
            folder = str(getattr(dist, "_path", dist))
            message = f"the entry points of {folder} cannot be read"
            return BrokenMetadata(message, subject=folder, cause=cause, hint=f"repair or remove {os.path.join(folder, 'entry_points.txt')}")
    return BrokenMetadata("installed metadata cannot be read", cause=cause, hint="see what is installed: sglang-plug list")


def _path_state() -> tuple[object, ...]:
    """Return what changes when something is installed, removed or put on the path."""
    return (tuple(map(id, sys.meta_path)), *((entry, _modified(entry)) for entry in sys.path))


def _modified(entry: str) -> int | None:
    try:
        return os.stat(entry or ".").st_mtime_ns
    except (OSError, ValueError):
        return None
