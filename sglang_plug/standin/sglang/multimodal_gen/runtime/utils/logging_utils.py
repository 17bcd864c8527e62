"""Loggers with upstream's names."""

from __future__ import annotations

import logging
import sys


def init_logger(name: str) -> logging.Logger:
    """Return the logger of that name."""
    return logging.getLogger(name)


def configure_logger(level: str, prefix: str = "") -> None:
    """Send this process's log to stderr, each line with time, level and `prefix`."""
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format=f"[%(asctime)s{prefix}] %(levelname)s %(name)s: %(message)s", force=True
    )
