"""The command `sglang`: `serve`, `generate` and `version`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

from ..version import __version__

#: What `sglang-plug[engine]` brings, by import name.
ENGINE = ("fastapi", "jinja2", "numpy", "PIL", "pydantic", "safetensors", "tokenizers", "torch", "uvicorn", "zmq")
USAGE = "usage: sglang {serve | generate | version} [ARGS…]   (the stand-in of sglang-plug)\n"


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status; that the engine's own packages are not installed is said in a line."""
    command, *rest = (sys.argv[1:] if argv is None else argv) or [""]
    try:
        if command in {"serve", "generate"} and find_spec("torch") is None:
            raise ModuleNotFoundError(name="torch")  # the workers import it, long after the start
        return _run(command, rest)
    except ModuleNotFoundError as error:
        if error.name not in ENGINE:
            raise
        lacking = ", ".join(name for name in ENGINE if find_spec(name) is None)
        sys.stderr.write(f"sglang {command}: the stand-in engine needs what is not installed: {lacking}\n")
        sys.stderr.write("hint: pip install 'sglang-plug[engine]', or pip install '.[engine]' in a clone\n")
        return 1


def _run(command: str, rest: list[str]) -> int:
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
