"""English in messages. Standard library only: messages are made inside strangers' interpreters too."""

from __future__ import annotations

import re

_SPOKEN_VOWEL = re.compile(r"[aei]|o(?!ne)|un(?!i)", re.IGNORECASE)


def a(noun: str) -> str:
    """Return `noun` with its indefinite article: an int, a str, an async generator, a OneTokenPool, a user."""
    return f"{'an' if _SPOKEN_VOWEL.match(noun) else 'a'} {noun}"
