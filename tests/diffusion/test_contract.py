"""The contract: the document's rows and defaults (S8), and where the engine asks for each."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import torch
from sglang.multimodal_gen.runtime import platforms
from sglang.multimodal_gen.runtime.platforms.cpu import CpuPlatform
from sglang.multimodal_gen.runtime.platforms.interface import CpuArchEnum, DeviceCapability, Platform, PlatformEnum

from sglang_plug.standin import diffusion_contract

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "sglang_plug" / "standin" / "sglang" / "multimodal_gen" / "runtime"

# The rows as the source document lists them.
ACTIVE = [
    "init_backend",
    "apply_server_args_defaults",
    "get_device",
    "set_device",
    "get_local_torch_device",
    "get_device_name",
    "get_device_uuid",
    "get_device_total_memory",
    "get_available_gpu_memory",
    "get_device_capability",
    "get_torch_distributed_backend_str",
    "supports_distributed_device_id",
    "get_all_to_all_communicator_cls",
    "get_cpu_architecture",
    "dispatch_key",
    "get_dispatch_key_name",
    "get_attn_backend_cls_str",
    "verify_model_arch",
    "optimize_vae",
    "get_compile_backend",
    "get_compile_options",
    "inference_mode",
    "seed_everything",
    "enable_dit_layerwise_offload_by_default",
]
COMPATIBILITY = ["get_device_communicator_cls"]


class Bare(Platform):
    """An external platform that defines nothing beyond its identity."""

    _enum = PlatformEnum.OOT
    device_name = "bare"
    device_type = "cpu"


def test_every_row_of_the_document_is_there():
    assert [row.name for row in diffusion_contract.ROWS if row.status == "Active"] == ACTIVE
    assert [row.name for row in diffusion_contract.ROWS if row.status == "Compatibility"] == COMPATIBILITY


@pytest.mark.parametrize("row", diffusion_contract.ROWS, ids=lambda row: row.name)
def test_the_engine_asks_where_the_table_says(row: diffusion_contract.Row):
    module, function = row.where.split(":")
    path = RUNTIME / (module.replace(".", "/") + ".py")
    found: Any = ast.parse((path if path.exists() else path.with_suffix("") / "__init__.py").read_text())
    for part in function.split("."):
        found = next(node for node in found.body if getattr(node, "name", None) == part)
    assert row.name in {node.attr for node in ast.walk(found) if isinstance(node, ast.Attribute)}


def test_the_page_holds_the_table():
    page = (ROOT / "docs" / "reference" / "standin-diffusion.md").read_text()
    assert diffusion_contract.render() in page, "python -m sglang_plug.standin.diffusion_contract prints the table"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("get_device", (0,)),
        ("get_local_torch_device", ()),
        ("get_device_name", ()),
        ("get_device_uuid", ()),
        ("get_device_total_memory", ()),
        ("get_available_gpu_memory", ()),
        ("get_torch_distributed_backend_str", ()),
        ("get_all_to_all_communicator_cls", ()),
        ("get_torch_library_dispatch_key", ()),
    ],
)
def test_what_has_no_default_must_be_implemented(name: str, args: tuple[Any, ...]):
    with pytest.raises(NotImplementedError):
        getattr(Bare(), name)(*args)


def test_defaults():
    bare = Bare()
    assert bare.init_backend() is None
    assert bare.apply_server_args_defaults(object()) is None
    assert bare.get_device_capability() is None
    assert bare.has_device_capability((1, 0)) is False
    assert bare.supports_distributed_device_id() is False
    assert bare.get_cpu_architecture() is CpuArchEnum.UNSPECIFIED
    assert bare.get_dispatch_key_name() == "native"
    assert bare.dispatch_key == ""
    assert bare.get_attn_backend_cls_str(None, 64, torch.float32) == ""
    assert bare.verify_model_arch("Any") is None
    vae = torch.nn.Identity()
    assert bare.optimize_vae(vae) is vae
    assert bare.get_compile_backend() == "inductor"
    assert bare.get_compile_options(vae) is None
    assert bare.enable_dit_layerwise_offload_by_default() is True
    assert bare.device_shares_host_memory() is False
    with bare.inference_mode():
        assert torch.is_inference_mode_enabled()


def test_identity_is_what_the_enum_says():
    bare = Bare()
    answers = {name: getattr(bare, name)() for name in dir(bare) if name.startswith("is_") and name not in {"is_device_type", "is_hpu"}}
    assert {name for name, yes in answers.items() if yes} == {"is_out_of_tree", "is_amp_supported", "is_float64_supported"}
    assert CpuPlatform().is_cpu()
    assert not CpuPlatform().is_out_of_tree()


def test_the_older_communicator_method_is_the_fallback():
    legacy = type("Legacy", (Bare,), {"get_device_communicator_cls": classmethod(lambda cls: "vendor.Legacy")})
    assert legacy().get_all_to_all_communicator_cls() == "vendor.Legacy"


def test_seeding_makes_torch_repeat_itself():
    Bare().seed_everything(3)
    first = torch.rand(2)
    Bare().seed_everything(3)
    assert torch.equal(first, torch.rand(2))


def test_capabilities_compare():
    assert DeviceCapability(9, 0) > DeviceCapability(8, 9)
    assert DeviceCapability(8, 6).to_int() == 86
    assert DeviceCapability(8, 6).as_version_str() == "8.6"
    with pytest.raises(AssertionError):
        DeviceCapability(8, 10).to_int()


@pytest.mark.parametrize(
    ("name", "enum", "device_type", "backend"),
    [
        ("cpu", "CPU", "cpu", "gloo"),
        ("cuda", "CUDA", "cuda", "nccl"),
        ("rocm", "ROCM", "cuda", "nccl"),
        ("xpu", "XPU", "xpu", "xccl"),
        ("mps", "MPS", "mps", "gloo"),
        ("npu", "NPU", "npu", "hccl"),
        ("musa", "MUSA", "musa", "nccl"),
    ],
)
def test_the_built_in_platforms(name: str, enum: str, device_type: str, backend: str):
    platform = platforms._load_platform_class(platforms._BUILTIN_PLATFORM_QUALNAMES[name])()
    assert platform._enum is PlatformEnum[enum]
    assert platform.device_type == device_type
    assert platform.get_torch_distributed_backend_str() == backend
    assert not platform.is_out_of_tree()


def test_the_cpu_platform_works():
    cpu = CpuPlatform()
    assert cpu.get_device(3) == cpu.get_local_torch_device() == torch.device("cpu")
    assert 0 < cpu.get_available_gpu_memory() * (1 << 30) <= cpu.get_device_total_memory()
    assert cpu.get_cpu_architecture() in CpuArchEnum
    assert cpu.tensor_on_device(torch.ones(1))
    cpu.set_device(torch.device("cpu"))
    cpu.synchronize()
    cpu.empty_cache()
