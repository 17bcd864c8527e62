"""The catalogue of SGLang releases: which are known, and what each of them has. The only door to contract data."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from sglang_plug.contract.model import Kind, PlatformContract, PlatformMember, Presence, Process, Symbol
from sglang_plug.contract.names import Lookup
from sglang_plug.contract.store import Store
from sglang_plug.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = "0.5.11"  # the first release with plugins
SHIPPED = Path(__file__).parent / "data" / "catalogue.zip"


def cache_folder() -> Path:
    """Return where releases that the user added are kept: `$SGLANG_PLUG_CACHE/contract`, else `~/.cache/sglang-plug/contract`."""
    root = os.environ.get("SGLANG_PLUG_CACHE")
    base = Path(root) if root else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sglang-plug"
    return base / "contract"


@lru_cache(maxsize=8)
def _stores(folder: Path) -> dict[str, tuple[Store, int]]:
    found: dict[str, tuple[Store, int]] = {}
    paths = [SHIPPED] if SHIPPED.is_file() else []
    for path in [*paths, *sorted(folder.glob("*.zip"))]:  # what the user built wins
        store = Store(path)
        for bit, release in enumerate(store.releases):
            found[release] = (store, bit)
    return found


def releases() -> tuple[str, ...]:
    """Return every known release, oldest first.

    Raises:
        CatalogueError: a catalogue file is damaged.
    """
    return tuple(sorted(_stores(cache_folder()), key=Version))


def newest() -> str:
    """Return the newest known release.

    Raises:
        CatalogueError: there is none.
    """
    known = releases()
    if not known:
        raise CatalogueError("no release is known", hint="build one with `sglang-plug contract build VERSION`")
    return known[-1]


def nearest(version: str) -> str:
    """Return the known release that speaks for `version`: itself, the same without a local or development suffix, else the last before it.

    Raises:
        CatalogueError: it is no version, or older than every known release.
    """
    known = releases()
    if version in known:
        return version
    try:
        wanted = Version(version)
    except InvalidVersion as exc:
        raise CatalogueError("this is no version", subject=version, hint="`sglang-plug contract releases` lists those known") from exc
    base = Version(wanted.public if not wanted.is_prerelease else wanted.base_version)
    before = [release for release in known if Version(release) <= base]
    if not before:
        raise CatalogueError("older than every known release", subject=version, hint=f"the oldest is {known[0]}" if known else None)
    return before[-1]


def named(version: str) -> str:
    """Return the known release that a user named: itself, or the same without a local, post or development suffix.

    Raises:
        CatalogueError: it is no version, or another one than every known release.
    """
    if version in releases():
        return version
    try:
        base = Version(version).base_version
    except InvalidVersion:
        return nearest(version)  # says that it is none
    same = [release for release in releases() if Version(release).base_version == base]
    return same[-1] if same else load(version).version


def matching(specifier: str) -> tuple[str, ...]:
    """Return the known releases that a specifier allows (`>=0.5.17`, `0.5.21`, `all`, `newest`).

    Raises:
        CatalogueError: it cannot be read, or allows none.
    """
    known = releases()
    text = specifier.strip()
    if text == "all":
        return known
    if text in {"newest", "latest"}:
        return (newest(),)
    if not text:
        raise CatalogueError("an empty version specifier", subject=specifier, hint='write `--sglang ">=0.5.17"`, or `all`')
    try:
        found = tuple(SpecifierSet(text if text[:1] in "<>=!~" else f"=={text}").filter(known, prereleases=True))
    except InvalidSpecifier as exc:
        raise CatalogueError(
            "this is no version specifier", subject=specifier, hint='write `--sglang ">=0.5.17"` or `--sglang 0.5.21`'
        ) from exc
    if not found and _is_version(text):
        return (named(text),)  # `0.5.21+cu126`; or says that it is not known
    if not found:
        raise CatalogueError(
            "no known release matches",
            subject=specifier,
            cause=f"known: {', '.join(known)}",
            hint="add one with `sglang-plug contract build VERSION`",
        )
    return found


@lru_cache(maxsize=64)
def _loaded(folder: Path, release: str) -> Release:
    store, bit = _stores(folder)[release]
    return Release(release, store, bit)


def load(release: str) -> Release:
    """Return one release. Nothing is read before it is asked.

    Raises:
        CatalogueError: the release is not known.
    """
    folder = cache_folder()
    if release not in _stores(folder):
        if _is_older(release):
            raise CatalogueError(f"SGLang {release} has no plugin system", subject=release, hint=f"it came with {FIRST}")
        near = list(releases()[-1:]) if _is_newer(release) else difflib.get_close_matches(release, releases(), n=3, cutoff=0.5)
        raise CatalogueError(
            "this release is not in the catalogue",
            subject=release,
            cause=f"near: {', '.join(near)}" if near else None,
            hint=f"add it with `sglang-plug contract build {release}`",
        )
    return _loaded(folder, release)


def _is_version(text: str) -> bool:
    try:
        return bool(Version(text))
    except InvalidVersion:
        return False


def _is_newer(release: str) -> bool:
    """True for a version after every known release."""
    return _is_version(release) and all(Version(release) > Version(known) for known in releases())


def _is_older(release: str) -> bool:
    """True for a version before the first release with plugins."""
    return _is_version(release) and Version(release) < Version(FIRST)


def forget() -> None:
    """Drop what was read, after files changed."""
    _stores.cache_clear()
    _loaded.cache_clear()


@dataclass(frozen=True)
class Release:
    """What one release of SGLang has."""

    version: str
    store: Store
    bit: int

    @cached_property
    def lookup(self) -> Lookup:
        """The names, for those that need more than `find`."""
        return Lookup(self.store, self.bit)

    def find(self, dotted: str) -> Symbol | None:
        """Return what a dotted or colon name is, as importing and `getattr` would find it; None where it does not exist."""
        return self.lookup.find(dotted)

    def has_module(self, name: str) -> bool:
        """True where a module or package of that name can be imported."""
        return self.lookup.module(name) is not None

    @property
    def modules(self) -> tuple[str, ...]:
        """Every module's name."""
        return self.lookup.names

    def near(self, dotted: str, *, limit: int = 5) -> tuple[str, ...]:
        """Return names that may be meant: the same name elsewhere first, then similar ones beside it."""
        from sglang_plug.contract.nearness import near

        return near(self.lookup, dotted, limit=limit)

    def children(self, prefix: str) -> tuple[Symbol, ...]:
        """Return the names directly inside a package, module or class (inherited ones included), sorted; empty where there is none such."""
        from sglang_plug.contract.nearness import child_names

        found = (self.find(f"{prefix}.{name}") for name in child_names(self.lookup, prefix))
        return tuple(symbol for symbol in found if symbol is not None)

    def walk(self, *, modules: tuple[str, ...] | None = None) -> Iterator[tuple[str, str]]:
        """Yield every name that a module of this release defines itself (not re-exports), members of classes included, and its code.

        The code is `c` for a class, `f` for a function, `v` for another value.
        """
        for module in self.modules if modules is None else modules:
            names = self.lookup.module(module)
            for row in names.rows.values() if names else ():
                if row.code[0] in "cf" or (row.code[0] == "v" and "." not in row.name):
                    yield f"{module}.{row.name}", row.code[0]

    def subclasses(self, base: str) -> tuple[str, ...]:
        """Return the classes of this release that inherit from `base`, directly or not. Reads every module."""
        found = []
        for module in self.modules:
            names = self.lookup.module(module)
            for row in names.rows.values() if names else ():
                if row.code[0] == "c" and row.text:
                    origin = f"{module}.{row.name}"
                    if origin != base and base in self.lookup.linearize(origin):
                        found.append(origin)
        return tuple(found)

    @cached_property
    def environment(self) -> frozenset[str]:
        """Every `SGLANG_*` and `SGL_*` variable that this release names."""
        table: dict[str, str] = _extra(self.store, "environment")
        return frozenset(name for name, mask in table.items() if int(mask, 16) >> self.bit & 1)

    def platform_contract(self, runtime: str) -> PlatformContract | None:
        """Return what `srt` or `diffusion` expects of a platform class, or None where that runtime takes none from outside."""
        facts: dict[str, Any] | None = _extra(self.store, "platforms").get(self.version, {}).get(runtime)
        if facts is None:
            return None
        members = {
            name: PlatformMember(name, **{**values, "sites": tuple(values.get("sites", ()))}) for name, values in facts["members"].items()
        }
        enums = {name: tuple(values) for name, values in facts["enums"].items()}
        chain = tuple((step[0], step[1]) for step in facts["chain"])
        return PlatformContract(
            self.version, runtime, facts["base"], members, tuple(facts["capabilities"]), enums, chain, facts["accepts_plugins"]
        )

    def processes(self, runtime: str) -> tuple[Process, ...]:
        """Return the processes of `srt` or `diffusion`, and whether plugins are loaded in each."""
        rows = _extra(self.store, "processes").get(self.version, {}).get(runtime, [])
        return tuple(Process(**{**row, "loads": tuple(row.get("loads", ()))}) for row in rows)


@lru_cache(maxsize=16)
def _extra(store: Store, member: str) -> Any:
    return store.table(member)


__all__ = ["Kind", "Presence", "Release", "Symbol", "cache_folder", "forget", "load", "matching", "named", "nearest", "newest", "releases"]
