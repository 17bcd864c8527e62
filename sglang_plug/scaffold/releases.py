"""Which SGLang release a scaffold follows: the one that was asked for, else the installed one, else the newest known."""

from __future__ import annotations

from importlib import metadata

from sglang_plug.contract import catalogue


def choose(asked: str | None) -> tuple[str, str | None]:
    """Return the release whose contract is used, and a note where it is not the one that is installed.

    Args:
        asked: what `--sglang` said; None where it was not given.

    Raises:
        CatalogueError: the catalogue does not know the release that was asked for.
    """
    if asked is not None:
        return catalogue.load(asked.strip().removeprefix("v")).version, None
    try:
        here = metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return catalogue.newest(), None
    near = catalogue.nearest(here)
    return near, None if near == here else f"SGLang {here} is installed, and its contract is not known: that of {near} is used"
