"""`ServerArgs`: made once in the launcher, after hooks were applied, and carried to the children as opaque bytes."""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import shutil
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_plug.standin.diffusion_models import NAME, PIPELINE, tiny_dit
from sglang_plug.standin.meeting import make_folder
from sglang_plug.standin.models import unwritable

from ...configs.pipeline_configs import PipelineConfig
from .. import platforms
from ..layers.attention.selector import backend_name_to_enum

if TYPE_CHECKING:
    from collections.abc import Callable

#: What asks for the stand-in's own model.
BUILTIN_MODEL = NAME
_WEIGHTS = "*.safetensors"
_INDEX = "model_index.json"
_MEETING = "sgl-diffusion-"  # what the name of a socket's folder begins with


def _option(default: Any, text: str, **more: Any) -> Any:
    return field(default=default, metadata={"help": text, **more})


@dataclass
class ServerArgs:
    """Arguments of launcher, workers and HTTP server.

    The platform writes its defaults (`apply_server_args_defaults`) before anything is checked.

    Raises:
        ValueError: an argument is wrong, or the model does not fit the device, with the argument's name.
    """

    model_path: str = _option(BUILTIN_MODEL, f"a model folder in diffusers' layout, or {BUILTIN_MODEL} for the stand-in's own")
    model_id: str | None = _option(None, "accepted for SGLang's sake; the stand-in reads the model's class from its folder")
    served_model_name: str | None = _option(None, "the name that /v1/models shows; default: the model path")
    host: str = _option("127.0.0.1", "where the HTTP server listens")
    port: int = _option(30000, "where the HTTP server listens")
    num_gpus: int = _option(1, "number of workers; they share the image's tokens among them")
    tp_size: int = _option(1, "tensor parallelism; the stand-in has only 1")
    sp_degree: int | None = _option(None, "sequence parallelism; default: the number of workers")
    attention_backend: str | None = _option(None, "ask the platform for an attention backend by name, e.g. torch_sdpa")
    enable_torch_compile: bool = _option(False, "compile the transformer with the platform's compile backend")
    torch_compile_mode: str | None = _option(None, "the mode that torch.compile is given")
    dit_layerwise_offload: bool | None = _option(None, "keep layers off the device until needed; default: what the platform says")
    output_path: str | None = _option("outputs/", "where generated images are saved")
    log_level: str = _option("info", "the least level that is logged")
    master_port: int | None = _option(None, "the workers' rendezvous; default: a free port")
    dist_timeout: float | None = _option(None, "seconds after which a collective operation fails")
    scheduler_endpoint: str = _option("", "", hidden=True)
    pipeline_config: PipelineConfig = field(default_factory=PipelineConfig, metadata={"hidden": True})
    explicit_args: frozenset[str] = field(default=frozenset(), metadata={"hidden": True})

    def __post_init__(self) -> None:
        if not self.explicit_args:
            self.explicit_args = frozenset(
                entry.name
                for entry in dataclasses.fields(self)
                if entry.default is not dataclasses.MISSING and getattr(self, entry.name) != entry.default
            )
        platforms.current_platform.apply_server_args_defaults(self)
        self.check_server_args()
        self.resolve()

    def is_arg_explicitly_set(self, name: str) -> bool:
        """Return whether the user set the argument, so that a platform's default must not."""
        return name in self.explicit_args

    def check_server_args(self) -> None:
        """Refuse what cannot work.

        Raises:
            ValueError: see the class.
        """
        if not self.model_path:
            raise ValueError(f"--model-path is required; the stand-in's own model is called {BUILTIN_MODEL}")
        if self.num_gpus < 1:
            raise ValueError(f"--num-gpus must be at least 1, not {self.num_gpus}")
        if not 0 < self.port < 1 << 16:
            raise ValueError(f"--port must be from 1 to 65535, not {self.port}")
        if self.log_level.upper() not in logging.getLevelNamesMapping():
            raise ValueError(f"--log-level must be debug, info, warning, error or critical, not {self.log_level!r}")
        if self.tp_size != 1 or self.sp_degree not in (None, self.num_gpus):
            raise ValueError(f"the stand-in shares the sequence among all workers: --tp-size must be 1 and --sp-degree {self.num_gpus}")
        if self.attention_backend is not None and backend_name_to_enum(self.attention_backend) is None:
            raise ValueError(f"--attention-backend {self.attention_backend!r} is no member of AttentionBackendEnum")

    def resolve(self) -> None:
        """Fill in what was left open: the model's folder and the platform's answers.

        Raises:
            ValueError: see the class.
        """
        if self.served_model_name is None:
            self.served_model_name = self.model_path
        if self.model_path == BUILTIN_MODEL and not Path(self.model_path).is_dir():
            try:
                self.model_path = str(tiny_dit())
            except OSError as error:
                raise ValueError(unwritable(error)) from None
        folder = Path(self.model_path)
        if not (folder / _INDEX).is_file():
            raise ValueError(f"--model-path {self.model_path}: no {_INDEX} there, so it is no diffusers folder")
        try:
            pipeline = json.loads((folder / _INDEX).read_text(encoding="utf-8"))["_class_name"]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ValueError(f"--model-path {self.model_path}: {_INDEX} does not name a pipeline: {error!r}") from error
        if pipeline != PIPELINE:
            raise ValueError(f"--model-path {self.model_path}: the stand-in runs {PIPELINE}, not {pipeline}; run that with SGLang itself")
        platform = platforms.current_platform
        size, room = sum(f.stat().st_size for f in folder.rglob(_WEIGHTS)), platform.get_device_total_memory()
        if size > room * self.num_gpus:
            raise ValueError(f"--model-path {self.model_path}: {size} bytes of weights do not fit {platform.device_name}'s {room} bytes")
        if self.dit_layerwise_offload is None:
            self.dit_layerwise_offload = platform.enable_dit_layerwise_offload_by_default() and not platform.device_shares_host_memory()
        self.sp_degree = self.num_gpus

    def settle(self) -> None:
        """Choose where the processes meet: a free port, and a socket in a folder that only this user can open."""
        self.master_port = self.master_port or free_port()
        self.scheduler_endpoint = self.scheduler_endpoint or f"ipc://{make_folder(_MEETING, 'scheduler')}/scheduler"

    def release(self) -> None:
        """Remove the socket's folder. Nobody meets there any more."""
        folder = Path(self.scheduler_endpoint.removeprefix("ipc://")).parent
        if folder.name.startswith(_MEETING):
            shutil.rmtree(folder, ignore_errors=True)
        self.scheduler_endpoint = ""

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        """Add an option for each argument, `--like-this` and `--like_this`."""
        for entry in dataclasses.fields(ServerArgs):
            if entry.metadata.get("hidden"):
                continue
            flags = dict.fromkeys((f"--{entry.name.replace('_', '-')}", f"--{entry.name}"))
            kind = _KINDS.get(str(entry.type).split(" |")[0], str)
            more: dict[str, Any] = {"nargs": "?", "const": True} if kind is _truth else {}
            parser.add_argument(*flags, dest=entry.name, default=argparse.SUPPRESS, type=kind, help=entry.metadata["help"], **more)
        return parser

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace, unknown_args: list[str] | None = None) -> ServerArgs:
        """Return the arguments that a parser of `add_cli_args` read.

        Raises:
            ValueError: an option that no argument bears.
        """
        if unknown_args:
            raise ValueError(f"unknown options: {' '.join(unknown_args)}")
        return cls.from_kwargs(**{k: v for k, v in vars(args).items() if k in {entry.name for entry in dataclasses.fields(cls)}})

    @classmethod
    def from_kwargs(cls, **kwargs: Any) -> ServerArgs:
        """Return arguments of which exactly these were set by the user.

        Raises:
            ValueError: a name that is no argument.
        """
        unknown = sorted(set(kwargs) - {entry.name for entry in dataclasses.fields(cls)})
        if unknown:
            raise ValueError(f"unknown arguments: {', '.join(unknown)}")
        return cls(**{"explicit_args": frozenset(kwargs), **kwargs})


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
        raise argparse.ArgumentTypeError(f"expected true or false, not {text!r}")
    return text.lower() in ("true", "1", "yes")


_KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": _truth}


def free_port() -> int:
    """Return a port of the loopback interface that nobody holds at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class PortArgs:
    """Where the processes of one engine meet."""

    scheduler_input_ipc_name: str
    master_port: int

    @staticmethod
    def from_server_args(server_args: ServerArgs) -> PortArgs:
        """Return the ports that the launcher settled."""
        assert server_args.master_port is not None
        return PortArgs(server_args.scheduler_endpoint, server_args.master_port)


def prepare_server_args(argv: list[str]) -> ServerArgs:
    """Return the arguments of a command line.

    Raises:
        SystemExit: the command line is wrong, or asks for help.
        ValueError: see `ServerArgs`.
    """
    parser = ServerArgs.add_cli_args(argparse.ArgumentParser(prog="sglang serve --model-type diffusion"))
    known, unknown = parser.parse_known_args(argv)
    return ServerArgs.from_cli_args(known, unknown)


_global_server_args: ServerArgs | None = None


def set_global_server_args(server_args: ServerArgs) -> None:
    """Keep the arguments for this process."""
    global _global_server_args  # noqa: PLW0603 - upstream's own global
    _global_server_args = server_args


def get_global_server_args() -> ServerArgs:
    """Return the arguments of this process.

    Raises:
        ValueError: none were kept.
    """
    if _global_server_args is None:
        raise ValueError("the diffusion ServerArgs of this process are not set")
    return _global_server_args
