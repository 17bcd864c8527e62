"""Text from strangers made safe for a terminal: control characters become visible, whatever their source."""

from __future__ import annotations

import unicodedata

_KEEP = {"\n", "\t"}


def visible(text: str, *, keep_newlines: bool = False) -> str:
    """Return `text` with every control, format and surrogate character spelled as an escape.

    Args:
        text: what a plugin, its metadata or the environment said.
        keep_newlines: leave newlines and tabs as they are (for blocks such as tracebacks).
    """
    return "".join(_spell(char, keep=keep_newlines) for char in text)


def brief(text: str, limit: int = 2000) -> str:
    """Return `text` made visible; where it is longer than anyone reads, its middle is left out and its length said."""
    if len(text) > limit:
        text = f"{text[: limit // 2]} … ({len(text)} characters) … {text[-limit // 4 :]}"
    return visible(text)


def _spell(char: str, *, keep: bool) -> str:
    if keep and char in _KEEP:
        return char
    if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}:
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return char
