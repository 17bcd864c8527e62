"""The platform classes: identities, documented defaults, and both generations of the interface (S8)."""

from __future__ import annotations

import contextlib
import logging
import os
from typing import Any
from unittest import mock

import pytest
import torch
from sglang.srt.platforms.cpu import CpuSRTPlatform
from sglang.srt.platforms.cuda import CudaDeviceMixin, CudaSRTPlatform
from sglang.srt.platforms.device_mixin import CpuArchEnum, DeviceCapability, DeviceMixin, PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform, reject_out_of_tree_path, require_out_of_tree_impl
from sglang.srt.platforms.mps import MpsSRTPlatform
from sglang.srt.platforms.musa import MusaSRTPlatform
from sglang.srt.platforms.npu import NPUSRTPlatform
from sglang.srt.platforms.rocm import RocmSRTPlatform
from sglang.srt.platforms.sail import SailSRTPlatform
from sglang.srt.platforms.xpu import XpuSRTPlatform

IDENTITIES = {
    "CUDA": "is_cuda",
    "ROCM": "is_rocm",
    "CPU": "is_cpu",
    "XPU": "is_xpu",
    "MUSA": "is_musa",
    "NPU": "is_npu",
    "TPU": "is_tpu",
    "MPS": "is_mps",
    "SAIL": "is_sail",
    "OOT": "is_out_of_tree",
}
CUDA_ALIKE = {"CUDA", "ROCM", "MUSA", "SAIL"}


def platform(member: str, base: type = SRTPlatform) -> Any:
    return type("P", (base,), {"_enum": PlatformEnum[member], "device_name": member.lower()})()


@pytest.mark.parametrize("member", [m.name for m in PlatformEnum])
def test_each_identity_answers_for_itself_alone(member: str) -> None:
    found = platform(member, DeviceMixin)
    assert {name for name, query in IDENTITIES.items() if getattr(found, query)()} == ({member} & IDENTITIES.keys())
    assert found.is_cuda_alike() is (member in CUDA_ALIKE)


def test_the_documented_enumerations_exist() -> None:
    documented = {"CUDA", "ROCM", "CPU", "XPU", "MUSA", "NPU", "TPU", "MPS", "OOT", "UNSPECIFIED"}
    assert documented <= {m.name for m in PlatformEnum}
    assert {m.name for m in CpuArchEnum} == {"X86", "ARM", "UNSPECIFIED"}


def test_capabilities_compare_and_print() -> None:
    assert DeviceCapability(9, 0) > DeviceCapability(8, 9)
    assert DeviceCapability(8, 9).as_version_str() == "8.9"
    assert DeviceCapability(8, 9).to_int() == 89
    with pytest.raises(AssertionError):
        DeviceCapability(8, 10).to_int()


# Method, arguments: what the document's tables give as default.
RAISES = [
    ("get_device", (0,)),
    ("set_device", ("x",)),
    ("get_device_name", (0,)),
    ("get_device_uuid", (0,)),
    ("get_device_capability", (0,)),
    ("get_device_total_memory", (0,)),
    ("get_available_memory", (0,)),
    ("get_current_memory_usage", (None,)),
    ("get_torch_distributed_backend_str", ()),
    ("get_default_attention_backend", ()),
    ("get_graph_runner_cls", ()),
    ("get_mha_kv_pool_cls", ()),
    ("get_mla_kv_pool_cls", ()),
    ("get_dsa_kv_pool_cls", ()),
    ("get_paged_allocator_cls", ()),
    ("get_quantization_config", ("fp8",)),
    ("get_piecewise_backend_cls", ()),
]
RETURNS = [
    ("empty_cache", (), None),
    ("synchronize", (), None),
    ("is_pin_memory_available", (), False),
    ("is_pin_memory_available", ("cpu",), False),
    ("get_communicator_class", (), None),
    ("verify_quantization", ("awq",), None),
    ("support_cuda_graph", (), False),
    ("support_piecewise_cuda_graph", (), False),
    ("supports_fp8", (), False),
    ("get_compile_backend", (), "inductor"),
    ("get_compile_backend", ("npugraph_ex",), "inductor"),
    ("get_dispatch_key_name", (), "native"),
    ("apply_server_args_defaults", (object(),), None),
    ("init_backend", (), None),
]


@pytest.mark.parametrize(("method", "arguments"), RAISES)
def test_documented_defaults_that_raise(method: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(NotImplementedError):
        getattr(SRTPlatform(), method)(*arguments)


@pytest.mark.parametrize(("method", "arguments", "expected"), RETURNS)
def test_documented_defaults_that_return(method: str, arguments: tuple[Any, ...], expected: object) -> None:
    assert getattr(SRTPlatform(), method)(*arguments) == expected


@pytest.mark.parametrize(
    ("machine", "arch"), [("x86_64", "X86"), ("AMD64", "X86"), ("i686", "X86"), ("aarch64", "ARM"), ("riscv", "UNSPECIFIED")]
)
def test_cpu_architecture(machine: str, arch: str) -> None:
    with mock.patch("platform.machine", return_value=machine):
        assert DeviceMixin.get_cpu_architecture() is CpuArchEnum[arch]
        assert DeviceMixin().cpu_arch is CpuArchEnum[arch]


@pytest.mark.parametrize(
    ("device_type", "backend"), [("cuda", "nccl"), ("npu", "hccl"), ("xpu", "xccl"), ("musa", "mccl"), ("odd", "gloo"), ("cpu", "gloo")]
)
def test_the_engine_knows_a_backend_where_the_platform_names_none(device_type: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.distributed import parallel_state

    monkeypatch.setattr(parallel_state, "current_platform", type("P", (SRTPlatform,), {"device_type": device_type, "device_name": "npu"})())
    assert parallel_state._backend() == backend


def test_inference_mode_and_seeds() -> None:
    with SRTPlatform.inference_mode():
        assert torch.is_inference_mode_enabled()
    SRTPlatform.seed_everything(7)
    first = torch.rand(3)
    SRTPlatform.seed_everything(7)
    assert torch.equal(first, torch.rand(3))
    with mock.patch("torch.manual_seed") as seed:
        SRTPlatform.seed_everything(None)
    seed.assert_not_called()


def test_reindex_yields_the_number_itself() -> None:
    with SRTPlatform().reindex_device_id(3) as number:
        assert number == 3


# -- two generations


def test_the_newer_capabilities_answer_the_older_questions() -> None:
    class New(SRTPlatform):
        capabilities = PlatformCapabilities(graph_capture=True, piecewise_graph=True)

    assert New().support_cuda_graph()
    assert New().support_piecewise_cuda_graph()


def test_capabilities_are_cautious_and_frozen() -> None:
    assert set(vars(PlatformCapabilities()).values()) == {False}
    with pytest.raises(AttributeError):
        PlatformCapabilities().graph_capture = True  # type: ignore[misc]
    with pytest.raises(TypeError):
        PlatformCapabilities(True)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("kind", "factory"),
    [("mha", "get_mha_kv_pool_cls"), ("mla", "get_mla_kv_pool_cls"), ("dsa", "get_dsa_kv_pool_cls"), ("dsa", "get_nsa_kv_pool_cls")],
)
def test_an_older_pool_factory_is_served_with_one_warning(kind: Any, factory: str, caplog: pytest.LogCaptureFixture) -> None:
    old = type("Old", (SRTPlatform,), {factory: lambda self: dict})()
    with caplog.at_level(logging.WARNING):
        assert old.get_kv_pool_cls(kind=kind) is dict
        assert old.get_kv_pool_cls(kind=kind) is dict
    assert [factory in record.getMessage() for record in caplog.records] == [True]
    assert SRTPlatform().get_kv_pool_cls(kind=kind) is None


def test_the_seam_checks_concern_plugins_alone() -> None:
    for check, more in ((require_out_of_tree_impl, {"hook": "get_graph_runner_cls()"}), (reject_out_of_tree_path, {})):
        check(CpuSRTPlatform(), subsystem="graph runner", **more)
        with pytest.raises(NotImplementedError, match="graph runner"):
            check(platform("OOT"), subsystem="graph runner", **more)


# -- built-in platforms


@pytest.mark.parametrize(
    ("cls", "member", "device_type"),
    [
        (CpuSRTPlatform, "CPU", "cpu"),
        (CudaSRTPlatform, "CUDA", "cuda"),
        (RocmSRTPlatform, "ROCM", "cuda"),
        (SailSRTPlatform, "SAIL", "cuda"),
        (MusaSRTPlatform, "MUSA", "musa"),
        (XpuSRTPlatform, "XPU", "xpu"),
        (NPUSRTPlatform, "NPU", "npu"),
        (MpsSRTPlatform, "MPS", "mps"),
    ],
)
def test_built_in_identities(cls: type, member: str, device_type: str) -> None:
    found = cls()
    assert found._enum is PlatformEnum[member]
    assert found.device_type == device_type
    assert found.device_name == member.lower()
    assert repr(found) == f"{cls.__name__}(device={member.lower()})"
    assert not found.is_out_of_tree()


def test_cpu_operations_work_here() -> None:
    cpu = CpuSRTPlatform()
    assert cpu.get_device(5) == torch.device("cpu")
    cpu.set_device(cpu.get_device())
    free, total = cpu.get_available_memory()
    assert 0 < free < total == cpu.get_device_total_memory()
    assert 0 < cpu.get_current_memory_usage() < total
    assert cpu.get_device_capability() is None
    assert cpu.get_device_name().startswith("cpu")
    assert cpu.get_device_uuid()
    assert cpu.get_torch_distributed_backend_str() == "gloo"
    cpu.empty_cache()
    cpu.synchronize()


@pytest.mark.parametrize(
    ("method", "arguments", "patched", "answer", "expected"),
    [
        ("get_device_total_memory", (1,), "torch.cuda.get_device_properties", mock.Mock(total_memory=123), 123),
        ("get_current_memory_usage", ("cuda:1",), "torch.cuda.max_memory_allocated", 456, 456.0),
        ("get_device_name", (1,), "torch.cuda.get_device_name", "NVIDIA H100", "NVIDIA H100"),
        ("get_device_uuid", (1,), "torch.cuda.get_device_properties", mock.Mock(uuid="GPU-1"), "GPU-1"),
        ("get_device_capability", (1,), "torch.cuda.get_device_capability", (9, 0), DeviceCapability(9, 0)),
        ("get_available_memory", (1,), "torch.cuda.mem_get_info", (3, 5), (3, 5)),
        ("set_device", ("cuda:1",), "torch.cuda.set_device", None, None),
        ("empty_cache", (), "torch.cuda.empty_cache", None, None),
        ("synchronize", (), "torch.cuda.synchronize", None, None),
    ],
)
def test_cuda_operations_go_to_torch(method: str, arguments: tuple[Any, ...], patched: str, answer: Any, expected: Any) -> None:
    with mock.patch(patched, return_value=answer) as called:
        assert getattr(CudaSRTPlatform(), method)(*arguments) == expected
    called.assert_called_once_with(*arguments)


def test_cuda_identity_capabilities_and_device() -> None:
    cuda = CudaSRTPlatform()
    assert isinstance(cuda, CudaDeviceMixin)
    assert cuda.get_device(2) == torch.device("cuda", 2)
    assert cuda.supports_fp8()
    assert cuda.support_cuda_graph()
    assert cuda.is_pin_memory_available("cuda:0")
    assert not cuda.is_pin_memory_available(torch.device("cpu"))


def test_cuda_seeds_its_devices_too() -> None:
    with (
        mock.patch("torch.manual_seed") as host_seed,  # torch's own seeds every device in passing
        mock.patch("torch.cuda.manual_seed_all") as device_seed,
        mock.patch("sglang.srt.platforms.device_mixin.np.random.seed") as numpy_seed,
    ):
        CudaSRTPlatform.seed_everything(11)
    for seed in (host_seed, device_seed, numpy_seed):
        seed.assert_called_once_with(11)


@pytest.mark.parametrize(("before", "within"), [(None, "2"), ("4,5,6", "6")])
def test_cuda_reindexing_shows_one_device_and_restores(monkeypatch: pytest.MonkeyPatch, before: str | None, within: str) -> None:
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False) if before is None else monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    with contextlib.suppress(KeyError), CudaSRTPlatform().reindex_device_id(2) as number:
        assert (number, os.environ["CUDA_VISIBLE_DEVICES"]) == (0, within)
        raise KeyError  # it restores whatever happens
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == before


def test_mps_has_one_device() -> None:
    with pytest.raises(ValueError, match="one device"):
        MpsSRTPlatform().get_device(1)
    with pytest.raises(ValueError, match="cannot select"):
        MpsSRTPlatform().set_device("cuda")


def test_a_mixin_in_the_documented_order_takes_effect() -> None:
    class Mixin(DeviceMixin):
        _enum = PlatformEnum.OOT
        device_name = device_type = "my_device"

        def get_device_total_memory(self, device_id: int = 0) -> int:
            return 17

    found = type("MyPlatform", (SRTPlatform, Mixin), {})()
    assert found.is_out_of_tree()
    assert found.get_device_total_memory() == 17
    assert found.device_name == "my_device"


def test_mps_without_a_working_set_is_an_error() -> None:
    with (
        mock.patch("sglang.srt.platforms.mps.torch.mps.recommended_max_memory", return_value=0),
        pytest.raises(RuntimeError, match="Metal"),
    ):
        MpsSRTPlatform().get_device_total_memory()


def test_mps_properties_have_the_working_set_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang import _platform_stubs

    monkeypatch.setattr(_platform_stubs, "_cached_props", None)
    with mock.patch("torch.mps.recommended_max_memory", return_value=800):
        assert _platform_stubs.get_device_properties().total_memory == 800
    assert _platform_stubs.get_device_properties().total_memory == 800  # asked once
