"""Conformance of the device: memory in bytes, devices as the runtime wants them, operations that return nothing. Both runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from sglang_plug.core.words import a
from sglang_plug.testing.members import ask, demand_bytes, is_number, only
from sglang_plug.testing.verdict import demand

if TYPE_CHECKING:
    from sglang_plug.contract.model import PlatformContract

GIB = 1 << 30
SLACK = 1.01  # drivers round


class DeviceTests:
    """What SGLang asks of the device (S8)."""

    runtime: ClassVar[str]

    def test_total_memory_is_bytes(self, platform: Any, expected: PlatformContract) -> None:
        """A number of bytes."""
        demand_bytes(ask(platform, expected, "get_device_total_memory", 0), "get_device_total_memory()")

    def test_total_memory_needs_no_index(self, platform: Any, expected: PlatformContract) -> None:
        """Called bare, it is that of device 0."""
        bare, first = ask(platform, expected, "get_device_total_memory"), ask(platform, expected, "get_device_total_memory", 0)
        demand(
            bare == first,
            f"get_device_total_memory() is {bare!r}, of device 0 it is {first!r}",
            "calls it without an index, and means device 0",
        )

    def test_memory_use_is_within_the_total(self, platform: Any, expected: PlatformContract) -> None:
        """Bytes in use, at most the total."""
        used = ask(platform, expected, "get_current_memory_usage")
        demand(
            is_number(used) and used >= 0, f"get_current_memory_usage() is {used!r}, not a number of bytes", "subtracts it from the total"
        )
        total = ask(platform, expected, "get_device_total_memory", 0)
        demand(
            used <= total * SLACK,
            f"get_current_memory_usage() is {used!r}, more than the total of {total!r}",
            "finds less than no memory for the KV cache, and stops",
        )

    @only("srt")
    def test_available_memory_is_free_and_total(self, platform: Any, expected: PlatformContract) -> None:
        """(free, total) in bytes."""
        answer = ask(platform, expected, "get_available_memory", 0)
        demand(
            isinstance(answer, tuple) and len(answer) == 2,
            f"get_available_memory() is {answer!r}, not (free, total)",
            "unpacks two numbers",
        )
        free, total = answer
        demand_bytes(total, "the total of get_available_memory()")
        demand(
            is_number(free) and 0 <= free <= total,
            f"get_available_memory() is {answer!r}: more is free than there is",
            "plans with the free bytes",
        )
        whole = ask(platform, expected, "get_device_total_memory", 0)
        demand(
            abs(total - whole) <= whole * 0.02,
            f"get_available_memory() says {total} in all, get_device_total_memory() {whole}",
            "uses both",
        )

    @only("srt")
    def test_device_is_a_string(self, platform: Any, expected: PlatformContract) -> None:
        """`cpu`, `mydev:0`: a text, and with None a text without a rank's index being needed."""
        for arguments in ((None,), (), (0,)):
            device = ask(platform, expected, "get_device", *arguments)
            shown = f"get_device({', '.join(map(repr, arguments))})"
            demand(
                isinstance(device, str),
                f"{shown} returned {device!r}, {a(type(device).__name__)}",
                "makes it ServerArgs.device and splits it at ':'; anything but a text stops with AttributeError",
            )
            kind = device.partition(":")[0]
            demand(
                kind == platform.device_type,
                f"{shown} is {device!r}, but device_type is {platform.device_type!r}",
                "uses both for the same device",
            )

    @only("diffusion")
    def test_device_is_a_torch_device(self, platform: Any, expected: PlatformContract) -> None:
        """A torch.device here, where SRT wants a text."""
        import torch

        for name, arguments in (("get_device", (0,)), ("get_local_torch_device", ())):
            device = ask(platform, expected, name, *arguments)
            demand(
                isinstance(device, torch.device), f"{name}() returned {device!r}, {a(type(device).__name__)}", "reads its type and index"
            )
            demand(
                device.type == platform.device_type,
                f"{name}() is {device!r}, but device_type is {platform.device_type!r}",
                "uses both for the same device",
            )

    @only("diffusion")
    def test_available_memory_is_gib(self, platform: Any, expected: PlatformContract) -> None:
        """GiB, alone among the memory methods."""
        free = ask(platform, expected, "get_available_gpu_memory")
        total = ask(platform, expected, "get_device_total_memory", 0) / GIB
        demand(
            is_number(free) and free > 0,
            f"get_available_gpu_memory() is {free!r}, not a number of GiB",
            "compares it with what the model needs",
        )
        demand(
            free <= total * SLACK,
            f"get_available_gpu_memory() is {free!r}, but the device has {total:.1f} GiB (bytes or MiB?)",
            "decides by it what stays on the device, and runs out of memory",
        )

    def test_device_has_a_name(self, platform: Any, expected: PlatformContract) -> None:
        """A text for people."""
        name = ask(platform, expected, "get_device_name", 0)
        demand(
            isinstance(name, str) and name.strip(),
            f"get_device_name() is {name!r}, not a text",
            "shows it, and looks tuned configurations up by it",
        )

    def test_device_has_a_unique_name(self, platform: Any, expected: PlatformContract) -> None:
        """A text, the same whenever it is asked."""
        uuid = ask(platform, expected, "get_device_uuid", 0)
        demand(isinstance(uuid, str) and uuid, f"get_device_uuid() is {uuid!r}, not a text", "matches devices of different processes by it")
        again = ask(platform, expected, "get_device_uuid", 0)
        demand(uuid == again, f"get_device_uuid() is {uuid!r}, then {again!r}", "matches devices of different processes by it")

    def test_capability_is_two_numbers_or_none(self, platform: Any, expected: PlatformContract) -> None:
        """(major, minor), the minor one digit; or None."""
        answer = ask(platform, expected, "get_device_capability", 0)
        if answer is None:
            return
        good = isinstance(answer, tuple) and len(answer) == 2 and all(isinstance(part, int) for part in answer)
        demand(good, f"get_device_capability() is {answer!r}, not (major, minor) or None", "reads .major and .minor")
        demand(
            0 <= answer[1] < 10,
            f"get_device_capability() has the minor number {answer[1]}",
            "writes it as one digit, and asserts that it is one",
        )
        demand(hasattr(answer, "major"), "get_device_capability() is a bare tuple, not DeviceCapability", "reads .major and .minor")

    @pytest.mark.parametrize("operation", ["synchronize", "empty_cache"])
    def test_operations_return_nothing(self, platform: Any, expected: PlatformContract, operation: str) -> None:
        """They work without a model."""
        answer = ask(platform, expected, operation)
        demand(answer is None, f"{operation}() returned {answer!r}", "expects nothing of it")

    def test_device_can_be_made_current(self, platform: Any, expected: PlatformContract) -> None:
        """A torch.device is taken."""
        import torch

        answer = ask(
            platform,
            expected,
            "set_device",
            torch.device(platform.device_type, 0) if platform.device_type != "cpu" else torch.device("cpu"),
        )
        demand(answer is None, f"set_device() returned {answer!r}", "expects nothing of it")

    def test_collective_backend_is_a_text(self, platform: Any, expected: PlatformContract) -> None:
        """The name of a torch.distributed backend."""
        name = ask(platform, expected, "get_torch_distributed_backend_str")
        demand(
            isinstance(name, str) and name.strip(),
            f"get_torch_distributed_backend_str() is {name!r}, not a text",
            "hands it to torch.distributed.init_process_group, also for one rank",
        )
        import torch

        known = [part.partition(":")[2] or part for part in name.split(",")]
        lacking = [part for part in known if part.lower() not in torch.distributed.Backend.backend_list]
        demand(
            not lacking,
            f"torch.distributed knows no backend {', '.join(lacking)}",
            "starts the process group before init_backend(); register the backend when the platform's module is imported",
        )

    def test_compile_backend_is_a_text(self, platform: Any, expected: PlatformContract) -> None:
        """The name of a torch.compile backend."""
        name = ask(platform, expected, "get_compile_backend")
        demand(isinstance(name, str) and name.strip(), f"get_compile_backend() is {name!r}, not a text", "hands it to torch.compile")

    def test_dispatch_key_name_is_an_identifier(self, platform: Any, expected: PlatformContract) -> None:
        """It becomes part of a method's name."""
        key = ask(platform, expected, "get_dispatch_key_name")
        demand(isinstance(key, str), f"get_dispatch_key_name() is {key!r}, not a text", "looks up forward_<key>() by it")
        what = "stops with ValueError" if self.runtime == "diffusion" else "looks up forward_<key>() by it, and finds none"
        demand(key.strip() and key.isidentifier(), f"get_dispatch_key_name() is {key!r}, which is no identifier", what)

    def test_defaults_may_be_applied(self, platform: Any, expected: PlatformContract) -> None:
        """Arguments go in, nothing comes out, and only fields that exist are written."""
        arguments = _Arguments()
        answer = ask(platform, expected, "apply_server_args_defaults", arguments)
        demand(answer is None, f"apply_server_args_defaults() returned {answer!r}", "drops what it returns: write to the arguments")
        fields = _fields(self.runtime)
        unknown = sorted(name for name in arguments.written if fields and name not in fields)
        demand(
            not unknown,
            f"apply_server_args_defaults() sets {', '.join(unknown)}, which are no server arguments",
            "drops them without a word",
        )


class _Arguments:
    """Server arguments that remember what is written; whatever is read is None, as if the user had said nothing."""

    def __init__(self) -> None:
        object.__setattr__(self, "written", {})

    def __getattr__(self, name: str) -> Any:
        return self.written.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.written[name] = value


def _fields(runtime: str) -> set[str]:
    """The server arguments of the release, by the catalogue; empty where it does not know them."""
    from sglang_plug.testing import engine

    module = "sglang.srt.server_args" if runtime == "srt" else "sglang.multimodal_gen.runtime.server_args.server_args"
    return {symbol.name.rpartition(".")[2] for symbol in engine.contract().children(f"{module}.ServerArgs")}
