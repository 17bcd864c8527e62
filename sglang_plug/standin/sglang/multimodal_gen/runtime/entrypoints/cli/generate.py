"""`generate`: images from the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ....configs.sample import SamplingParams
from ...server_args import ServerArgs
from ...utils.logging_utils import configure_logger
from ..diffusion_generator import DiffGenerator

_NUMBERS = {
    "seed": int,
    "height": int,
    "width": int,
    "num_inference_steps": int,
    "guidance_scale": float,
    "num_outputs_per_prompt": int,
}


def parser() -> argparse.ArgumentParser:
    """Return the parser: the server's arguments and those of one request."""
    made = ServerArgs.add_cli_args(argparse.ArgumentParser(prog="sglang generate"))
    made.add_argument("--prompt", required=True, help="what to draw")
    made.add_argument("--negative-prompt", default=argparse.SUPPRESS, help="what not to draw")
    for name, kind in _NUMBERS.items():
        made.add_argument(f"--{name.replace('_', '-')}", dest=name, type=kind, default=argparse.SUPPRESS)
    made.add_argument("--output-file-name", default=argparse.SUPPRESS, help="the file's name in --output-path")
    made.add_argument("--output-file-path", help="both in one")
    made.add_argument("--save-output", action=argparse.BooleanOptionalAction, default=True)
    return made


def run(argv: list[str]) -> int:
    """Return the exit status: 0 with the images' paths on stdout, 1 when it failed, 2 when an argument is wrong."""
    options = vars(parser().parse_args(argv))
    file_path = options.pop("output_file_path")
    if file_path:
        options |= {"output_path": str(Path(file_path).parent), "output_file_name": Path(file_path).name}
    request: dict[str, Any] = {name: options.pop(name) for name in SamplingParams.field_names() - {"output_path"} if name in options}
    try:
        SamplingParams(**request)
        server_args = ServerArgs.from_kwargs(**options)
    except ValueError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    configure_logger(server_args.log_level)
    try:
        with DiffGenerator.from_server_args(server_args) as generator:
            results = generator.generate(request)
    except (ValueError, RuntimeError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for result in results if isinstance(results, list) else [results]:
        sys.stdout.write(f"{result.output_file_path or '(not saved)'}\n")
    return 0
