"""The diffusion commands: `serve` and `generate`. Plugins are active before a command's modules are imported (S6, S7)."""

from __future__ import annotations

import sys

from ...platforms.plugins import apply_plugin_hooks

COMMANDS = ("serve", "generate")


def main(argv: list[str] | None = None) -> None:
    """Run one command, and end the process.

    Raises:
        SystemExit: 0 when done or stopped, 1 when it failed, 2 when the command line is wrong.
    """
    command, *rest = (sys.argv[1:] if argv is None else argv) or [""]
    if command not in COMMANDS:
        sys.stderr.write(f"usage: {{{' | '.join(COMMANDS)}}} [OPTIONS]\n")
        raise SystemExit(2)
    apply_plugin_hooks()
    from . import generate, serve

    raise SystemExit({"serve": serve.run, "generate": generate.run}[command](rest))


if __name__ == "__main__":
    main()
