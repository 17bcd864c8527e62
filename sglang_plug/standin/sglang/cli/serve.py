"""`sglang serve`: plugins first, then the arguments, then the server of the model's kind."""

from __future__ import annotations

import sys
from pathlib import Path

from sglang_plug.standin.diffusion_models import NAME as TINY_DIT

from ..srt.plugins import load_plugins

_KINDS = ("auto", "llm", "diffusion")


def serve(argv: list[str]) -> int:
    """Serve a model until told to stop, and return the exit status. A failure to start is one line on stderr and status 1."""
    kind, argv = _split_kind(argv)
    load_plugins()
    if kind == "diffusion" or (kind == "auto" and _is_diffusion(argv)):
        from ..multimodal_gen.runtime.entrypoints.cli.main import main as diffusion

        diffusion(["serve", *argv])  # never returns
    if kind not in _KINDS:
        sys.stderr.write(f"sglang serve: --model-type {kind}: the stand-in has {', '.join(_KINDS)}\n")
        return 2
    from ..srt.entrypoints.engine import StartFailed
    from ..srt.entrypoints.http_server import launch_server
    from ..srt.server_args import prepare_server_args

    if argv and not argv[0].startswith("-"):  # SGLang takes the model without its option, too
        argv = ["--model-path", *argv]
    try:
        return launch_server(prepare_server_args(argv))
    except (ValueError, StartFailed) as error:
        sys.stderr.write(f"sglang serve: {error}\n")
        return 1


def _split_kind(argv: list[str]) -> tuple[str, list[str]]:
    """Return what `--model-type` says (`auto` by default) and the arguments without it."""
    kind, rest, words = "auto", [], iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name == "--model-type":
            kind = value if equals else next(words, "")
        else:
            rest.append(word)
    return kind, rest


def _is_diffusion(argv: list[str]) -> bool:
    """Tell whether the model is a diffusion pipeline: the stand-in's own, or a folder that says so."""
    if argv and not argv[0].startswith("-"):  # `serve MODEL`
        argv = ["--model-path", *argv]
    for index, word in enumerate(argv):
        name, _, value = word.partition("=")
        if name in {"--model-path", "--model"}:
            path = value or (argv[index + 1] if index + 1 < len(argv) else "")
            return path == TINY_DIT or (Path(path) / "model_index.json").is_file()
    return False
