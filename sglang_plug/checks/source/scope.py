"""Which releases a plugin is checked against: those asked for, else what it requires, what is installed, the newest. Reads metadata."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement

from sglang_plug.contract import catalogue
from sglang_plug.errors import CatalogueError

if TYPE_CHECKING:
    from sglang_plug.checks.source.declared import Declared


def asked_releases(specifiers: list[str]) -> tuple[str, ...]:
    """Return the releases that several specifiers allow together, oldest first.

    Raises:
        CatalogueError: one cannot be read, or allows none.
    """
    found = {release for text in specifiers for release in catalogue.matching(text)}
    return tuple(release for release in catalogue.releases() if release in found)


def own_releases(declared: Declared) -> tuple[tuple[str, ...], str]:
    """Return the releases that a plugin is meant for, and why these."""
    for text, _ in (*declared.requirements, *declared.extras):
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.name.lower() == "sglang" and requirement.specifier:
            try:
                return catalogue.matching(str(requirement.specifier)), f"it requires sglang{requirement.specifier}"
            except CatalogueError:
                return (catalogue.newest(),), f"the newest release that is known: it requires sglang{requirement.specifier}, which none is"
    try:
        version = metadata.version("sglang")
        return (catalogue.nearest(version),), f"sglang {version} is installed"
    except (metadata.PackageNotFoundError, CatalogueError):
        return (catalogue.newest(),), "the newest release that is known"
