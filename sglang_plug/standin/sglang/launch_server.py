"""`python -m sglang.launch_server`: serve a model, without the `sglang` command."""

from __future__ import annotations

import sys

from .cli.serve import serve

if __name__ == "__main__":
    raise SystemExit(serve(sys.argv[1:]))
