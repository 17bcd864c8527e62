"""`PlatformContract`: over sixty conformance tests of a platform, for a subclass of three lines."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from sglang_plug.core import entrypoints
from sglang_plug.testing import engine
from sglang_plug.testing.activation import ActivationTests
from sglang_plug.testing.device import DeviceTests
from sglang_plug.testing.diffusion import DiffusionTests
from sglang_plug.testing.identity import IdentityTests
from sglang_plug.testing.serving import ServingTests
from sglang_plug.testing.verdict import refuse

if TYPE_CHECKING:
    from sglang_plug.contract.model import PlatformContract as Expected
    from sglang_plug.core.entrypoints import Candidate


class PlatformContract(ActivationTests, IdentityTests, DeviceTests, ServingTests, DiffusionTests):
    """Subclass it as `TestMyPlatform`, and name the entry point.

    Where the hardware is absent (the callback returns None) only the tests of the callback run; the others are skipped.

    Attributes:
        runtime: `srt` or `diffusion`.
        entry_point: the platform's entry-point name.
    """

    runtime: ClassVar[str] = "srt"
    entry_point: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Take out the tests that are not about the subclass's runtime."""
        super().__init_subclass__(**kwargs)
        engine.policy(cls.runtime)
        for name in dir(cls):
            runtimes = getattr(getattr(cls, name, None), "runtimes", None)
            if runtimes is not None and cls.runtime not in runtimes:
                setattr(cls, name, None)

    @pytest.fixture(scope="class")
    @classmethod
    def candidates(cls) -> tuple[Candidate, ...]:
        """Every installed entry point of the platform's group that has its name."""
        group = engine.policy(cls.runtime).platform_group or ""
        return tuple(found for found in entrypoints.installed(group) if found.name == cls.entry_point)

    @pytest.fixture(scope="class")
    @classmethod
    def activation(cls, candidates: tuple[Candidate, ...]) -> dict[str, Any]:
        """What the callback did, called twice in a child of its own, before any SGLang."""
        if not candidates:
            pytest.skip("not installed")
        from sglang_plug.probe import parent
        from sglang_plug.probe.environment import Environment

        chosen = candidates[-1]
        request = {"op": "activate", "candidates": [{"name": chosen.name, "value": chosen.value}]}
        here = Environment.here(launch="module").with_variables(dict(engine.child_environment()))
        reply = parent.ask(here, request, timeout=60.0)
        if reply.value is None:
            pytest.fail(f"the child that asked the callback ended: {reply.ended}\n{reply.stderr}", pytrace=False)
        answer: dict[str, Any] = reply.value[0]
        return answer

    @pytest.fixture(scope="class")
    @classmethod
    def expected(cls) -> Expected:
        """What the release expects of a platform class."""
        engine.prepare()
        contract = engine.contract().platform_contract(cls.runtime)
        if contract is None:
            pytest.skip(f"SGLang {engine.release()} takes no {cls.runtime} platforms from outside")
        return contract

    @pytest.fixture(scope="class")
    @classmethod
    def platform_class(cls, candidates: tuple[Candidate, ...]) -> type[Any]:
        """The class that the callback names, imported after SGLang, as SGLang does it."""
        if not candidates:
            pytest.skip("not installed")
        engine.prepare()
        importlib.import_module(engine.policy(cls.runtime).platform_class.rpartition(".")[0])
        try:
            returned = entrypoints.load(candidates[-1])()
        except Exception as exc:  # noqa: BLE001 - its own test tells; here it only means that there is no class
            pytest.skip(f"the callback raises {type(exc).__name__}: {exc}")
        if not isinstance(returned, str):
            pytest.skip("the hardware is absent: the callback returned None" if returned is None else "the callback returned no name")
        try:
            found: Any = pkgutil.resolve_name(returned)
        except Exception as exc:  # noqa: BLE001 - whatever the import of a stranger's module raises is the finding
            refuse(f"{returned!r} does not import: {type(exc).__name__}: {exc}", "stops with this error, or hides it behind another one")
        kind = found if isinstance(found, type) else None
        if kind is None:
            refuse(f"{returned!r} is no class but {found!r}", "raises TypeError at start-up")
        return kind

    @pytest.fixture(scope="class")
    @classmethod
    def platform(cls, platform_class: type[Any]) -> Any:
        """An instance, made as SGLang makes it."""
        return platform_class()
