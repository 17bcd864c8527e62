"""Conformance of what only diffusion asks for: dispatch keys, attention, communication, the model."""

from __future__ import annotations

import contextlib
import pkgutil
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.testing.members import ask, only
from sglang_plug.testing.verdict import demand

if TYPE_CHECKING:
    from sglang_plug.contract.model import PlatformContract


class DiffusionTests:
    """The Active rows of the diffusion contract (S8)."""

    @only("diffusion")
    def test_dispatch_key_is_torchs(self, platform: Any) -> None:
        """A key of PyTorch's dispatcher; `get_dispatch_key_name()` is another thing."""
        import torch

        key = getattr(platform, "dispatch_key", None)
        demand(
            isinstance(key, str) and key,
            f"dispatch_key is {key!r}",
            "reads it while its layers are imported, and stops with NotImplementedError",
        )
        known = torch._C._parse_dispatch_key(key) is not None
        demand(known, f"PyTorch has no dispatch key {key!r}", "registers its kernels for it with torch.library, which refuses it")
        demand(
            platform.get_torch_library_dispatch_key() == key,
            "get_torch_library_dispatch_key() is not dispatch_key",
            "registers kernels for the former",
        )

    @only("diffusion")
    def test_attention_backend_is_a_class(self, platform: Any, expected: PlatformContract) -> None:
        """A qualified name that imports, with nothing selected."""
        import torch

        name = ask(platform, expected, "get_attn_backend_cls_str", None, 64, torch.float32)
        self._demand_class(name, "get_attn_backend_cls_str()", "builds every attention layer from it")

    @only("diffusion")
    def test_communicator_is_a_class(self, platform: Any, expected: PlatformContract) -> None:
        """For all_to_all_4D with several workers."""
        name = ask(platform, expected, "get_all_to_all_communicator_cls")
        self._demand_class(
            name, "get_all_to_all_communicator_cls()", "builds the sequence-parallel groups from it, when there are several workers"
        )

    @only("diffusion")
    def test_switches_answer_yes_or_no(self, platform: Any, expected: PlatformContract) -> None:
        """Each is a bool."""
        for name in ("supports_distributed_device_id", "enable_dit_layerwise_offload_by_default", "device_shares_host_memory"):
            if name in expected.members:
                answer = ask(platform, expected, name)
                demand(isinstance(answer, bool), f"{name}() returned {answer!r}", "branches on it")

    @only("diffusion")
    def test_compile_options_are_a_dict_or_none(self, platform: Any, expected: PlatformContract) -> None:
        """For torch.compile."""
        import torch

        answer = ask(platform, expected, "get_compile_options", torch.nn.Identity())
        demand(
            answer is None or isinstance(answer, dict), f"get_compile_options() returned {answer!r}", "hands it to torch.compile as options"
        )

    @only("diffusion")
    def test_vae_comes_back(self, platform: Any, expected: PlatformContract) -> None:
        """`optimize_vae` returns a module."""
        import torch

        answer = ask(platform, expected, "optimize_vae", torch.nn.Identity())
        demand(isinstance(answer, torch.nn.Module), f"optimize_vae() returned {answer!r}", "goes on with what it returns")

    @only("diffusion")
    def test_inference_mode_is_a_context(self, platform: Any, expected: PlatformContract) -> None:
        """A context in which nothing is recorded for gradients."""
        import torch

        context = ask(platform, expected, "inference_mode")
        demand(
            isinstance(context, contextlib.AbstractContextManager),
            f"inference_mode() returned {context!r}",
            "enters it around every forward pass",
        )
        with context:
            recorded = torch.is_grad_enabled()
        demand(not recorded, "gradients are recorded inside inference_mode()", "keeps every activation, and runs out of memory")

    @only("diffusion")
    def test_models_are_verified_quietly(self, platform: Any, expected: PlatformContract) -> None:
        """`verify_model_arch` returns nothing for a model that is welcome."""
        answer = ask(platform, expected, "verify_model_arch", "FluxPipeline")
        demand(answer is None, f"verify_model_arch() returned {answer!r}", "drops it: raise for a model that the device cannot run")

    @only("diffusion")
    def test_seeds_make_numbers_repeat(self, platform: Any, expected: PlatformContract) -> None:
        """The same seed, the same noise."""
        import torch

        # SGLang's own asks torch's module of the device for what some, the CPU's too, do not have.
        if getattr(getattr(platform, "seed_everything", None), "__module__", "").startswith("sglang."):
            pytest.skip("seed_everything() is SGLang's own")
        state = torch.get_rng_state()
        try:
            drawn = []
            for _ in range(2):
                ask(platform, expected, "seed_everything", 7)
                drawn.append(torch.rand(4).tolist())
        finally:
            torch.set_rng_state(state)
        demand(drawn[0] == drawn[1], "seed_everything() leaves the noise to chance", "promises the same image for the same seed")

    @staticmethod
    def _demand_class(name: Any, what: str, use: str) -> None:
        __tracebackhide__ = True
        demand(isinstance(name, str) and name, f"{what} returned {name!r}, not a class's qualified name", use)
        try:
            found = pkgutil.resolve_name(name)
        except Exception as exc:  # noqa: BLE001 - any failure of a stranger's import is the finding
            found = exc
        demand(isinstance(found, type), f"{what} returned {name!r}, which is no class: {found!r}", use)
