"""`serve`: workers and an HTTP server until told to stop."""

from __future__ import annotations

import sys

from ...launch_server import WorkerFailed, launch_server
from ...server_args import prepare_server_args
from ...utils.logging_utils import configure_logger


def run(argv: list[str]) -> int:
    """Return the exit status: 0 when stopped, 1 when a child failed, 2 when an argument is wrong."""
    if argv and not argv[0].startswith("-"):
        argv = ["--model-path", *argv]  # `sglang serve MODEL` is how people type it
    try:
        server_args = prepare_server_args(argv)
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    configure_logger(server_args.log_level)
    try:
        launch_server(server_args)
    except WorkerFailed as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0
