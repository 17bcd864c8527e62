"""Which forward an op gets (S8), and the layers that the engine builds from ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from sglang.multimodal_gen.runtime.layers.activation import GeluAndMul, SiluAndMul
from sglang.multimodal_gen.runtime.layers.custom_op import CustomOp
from sglang.multimodal_gen.runtime.layers.layernorm import LayerNorm, LayerNormScaleShift, RMSNorm
from sglang.multimodal_gen.runtime.layers.utils import direct_register_custom_op
from sglang.multimodal_gen.runtime.platforms import Platform, PlatformEnum
from sglang.multimodal_gen.runtime.platforms.cpu import CpuPlatform
from sglang.multimodal_gen.runtime.platforms.cuda import CudaPlatform
from sglang.multimodal_gen.runtime.platforms.rocm import RocmPlatform

if TYPE_CHECKING:
    from collections.abc import Callable

    Use = Callable[[Any], Any]


class Op(CustomOp):
    def forward_native(self, value: int) -> tuple[str, int]:
        return ("native", value)


class WithCuda(Op):
    def forward_cuda(self, value: int) -> tuple[str, int]:
        return ("cuda", value)


def external(key: str) -> Any:
    body = {"_enum": PlatformEnum.OOT, "device_name": "t", "device_type": "cpu", "get_dispatch_key_name": lambda self: key}
    return type("External", (Platform,), body)()


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CustomOp, "_oot_forward_registry", {})


def test_a_registration_for_class_and_key_wins(current: Use):
    current(external("mine"))
    CustomOp.register_oot_forward(WithCuda, fn=lambda op, value: ("registered", type(op), value), platform_key="mine")
    assert WithCuda()(7) == ("registered", WithCuda, 7)
    assert Op()(7) == ("native", 7)  # exactly that class, not its bases
    assert type("Sub", (WithCuda,), {})()(7) == ("native", 7)  # nor its children


def test_then_the_ops_own_forward_of_that_key_then_oot_then_native(current: Use):
    current(external("cuda"))
    assert WithCuda()(1) == ("cuda", 1)
    assert Op()(1) == ("native", 1)  # CustomOp.forward_cuda is no implementation
    out = type("Out", (Op,), {"forward_oot": lambda self, value: ("oot", value)})
    assert out()(1) == ("oot", 1)


def test_the_choice_is_made_when_the_op_is_made(current: Use):
    current(external("mine"))
    early = Op()
    CustomOp.register_oot_forward(Op, fn=lambda op, value: ("late", value), platform_key="mine")
    assert early(1) == ("native", 1)
    assert Op()(1) == ("late", 1)


def test_an_empty_key_is_refused(current: Use):
    current(external(" "))
    with pytest.raises(ValueError, match="non-empty"):
        Op()


@pytest.mark.parametrize(("platform", "expected"), [(CpuPlatform, "native"), (CudaPlatform, "cuda"), (RocmPlatform, "cuda")])
def test_built_in_platforms_choose_by_identity(current: Use, platform: Any, expected: str):
    current(platform())
    assert WithCuda()(1) == (expected, 1)


def test_compiling_keeps_the_choice(current: Use):
    current(external("mine"))
    CustomOp.register_oot_forward(SiluAndMul, fn=lambda op, x: op.forward_native(x) + 1, platform_key="mine")
    op, x = SiluAndMul(), torch.randn(2, 8)
    assert torch.equal(torch.compile(op, backend="eager", fullgraph=True)(x), op.forward_native(x) + 1)


def test_layers_compute_what_their_formulas_say(current: Use):
    current(CpuPlatform())
    x, shift, scale = torch.randn(2, 3, 8), torch.randn(2, 1, 8), torch.randn(2, 1, 8)
    rms = RMSNorm(8, eps=1e-6)
    rms.weight.data = torch.arange(1.0, 9.0)
    expected = x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * torch.arange(1.0, 9.0)
    torch.testing.assert_close(rms(x), expected)
    summed = x + shift
    out, residual = rms(x, shift.expand_as(x))
    torch.testing.assert_close(residual, summed)
    torch.testing.assert_close(out, summed / (summed.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt() * torch.arange(1.0, 9.0))
    centred = x - x.mean(-1, keepdim=True)
    normed = centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(LayerNorm(8)(x), normed)
    torch.testing.assert_close(LayerNormScaleShift(8, eps=1e-5)(x, shift, scale), normed * (1 + scale) + shift)
    torch.testing.assert_close(SiluAndMul()(x), x[..., :4] * torch.sigmoid(x[..., :4]) * x[..., 4:])
    gelu = 0.5 * x[..., :4] * (1 + torch.erf(x[..., :4] / 2**0.5))
    torch.testing.assert_close(GeluAndMul()(x), gelu * x[..., 4:])


def test_an_operator_is_registered_under_the_platforms_key(current: Use):
    platform = external("mine")
    platform.dispatch_key = "PrivateUse1"
    current(platform)

    def acme_double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    for _ in range(2):  # twice is once
        direct_register_custom_op("acme_double", acme_double, mutates_args=[])
    assert torch._C._dispatch_has_kernel_for_dispatch_key("sglang::acme_double", "PrivateUse1")
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("sglang::acme_double", "CUDA")
    assert torch.equal(torch.ops.sglang.acme_double(torch.ones(2)), torch.full((2,), 2.0))
