"""Whether a name is taken in this environment, where an installed plugin of that name would replace or hide what is there."""

from __future__ import annotations

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug.errors import ScaffoldError
from sglang_plug.scaffold.answers import KINDS

if TYPE_CHECKING:
    from sglang_plug.scaffold.answers import Name


def refuse_taken(name: Name, target: Path, *, command: str) -> None:
    """Refuse a name that something installed here bears, unless that is the project at `target` itself.

    Raises:
        ScaffoldError: it is taken; says by what.
    """
    cause = _holder(name, target.resolve())
    if cause is not None:
        raise ScaffoldError(
            "this name is taken here",
            subject=name.distribution,
            cause=f"{cause}; a plugin of that name would take its place",
            hint=f"`sglang-plug {command} {name.distribution}-{KINDS[command]}`; or --force, where that is an older copy of this project",
        )


def _holder(name: Name, target: Path) -> str | None:
    spec = find_spec(name.package)  # of a name without a dot: imports nothing
    if spec is not None and spec.origin is not None:
        own = Path(spec.origin).resolve().is_relative_to(target)
        return None if own else f"`import {name.package}` finds {spec.origin}"
    try:
        version = metadata.version(name.distribution)
    except metadata.PackageNotFoundError:
        return None
    return f"{name.distribution} {version} is installed"
