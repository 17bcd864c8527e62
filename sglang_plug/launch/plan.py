"""A launch as a value: which program, with which arguments and variables. Starts nothing and checks nothing."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sglang_plug import standin
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.probe.environment import variables_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglang_plug.probe.environment import Environment


@dataclass(frozen=True)
class Plan:
    """What will be started.

    Attributes:
        engine: `sglang` or `standin`.
        release: SGLang's version in the engine's environment; None for the stand-in.
        runtime: `srt` or `diffusion`.
        environment: interpreter, all variables and folder of the launch.
        argv: the command line.
        changes: the variables that differ from the caller's environment; None removes one.
        arguments: the part of `argv` that goes to the engine.
    """

    engine: str
    release: str | None
    runtime: str
    environment: Environment
    argv: tuple[str, ...]
    changes: Mapping[str, str | None]
    arguments: EngineArguments


def make(
    environment: Environment,
    tokens: Sequence[str] = (),
    *,
    engine: str,
    release: str | None = None,
    runtime: str = "auto",
    platform: str | None = None,
    plugins: str | None = None,
) -> Plan:
    """Return the plan of a launch.

    Args:
        environment: where the engine runs.
        tokens: the engine's arguments, passed through in their order and spelling.
        engine: `sglang` or `standin`.
        release: SGLang's version there.
        runtime: `srt`, `diffusion`, or `auto`: a model in diffusers layout is a diffusion model.
        platform: what the runtime's selector is set to.
        plugins: what the allowlist is set to.
    """
    arguments = EngineArguments(tuple(tokens))
    chosen = runtime_of(arguments) if runtime == "auto" else runtime
    changes = variables_for(platform=platform, plugins=plugins, runtimes=(chosen,))
    if engine == "standin":
        changes["PYTHONPATH"] = standin.environment({"PYTHONPATH": environment.env.get("PYTHONPATH", "")})["PYTHONPATH"]
    changes = {name: value for name, value in changes.items() if environment.env.get(name) != value}
    tail = arguments.tokens
    if runtime != "auto" and arguments.text("kind") is None:
        tail = (*tail, "--model-type", {"srt": "llm"}.get(chosen, chosen))
    return Plan(
        engine, release, chosen, environment.with_variables(changes), (*program(environment.python, engine), *tail), changes, arguments
    )


def runtime_of(arguments: EngineArguments) -> str:
    """Return the runtime that SGLang would pick for these arguments, as far as the local disk can tell."""
    kind = arguments.text("kind")
    if kind in {"diffusion", "llm"}:
        return "diffusion" if kind == "diffusion" else "srt"
    return "diffusion" if arguments.model and _is_diffusers_layout(Path(arguments.model)) else "srt"


def program(python: str, engine: str) -> tuple[str, ...]:
    """Return the command of the engine: SGLang's own `sglang serve`, or its module where that script is missing; the stand-in's script."""
    if engine == "standin":
        return (python, str(standin.COMMAND), "serve")
    script = Path(python).with_name("sglang")
    if os.access(script, os.X_OK):
        return (str(script), "serve")
    return (python, "-m", "sglang.cli.main", "serve")


def _is_diffusers_layout(folder: Path) -> bool:
    try:
        index = json.loads((folder / "model_index.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(index, dict) and "_class_name" in index
