"""The diffusion platform contract row by row, with the place where the stand-in's engine asks. Data for the docs and the tests.

python -m sglang_plug.standin.diffusion_contract    prints the table of docs/reference/standin-diffusion.md
"""

from __future__ import annotations

import sys
from typing import NamedTuple


class Row(NamedTuple):
    """One interface.

    Attributes:
        status: `Active` or `Compatibility`, as the document has it.
        area: the document's area.
        name: the method or attribute.
        where: `module:function` below `sglang.multimodal_gen.runtime` that asks for it.
        effect: what the answer changes.
    """

    status: str
    area: str
    name: str
    where: str
    effect: str


_WORKER = "managers.gpu_worker:GPUWorker"
_INIT = f"{_WORKER}.init_device_and_model"
_DESCRIBE = f"{_WORKER}.describe"
_ARGS = "server_args.server_args:ServerArgs"
_PIPELINE = "pipelines_core.pipeline:DiffusionPipeline"
_PARALLEL = "distributed.parallel_state"
_COMPILE = "utils.torch_compile:build_torch_compile_kwargs"

ROWS = (
    Row("Active", "initialisation", "init_backend", "platforms:initialize_current_platform", "runs first in a worker; raising ends it"),
    Row("Active", "configuration", "apply_server_args_defaults", f"{_ARGS}.__post_init__", "writes defaults before arguments are checked"),
    Row("Active", "device, memory", "get_device", _INIT, "names the rank's device"),
    Row("Active", "device, memory", "set_device", _INIT, "makes that device current"),
    Row("Active", "device, memory", "get_local_torch_device", f"{_PIPELINE}.__init__", "is where weights and latents lie"),
    Row("Active", "device, memory", "get_device_name", _DESCRIBE, "is shown by `/server_info`"),
    Row("Active", "device, memory", "get_device_uuid", _DESCRIBE, "is shown by `/server_info`"),
    Row("Active", "device, memory", "get_device_total_memory", f"{_ARGS}.resolve", "refuses a model that cannot fit"),
    Row(
        "Active",
        "device, memory",
        "get_available_gpu_memory",
        "loader.component_loader:load_component",
        "refuses a component that does not fit",
    ),
    Row("Active", "device, memory", "get_device_capability", _DESCRIBE, "is shown; from 8.0 on weights are bfloat16"),
    Row(
        "Active",
        "distributed",
        "get_torch_distributed_backend_str",
        f"{_PARALLEL}:maybe_init_distributed_environment_and_model_parallel",
        "is the process group's backend",
    ),
    Row(
        "Active",
        "distributed",
        "supports_distributed_device_id",
        f"{_PARALLEL}:init_distributed_environment",
        "hands the device to the process group",
    ),
    Row(
        "Active",
        "distributed",
        "get_all_to_all_communicator_cls",
        "distributed.group_coordinator:_resolve_all_to_all_communicator_cls",
        "serves `all_to_all_4D` between workers",
    ),
    Row("Active", "distributed", "get_cpu_architecture", _DESCRIBE, "is shown by `/server_info`"),
    Row(
        "Active",
        "dispatch, models",
        "dispatch_key",
        "platforms.interface:Platform.get_torch_library_dispatch_key",
        "is the key of `torch.ops.sglang.diffusion_euler_step`",
    ),
    Row(
        "Active", "dispatch, models", "get_dispatch_key_name", "layers.custom_op:CustomOp.dispatch_forward", "chooses each layer's forward"
    ),
    Row("Active", "dispatch, models", "get_attn_backend_cls_str", "layers.attention.selector:get_attn_backend", "computes attention"),
    Row("Active", "dispatch, models", "verify_model_arch", "models.registry:resolve_model_cls", "may refuse a component's class"),
    Row("Active", "dispatch, models", "optimize_vae", "loader.component_loader:load_component", "may change the image decoder"),
    Row("Active", "execution", "get_compile_backend", _COMPILE, "compiles the transformer with `--enable-torch-compile`"),
    Row("Active", "execution", "get_compile_options", _COMPILE, "are that compiler's options"),
    Row("Active", "execution", "inference_mode", f"{_PIPELINE}.forward", "is the context of each request"),
    Row("Active", "execution", "seed_everything", f"{_PIPELINE}.noise", "is called before noise is drawn"),
    Row(
        "Active",
        "execution",
        "enable_dit_layerwise_offload_by_default",
        f"{_ARGS}.resolve",
        "keeps the transformer's layers in host memory until they run",
    ),
    Row(
        "Compatibility",
        "communicator",
        "get_device_communicator_cls",
        "platforms.interface:Platform.get_all_to_all_communicator_cls",
        "is what the newer method falls back to",
    ),
)


def render() -> str:
    """Return the rows as a Markdown table."""
    lines = ["| Status | Area | Interface | Asked in `runtime.` | Effect |", "|---|---|---|---|---|"]
    lines += [f"| {row.status} | {row.area} | `{row.name}` | `{row.where}` | {row.effect} |" for row in ROWS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(render())
