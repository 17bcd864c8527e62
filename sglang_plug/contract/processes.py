"""The processes of each runtime, and whether a release loads plugins in them: roles are a table, loading is read off the source."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.contract.folding import dotted_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.contract.source import SourceFile, SourceTree

_CALLS = frozenset({"load_plugins", "apply_plugin_hooks"})


@dataclass(frozen=True)
class Role:
    """A kind of process.

    Attributes:
        name: in words.
        entries: where it starts, `module:function`, newest spelling first; the first that exists counts.
        runtime: `srt` or `diffusion`.
        through: what it means when the entry itself has no call: `no`, `indirect` (a function that it always calls has one),
            `parent` (the command that started it has one).
        note: what a plugin author should know.
    """

    name: str
    entries: tuple[str, ...]
    runtime: str = "srt"
    through: str = "no"
    note: str = ""


_ENGINE = "sglang.srt.entrypoints.engine"
_HTTP = "sglang.srt.entrypoints.http_server"
_MANAGERS = "sglang.srt.managers"
_DIFFUSION = "sglang.multimodal_gen.runtime"

ROLES = (
    Role("main: sglang serve", ("sglang.cli.serve:serve",), note="`--help` is printed before plugins load"),
    Role("main: python -m sglang.launch_server", ("sglang.launch_server:__main__",)),
    Role("main: sglang.Engine", (f"{_ENGINE}:Engine.__init__",)),
    Role(
        "main: subprocess launcher, HTTP server, TokenizerManager",
        (f"{_ENGINE}:Engine._launch_subprocesses",),
        note="after ServerArgs is resolved",
    ),
    Role("main: http_server.launch_server", (f"{_HTTP}:launch_server",), through="indirect"),
    Role("main: gRPC server", ("sglang.srt.entrypoints.grpc_server:serve_grpc",), through="parent"),
    Role("scheduler (one a rank)", (f"{_MANAGERS}.scheduler:run_scheduler_process",), note="before Scheduler is built"),
    Role("scheduler, prelaunched", (f"{_MANAGERS}.data_parallel_controller:run_scheduler_process_with_init_pipe",), through="indirect"),
    Role("data-parallel controller", (f"{_MANAGERS}.data_parallel_controller:run_data_parallel_controller_process",)),
    Role(
        "detokenizer",
        (f"{_MANAGERS}.detokenizer_manager:run_detokenizer_process",),
        note="replacing the class DetokenizerManager has no effect: a default argument keeps it",
    ),
    Role("detokenizer router", (f"{_MANAGERS}.multi_tokenizer_mixin:run_multi_detokenizer_router_process",)),
    Role("tokenizer worker (--tokenizer-worker-num > 1)", (f"{_HTTP}:init_multi_tokenizer",)),
    Role("granian worker", (f"{_HTTP}:_init_granian_worker",)),
    Role("attached tokenizer worker", (f"{_ENGINE}:Engine.attach_tokenizer_worker",)),
    Role(
        "encoder HTTP server",
        ("sglang.srt.disaggregation.encoder.http_server:launch_server", "sglang.srt.disaggregation.encode_server:launch_server"),
        through="parent",
    ),
    Role(
        "encoder gRPC server",
        (
            "sglang.srt.disaggregation.encoder.grpc_server:serve_grpc_encoder",
            "sglang.srt.disaggregation.encode_grpc_server:serve_grpc_encoder",
        ),
        through="parent",
    ),
    Role(
        "encoder worker",
        ("sglang.srt.disaggregation.encoder.server:launch_encoder", "sglang.srt.disaggregation.encode_server:launch_encoder"),
    ),
    Role(
        "encoder data-parallel worker",
        ("sglang.srt.disaggregation.encoder.runtime:launch_dp_worker", "sglang.srt.disaggregation.encode_server:launch_dp_worker"),
    ),
    Role("expert backup manager", ("sglang.srt.elastic_ep.expert_backup_manager:run_expert_backup_manager_process",)),
    Role("weight cache daemon", ("sglang.srt.weight_cache.daemon:run_weight_cache_daemon",)),
    Role("sidecar", ("sglang.srt.entrypoints.sidecar:_run_sidecar",)),
    Role("Ray scheduler actor", ("sglang.srt.ray.scheduler_actor:SchedulerActor.__init__",)),
    Role("main: Ray HTTP launcher", ("sglang.srt.ray.http_server:launch_server",), through="indirect"),
    Role("mindspore scheduler helper", ("sglang.srt.model_executor.mindspore_runner:run_scheduler_init",)),
    Role("main: bench_one_batch", ("sglang.benchmark.one_batch:__main__", "sglang.bench_one_batch:__main__")),
    Role("main: sglang serve, diffusion branch", ("sglang.cli.serve:_run_diffusion",), "diffusion"),
    Role(
        "main: sglang generate", ("sglang.cli.generate:generate",), "diffusion", note="server arguments are made before hooks are applied"
    ),
    Role("main: diffusion command line", (f"{_DIFFUSION}.entrypoints.cli.main:main",), "diffusion"),
    Role(
        "main: DiffGenerator.from_pretrained", (f"{_DIFFUSION}.entrypoints.diffusion_generator:DiffGenerator.from_pretrained",), "diffusion"
    ),
    Role(
        "main: DiffGenerator.from_server_args",
        (f"{_DIFFUSION}.entrypoints.diffusion_generator:DiffGenerator.from_server_args",),
        "diffusion",
        note="server arguments exist already",
    ),
    Role("main: python -m …multimodal_gen.runtime.launch_server", (f"{_DIFFUSION}.launch_server:__main__",), "diffusion"),
    Role("main: dispatch_launch", (f"{_DIFFUSION}.launch_server:dispatch_launch",), "diffusion"),
    Role("main: launch_server", (f"{_DIFFUSION}.launch_server:launch_server",), "diffusion"),
    Role(
        "GPU worker (one a GPU)",
        (f"{_DIFFUSION}.managers.worker_bootstrap:bootstrap_scheduler_process", f"{_DIFFUSION}.managers.gpu_worker:run_scheduler_process"),
        "diffusion",
    ),
    Role(
        "HTTP child",
        (f"{_DIFFUSION}.managers.worker_bootstrap:bootstrap_http_server_process", f"{_DIFFUSION}.launch_server:_run_http_server_process"),
        "diffusion",
    ),
    Role("disaggregated role, old", (f"{_DIFFUSION}.launch_server:_run_disagg_role_process",), "diffusion"),
    Role("disaggregated head", (f"{_DIFFUSION}.launch_server:launch_disagg_server",), "diffusion", through="indirect"),
    Role("disaggregated role launcher", (f"{_DIFFUSION}.launch_server:launch_disagg_role",), "diffusion", through="indirect"),
    Role("disaggregated pool launcher", (f"{_DIFFUSION}.launch_server:launch_pool_disagg_server",), "diffusion"),
)


def extract(tree: SourceTree) -> dict[str, list[dict[str, Any]]]:
    """Return, for each runtime, the processes that this release has and whether they load plugins."""
    files = {file.module: file for file in tree.files}
    has_system = {"srt": "sglang.srt.plugins" in files, "diffusion": f"{_DIFFUSION}.platforms.plugins" in files}
    found: dict[str, list[dict[str, Any]]] = {"srt": [], "diffusion": []}
    for role in ROLES:
        place = next((where for entry in role.entries if (where := _locate(files, entry)) is not None), None)
        if place is None:
            continue
        file, entry, node = place
        loads = [f"{file.path}:{line} {name}()" for line, name in _loading_calls(node)]
        if role.runtime == "diffusion" and not has_system["diffusion"]:
            loads = []
        plugins = "yes" if loads else role.through if has_system[role.runtime] else "no"
        row = {"role": role.name, "entry": entry, "plugins": plugins}
        found[role.runtime].append(row | ({"loads": loads} if loads else {}) | ({"note": role.note} if role.note else {}))
    return found


def _locate(files: dict[str, SourceFile], entry: str) -> tuple[SourceFile, str, ast.AST] | None:
    module, _, path = entry.partition(":")
    file = files.get(module)
    if file is None or file.content is None:
        return None
    node: ast.AST = ast.parse(file.content)
    for name in path.split("."):
        inner = _main_block(node) if name == "__main__" else next((part for part in _definitions(node) if part.name == name), None)
        if inner is None:
            return None
        node = inner
    return file, entry, node


def _main_block(node: ast.AST) -> ast.If | None:
    return next((part for part in ast.iter_child_nodes(node) if isinstance(part, ast.If) and "__main__" in ast.dump(part.test)), None)


def _definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part
        elif isinstance(part, (ast.If, ast.Try)):
            yield from _definitions(part)


def _loading_calls(node: ast.AST) -> list[tuple[int, str]]:
    found = []
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = (dotted_name(part.func) or "").rpartition(".")[2]
            if name in _CALLS:
                found.append((part.lineno, name))
    return sorted(found)
