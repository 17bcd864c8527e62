"""Conformance of what the engine is built from: SRT's parts, and a worker that starts. The worker is a real spawned process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from sglang_plug.testing import worker
from sglang_plug.testing.members import ask, only
from sglang_plug.testing.verdict import demand, refuse

if TYPE_CHECKING:
    from sglang_plug.contract.model import PlatformContract


class ServingTests:
    """What SRT builds the engine from, and the worker of either runtime (S7, S8)."""

    runtime: ClassVar[str]
    entry_point: ClassVar[str]

    @pytest.fixture(scope="class")
    @classmethod
    def started(cls, platform: Any) -> dict[str, Any]:
        """What a worker found after its start. Started once for all tests of the class."""
        try:
            found: dict[str, Any] = worker.call(worker.report, cls.runtime, platform=cls.entry_point, runtime=cls.runtime)
        except worker.WorkerFailed as exc:
            found = {"failed": str(exc)}
        return found

    def test_worker_starts(self, started: dict[str, Any]) -> None:
        """A spawned process selects the platform, sets it up, and applies the hooks."""
        if "failed" in started:
            refuse(f"a worker does not start: {started['failed']}", "ends the server when a worker fails to start")

    def test_worker_runs_on_this_platform(self, started: dict[str, Any], platform: Any) -> None:
        """The child comes to the same class."""
        if "failed" in started:
            pytest.skip("no worker")
        here = f"{type(platform).__module__}:{type(platform).__qualname__}"
        demand(
            started["class"] == here,
            f"the worker runs on {started['class']}, this process on {here}",
            "needs its processes to agree on the platform",
        )

    def test_backend_is_set_up_once(self, started: dict[str, Any]) -> None:
        """Nothing of the plugin calls `init_backend()`: SGLang does, once."""
        if "failed" in started:
            pytest.skip("no worker")
        demand(
            started["initialised"] == 1,
            f"init_backend() ran {started['initialised']} times",
            "calls it once, and never again in that process",
        )

    def test_backend_set_up_returns_nothing(self, started: dict[str, Any]) -> None:
        """Its failure is an exception, not a value."""
        if "failed" in started:
            pytest.skip("no worker")
        demand(
            started["returned"] == "None",
            f"init_backend() returned {started['returned']}",
            "drops what it returns: raise to stop the server",
        )

    @only("srt")
    def test_attention_backend_is_a_text(self, platform: Any, expected: PlatformContract) -> None:
        """A name that `--attention-backend` takes."""
        name = ask(platform, expected, "get_default_attention_backend")
        demand(
            isinstance(name, str) and name.strip(),
            f"get_default_attention_backend() is {name!r}, not a text",
            "makes it the attention_backend argument",
        )

    @only("srt")
    @pytest.mark.parametrize(
        "factory", ["get_graph_runner_cls", "get_paged_allocator_cls", "get_piecewise_backend_cls", "get_full_graph_backend_cls"]
    )
    def test_factories_return_classes(self, platform: Any, expected: PlatformContract, factory: str) -> None:
        """A class, or None for SGLang's own; some may refuse until the device has the feature."""
        method = getattr(platform, factory, None)
        if method is None or factory not in expected.members:
            pytest.skip(f"SGLang {expected.release} has no {factory}()")
        try:
            answer = method()
        except NotImplementedError:
            pytest.skip(f"{factory}() is left to the base class")
        demand(
            answer is None or isinstance(answer, type),
            f"{factory}() returned {answer!r}",
            "calls the class to build the part, or takes its own for None",
        )

    @only("srt")
    @pytest.mark.parametrize("kind", ["mha", "mla"])
    def test_kv_pool_is_a_class(self, platform: Any, expected: PlatformContract, kind: str) -> None:
        """By `kind` from 0.5.22 on, by a method of its own before."""
        modern = "get_kv_pool_cls" in expected.members
        answer = ask(platform, expected, "get_kv_pool_cls", kind=kind) if modern else ask(platform, expected, f"get_{kind}_kv_pool_cls")
        good = isinstance(answer, type) or (modern and answer is None)
        demand(good, f"the KV pool for {kind} is {answer!r}, not a class", "calls the class to build the KV cache")

    @only("srt")
    def test_capabilities_are_declared(self, platform: Any, expected: PlatformContract) -> None:
        """The struct, not a dict and not a class."""
        if "capabilities" not in expected.members and not expected.capabilities:
            pytest.skip(f"SGLang {expected.release} has no capabilities")
        for name in expected.capabilities:
            value = getattr(platform.capabilities, name, None)
            demand(isinstance(value, bool), f"capabilities.{name} is {value!r}", "reads PlatformCapabilities before it builds anything")

    @only("srt")
    @pytest.mark.parametrize("flag", ["support_cuda_graph", "support_piecewise_cuda_graph", "supports_fp8"])
    def test_flags_answer_yes_or_no(self, platform: Any, expected: PlatformContract, flag: str) -> None:
        """Before 0.5.22 each is a method that returns a bool."""
        answer = ask(platform, expected, flag)
        demand(isinstance(answer, bool), f"{flag}() returned {answer!r}", "branches on it")

    @only("srt")
    def test_pinned_memory_answers_yes_or_no(self, platform: Any, expected: PlatformContract) -> None:
        """Called with and without a device."""
        for arguments in ((), ("cpu",)):
            answer = ask(platform, expected, "is_pin_memory_available", *arguments)
            demand(isinstance(answer, bool), f"is_pin_memory_available() returned {answer!r}", "pins host memory by it")

    @only("srt")
    def test_group_device_is_a_torch_device(self, platform: Any, expected: PlatformContract) -> None:
        """Where a process group's tensors lie."""
        import torch

        device = ask(platform, expected, "get_group_coordinator_device", 0)
        demand(isinstance(device, torch.device), f"get_group_coordinator_device() returned {device!r}", "puts each group's tensors there")

    @only("srt")
    def test_profiler_activity_is_torchs(self, platform: Any, expected: PlatformContract) -> None:
        """An activity of torch.profiler, and its name."""
        import torch

        activity = ask(platform, expected, "get_torch_profiler_activity")
        demand(
            isinstance(activity, torch.profiler.ProfilerActivity),
            f"get_torch_profiler_activity() returned {activity!r}",
            "hands it to torch.profiler",
        )
        name = ask(platform, expected, "get_torch_profiler_activity_str")
        demand(isinstance(name, str) and name, f"get_torch_profiler_activity_str() returned {name!r}", "offers it as a name to ask for")

    @only("srt")
    def test_loaded_model_is_changed_in_place(self, platform: Any, expected: PlatformContract) -> None:
        """`post_load_model` takes a module and returns nothing."""
        import torch

        answer = ask(platform, expected, "post_load_model", torch.nn.Linear(2, 2))
        demand(answer is None, f"post_load_model() returned {answer!r}", "drops what it returns: change the model in place")

    @only("srt")
    def test_quantization_is_a_class_or_none(self, platform: Any, expected: PlatformContract) -> None:
        """None takes SGLang's own; an unsupported scheme may raise."""
        method = getattr(platform, "get_quantization_config", None)
        if method is None or "get_quantization_config" not in expected.members:
            pytest.skip(f"SGLang {expected.release} has no get_quantization_config()")
        try:
            answer = method("fp8")
        except (NotImplementedError, ValueError):
            return
        demand(
            answer is None or isinstance(answer, type),
            f"get_quantization_config('fp8') returned {answer!r}",
            "calls the class for the model's weights",
        )
