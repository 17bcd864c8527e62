"""Run a program with the stand-in `sglang` on its path: `python -m sglang_plug.standin serve|SCRIPT|-m MODULE|-c CODE [ARGS…]`.

Replaces this process by a fresh interpreter: the program sees exactly what `python SCRIPT` would give it, and so do its children.
"""

from __future__ import annotations

import os
import subprocess
import sys

from sglang_plug.standin import COMMAND, environment, finder

USAGE = "usage: python -m sglang_plug.standin {serve | generate | SCRIPT | -m MODULE | -c CODE} [ARGS…]\n"
COMMANDS = ("serve", "generate", "version")


def python_arguments(argv: list[str]) -> list[str]:
    """Return the interpreter's arguments for `argv`: SGLang's own commands go to its command line, all else is what `python` takes.

    Raises:
        SystemExit: nothing to run (status 2).
    """
    if not argv or argv[0] in {"-h", "--help"}:
        (sys.stdout if argv else sys.stderr).write(USAGE)
        raise SystemExit(0 if argv else 2)
    if argv[0] in COMMANDS:
        return [str(COMMAND), *argv]
    return argv


def main() -> None:
    """Become the program. Never returns.

    Raises:
        SystemExit: real SGLang is installed here (status 1), or nothing to run.
    """
    arguments = python_arguments(sys.argv[1:])
    real = finder.elsewhere()
    if real is not None:
        sys.stderr.write(f"SGLang is installed in this environment ({real.origin}): the stand-in keeps out of its way\n")
        sys.stderr.write("hint: use an environment without SGLang, or run `sglang` itself\n")
        raise SystemExit(1)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # -W, -X … go on, as multiprocessing does it
    os.execve(sys.executable, [sys.executable, *flags, *arguments], environment())  # noqa: S606


if __name__ == "__main__":
    main()
