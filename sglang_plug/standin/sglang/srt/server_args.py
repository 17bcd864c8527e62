"""`ServerArgs`: what the engine is told, and its resolution through the platform. Owns every default; imports no torch.

Order, as in SGLang: construct, `resolve_once` (the platform fills what the user left open), `check_server_args` (everything is judged).
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sglang_plug.standin.meeting import make_folder

from .platforms import current_platform

logger = logging.getLogger(__name__)

DTYPES = ("auto", "float32", "float16", "bfloat16")


def _option(default: Any, text: str, **extra: Any) -> Any:
    return field(default=default, metadata={"help": text, **extra})


@dataclass
class ServerArgs:
    """The engine's arguments. None in a field means that platform and model decide."""

    model_path: str = _option("tiny", 'folder in Hugging Face layout, or "tiny" for the built-in Llama', flags=("--model",))
    tokenizer_path: str | None = _option(None, "folder of the tokenizer; the model's by default")
    served_model_name: str | None = _option(None, "name under which the API offers the model")
    chat_template: str | None = _option(None, "file with a chat template; the tokenizer's by default")
    host: str = _option("127.0.0.1", "address to listen on")
    port: int = _option(30000, "port to listen on")
    api_key: str | None = _option(None, "key that clients must send as a bearer token")
    log_level: str = _option("info", "level of the engine's log")
    device: str | None = _option(None, "device type; the platform's by default")
    dtype: str = _option("auto", "data type of weights and activations", choices=DTYPES)
    kv_cache_dtype: str = _option("auto", "data type of the KV cache", choices=DTYPES)
    quantization: str | None = _option(None, "quantization method of the linear layers")
    context_length: int | None = _option(None, "longest sequence; the model's by default")
    mem_fraction_static: float | None = _option(None, "share of the device's memory for weights and KV cache")
    max_total_tokens: int | None = _option(None, "tokens that the KV cache holds")
    max_running_requests: int = _option(256, "requests that decode together")
    max_queued_requests: int = _option(1024, "requests that may wait; more are refused with status 503")
    max_prefill_tokens: int = _option(16384, "prompt tokens that one prefill step takes")
    max_request_bytes: int = _option(16 << 20, "largest request body; larger ones are refused with status 413")
    page_size: int = _option(16, "tokens in a page of the KV cache")
    tp_size: int = _option(1, "tensor-parallel ranks", flags=("--tensor-parallel-size", "--tp"))
    base_gpu_id: int = _option(0, "number of the first device")
    attention_backend: str | None = _option(None, "attention backend by name; the platform's by default")
    sampling_backend: str | None = _option(None, "accepted for SGLang's sake; there is one sampler")
    disable_cuda_graph: bool = _option(False, "decode without a device graph")
    cuda_graph_max_bs: int = _option(32, "largest batch for which a device graph is captured")
    enable_torch_compile: bool = _option(False, "compile the model's feed-forward blocks")
    enable_piecewise_cuda_graph: bool = _option(False, "compile prefill by the platform's piecewise backend")
    speculative_algorithm: str | None = _option(None, "speculative decoding; the platform must bring the worker")
    speculative_draft_attention_backend: str | None = _option(None, "attention backend of the draft model")
    mamba_scheduler_strategy: str = _option("no_buffer", "how state-space caches are kept", choices=("no_buffer", "extra_buffer"))
    random_seed: int | None = _option(None, "seed of everything random")
    stream_interval: int = _option(1, "tokens between two pieces of a stream")
    watchdog_timeout: float = _option(300.0, "seconds to wait for the engine's processes to become ready")
    enable_metrics: bool = _option(True, "offer /metrics")

    def __post_init__(self) -> None:
        self._resolved = False

    def resolve_once(self) -> None:
        """Fill in what the user left open: first the platform's defaults, then the engine's.

        Raises:
            Exception: whatever the platform's `apply_server_args_defaults` raises.
        """
        if self._resolved:
            return
        self._resolved = True
        known = set(vars(self))
        current_platform.apply_server_args_defaults(self)
        ignore_unknown(set(vars(self)) - known)
        self.served_model_name = self.served_model_name or self.model_path
        if self.model_path == "tiny":
            from sglang_plug.standin.models import tiny_llama, unwritable

            try:
                self.model_path = str(tiny_llama())
            except OSError as error:
                raise ValueError(unwritable(error)) from None
        self.tokenizer_path = self.tokenizer_path or self.model_path
        self.random_seed = 42 if self.random_seed is None else self.random_seed
        self.device = _same_device(self.device) if self.device else _device_string()
        self.attention_backend = self.attention_backend or _default_attention_backend()
        self.mem_fraction_static = self.mem_fraction_static or _memory_fraction()
        if self.speculative_algorithm and self.speculative_draft_attention_backend is None:
            self.speculative_draft_attention_backend = current_platform.get_default_speculative_draft_attention_backend(
                self.speculative_algorithm
            )

    def check_server_args(self) -> None:
        """Judge the arguments.

        Raises:
            ValueError: naming the argument and what would be right.
        """
        for name in ("tp_size", "page_size", "max_running_requests", "max_prefill_tokens", "stream_interval", "cuda_graph_max_bs"):
            _require(getattr(self, name) >= 1, f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}")
        _require(self.max_queued_requests >= 0, "--max-queued-requests must not be negative")
        _require(
            0 < (self.mem_fraction_static or 0.5) < 1, f"--mem-fraction-static must lie between 0 and 1, not {self.mem_fraction_static}"
        )
        _require(0 <= self.port < 65536, f"--port must lie between 0 and 65535, not {self.port}")
        folder = Path(self.model_path)
        _require(folder.is_dir(), f"--model-path: no folder {self.model_path}; the stand-in downloads nothing")
        from .configs.model_config import ModelConfig, weight_files

        ModelConfig.from_server_args(self)
        weight_files(folder)
        if self.quantization:
            current_platform.verify_quantization(self.quantization)
        if self.speculative_algorithm:
            self._check_speculation(self.speculative_algorithm)
        if self.mamba_scheduler_strategy == "extra_buffer":
            supported = current_platform.support_mamba_cache_extra_buffer()
            _require(supported, f"--mamba-scheduler-strategy extra_buffer: {current_platform!r} keeps no such buffer")

    def _check_speculation(self, algorithm: str) -> None:
        supported = current_platform.supports_speculative_algorithm(algorithm)
        _require(supported, f"--speculative-algorithm {algorithm}: {current_platform!r} does not support it")
        backend = self.speculative_draft_attention_backend or ""
        fits = current_platform.supports_speculative_draft_attention_backend(algorithm, backend)
        _require(fits, f"--speculative-draft-attention-backend {backend}: {current_platform!r} does not support it for {algorithm}")

    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> None:
        """Add one option a field."""
        for entry in dataclasses.fields(ServerArgs):
            flags = ["--" + entry.name.replace("_", "-"), *entry.metadata.get("flags", ())]
            text = entry.metadata["help"]
            if isinstance(entry.default, bool):
                parser.add_argument(*flags, dest=entry.name, action=argparse.BooleanOptionalAction, default=entry.default, help=text)
                continue
            kinds = {"int": int, "float": float, "str": str}
            kind = kinds[str(entry.type).partition(" |")[0]]
            parser.add_argument(*flags, dest=entry.name, type=kind, default=entry.default, choices=entry.metadata.get("choices"), help=text)

    @classmethod
    def from_cli_args(cls, args: argparse.Namespace) -> ServerArgs:
        """Build the arguments from a parsed command line."""
        return cls(**{entry.name: getattr(args, entry.name) for entry in dataclasses.fields(cls)})

    def url(self) -> str:
        """Return where the server can be reached."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104 - compared, not bound
        return f"http://{host}:{self.port}"


def ignore_unknown(names: set[str]) -> None:
    """Tell of arguments that the stand-in does not have; some of them may be SGLang's."""
    if names:
        logger.warning("the stand-in has no such arguments and ignores them: %s", ", ".join(sorted(names)))


def prepare_server_args(argv: list[str]) -> ServerArgs:
    """Read a command line. Options that only SGLang has are told and ignored.

    Raises:
        SystemExit: it cannot be read (status 2).
        ValueError: an option that nobody has is near to one that the stand-in has.
    """
    parser = argparse.ArgumentParser(prog="sglang serve", description="Serve a model on the stand-in engine.", allow_abbrev=False)
    ServerArgs.add_cli_args(parser)
    known, unknown = parser.parse_known_args(argv)
    for name in (word.partition("=")[0] for word in unknown if word.startswith("--")):
        near = difflib.get_close_matches(name, parser._option_string_actions, n=1, cutoff=0.75)
        if near and not _is_sglangs(name):
            raise ValueError(f"no such option: {name}; did you mean {near[0]}?")
    ignore_unknown({word for word in unknown if word.startswith("-")} or set(unknown))
    server_args = ServerArgs.from_cli_args(known)
    server_args.resolve_once()
    return server_args


def _is_sglangs(flag: str) -> bool:
    """Tell whether the newest release that is known has this option, or another spelling of it."""
    if re.fullmatch(r"--(?:[dep]p|.+-parallel-size)", flag):
        return True
    from sglang_plug.contract import catalogue

    field = flag.removeprefix("--").replace("-", "_")
    return catalogue.load(catalogue.newest()).find(f"sglang.srt.server_args.ServerArgs.{field}") is not None


@dataclass
class PortArgs:
    """Where the engine's processes meet: sockets in a folder that only this user can enter."""

    folder: str

    @classmethod
    def init_new(cls) -> PortArgs:
        """Make the folder."""
        return cls(make_folder("sglang-standin-", "detokenizer"))

    def __getattr__(self, name: str) -> str:
        names = {"tokenizer_ipc_name": "tokenizer", "scheduler_input_ipc_name": "scheduler", "detokenizer_ipc_name": "detokenizer"}
        if name in names:
            return f"ipc://{self.folder}/{names[name]}"
        if name == "dist_init_method":
            return f"file://{self.folder}/ranks"
        raise AttributeError(name)


def _require(holds: object, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _same_device(wanted: str) -> str:
    """Return the device type that was asked for; a platform that names none has it its way.

    Raises:
        ValueError: the platform has another one.
    """
    own = {current_platform.device_type}
    if current_platform.is_out_of_tree():
        try:
            own.add(str(current_platform.get_device(None)).partition(":")[0])  # type: ignore[arg-type]  # what SGLang passes
        except NotImplementedError:
            return wanted
    if wanted not in own:
        raise ValueError(f"--device {wanted}: the platform is {current_platform!r}, whose device is {' or '.join(sorted(own))}")
    return wanted


def _device_string() -> str:
    """Return the platform's device as text; a plugin's is asked with None, as SGLang does."""
    if not current_platform.is_out_of_tree():
        return current_platform.device_type
    try:
        device = current_platform.get_device(None)  # type: ignore[arg-type]  # what SGLang passes
    except NotImplementedError:
        raise ValueError(f"{current_platform!r} does not say which device to use: override get_device(device_id)") from None
    if not isinstance(device, str):
        logger.warning("%r.get_device(None) returned a %s; SGLang uses the answer as a string", current_platform, type(device).__name__)
    return str(device).partition(":")[0]


def _default_attention_backend() -> str:
    try:
        return current_platform.get_default_attention_backend()
    except NotImplementedError:
        return "torch_native"


def _memory_fraction() -> float:
    """Return a modest share: the stand-in lives beside other programs; small devices leave less to spare."""
    try:
        total = current_platform.get_device_total_memory()
    except NotImplementedError:
        return 0.3
    return 0.3 if total > 8 << 30 else 0.2
