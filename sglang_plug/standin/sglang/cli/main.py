"""The command `sglang`: `serve`, `generate` and `version`."""

from __future__ import annotations

import sys

from ..version import __version__

USAGE = "usage: sglang {serve | generate | version} [ARGS…]   (the stand-in of sglang-plug)\n"


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    command, *rest = (sys.argv[1:] if argv is None else argv) or [""]
    if command == "serve":
        from .serve import serve

        return serve(rest)
    if command == "generate":
        from ..multimodal_gen.runtime.entrypoints.cli.main import main as diffusion

        diffusion(["generate", *rest])  # never returns
    if command == "version":
        sys.stdout.write(f"sglang version: {__version__}\n")
        return 0
    (sys.stdout if command in {"-h", "--help"} else sys.stderr).write(USAGE)
    return 0 if command in {"-h", "--help"} else 2


if __name__ == "__main__":
    raise SystemExit(main())
