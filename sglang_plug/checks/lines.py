"""The lines of a file that a stranger names: it need be no file, no text, and of no size."""

from __future__ import annotations

import os

LARGEST_SOURCE = 1 << 20  # bytes


def lines_of(path: str) -> list[str]:
    """Return the lines of a source; none where nothing of that name is a file of a source's size."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST_SOURCE:
            return []
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except (OSError, ValueError):
        return []
