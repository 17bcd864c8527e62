"""`sglang serve`: plugins first, then the arguments, then the server of the model's kind."""

from __future__ import annotations

import sys
from pathlib import Path

from ..srt.plugins import load_plugins


def serve(argv: list[str]) -> int:
    """Serve a model until told to stop, and return the exit status. A failure to start is one line on stderr and status 1."""
    load_plugins()
    if _is_diffusion(argv):
        from ..multimodal_gen.runtime.entrypoints.cli.main import main as diffusion

        diffusion(["serve", *argv])  # never returns
    from ..srt.entrypoints.engine import StartFailed
    from ..srt.entrypoints.http_server import launch_server
    from ..srt.server_args import prepare_server_args

    try:
        return launch_server(prepare_server_args(argv))
    except (ValueError, StartFailed) as error:
        sys.stderr.write(f"sglang serve: {error}\n")
        return 1


def _is_diffusion(argv: list[str]) -> bool:
    """Tell whether the model folder holds a diffusion pipeline."""
    for index, word in enumerate(argv):
        name, _, value = word.partition("=")
        if name in {"--model-path", "--model"}:
            path = value or (argv[index + 1] if index + 1 < len(argv) else "")
            return (Path(path) / "model_index.json").is_file()
    return False
