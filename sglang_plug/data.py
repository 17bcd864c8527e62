"""Where the shipped data lies: inside the wheel, or at the repository's root in an editable install."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """Return the folder `name` (`templates`, `completions` or `rules`).

    Raises:
        FileNotFoundError: this installation is incomplete.
    """
    source = {"rules": Path("docs/rules")}.get(name, Path(name))
    for place in (_PACKAGE / "_data" / name, _PACKAGE.parent / source):
        if place.is_dir():
            return place
    message = f"sglang-plug is installed without its {name}; reinstall it"
    raise FileNotFoundError(message)
