"""How counts are said."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count and its noun, in the singular for one."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"
