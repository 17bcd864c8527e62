"""The diffusion commands: `serve` and `generate`. Plugins are active before a command's modules are imported (S6, S7)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ...platforms.plugins import apply_plugin_hooks

if TYPE_CHECKING:
    from collections.abc import Callable

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
    raise SystemExit(generate_cmd_init()[command](rest))


def generate_cmd_init() -> dict[str, Callable[[list[str]], int]]:
    """Return the commands by name. Hooks are applied before their modules are imported.

    Raises:
        BaseException: what a phase raises; no command is imported then.
    """
    apply_plugin_hooks()
    from . import generate, serve

    return {"serve": serve.run, "generate": generate.run}


if __name__ == "__main__":
    main()
