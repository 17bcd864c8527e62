"""What is being done, for somebody who waits at a terminal: on stderr, and only there."""

from __future__ import annotations

import sys


def tell(text: str) -> None:
    """Say on stderr what is being done, where a person looks at it."""
    if sys.stderr.isatty():
        from sglang_plug.report.escape import visible

        sys.stderr.write(f"… {visible(text)}\n")
        sys.stderr.flush()
