"""What is being done, for somebody who waits at a terminal: on stderr, and only there."""

from __future__ import annotations

import sys


def tell(text: str) -> None:
    """Say on stderr what is being done, where a person looks at it."""
    if sys.stderr.isatty():
        from sglang_plug.report.escape import visible

        print(f"… {visible(text)}", file=sys.stderr, flush=True)
