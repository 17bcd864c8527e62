"""Conformance of the class: what it is, what it is called, and which of its methods the release listens to."""

from __future__ import annotations

import inspect
import pickle
import pkgutil
from typing import TYPE_CHECKING, Any, ClassVar

from sglang_plug.testing import engine
from sglang_plug.testing.members import only
from sglang_plug.testing.verdict import demand

if TYPE_CHECKING:
    from sglang_plug.contract.model import PlatformContract

PREDICATES = ("is_cuda", "is_rocm", "is_cpu", "is_xpu", "is_musa", "is_npu", "is_mps", "is_cuda_alike", "is_out_of_tree")
STILL_SERVED = {
    "get_mha_kv_pool_cls",
    "get_mla_kv_pool_cls",
    "get_dsa_kv_pool_cls",
}  # looked up by name where get_kv_pool_cls() is inherited


class IdentityTests:
    """What SGLang needs of the class itself (S4.5, S8)."""

    runtime: ClassVar[str]

    def test_class_is_a_platform(self, platform_class: type[Any]) -> None:
        """It derives from the runtime's base class."""
        base = pkgutil.resolve_name(engine.policy(self.runtime).platform_class)
        demand(
            issubclass(platform_class, base),
            f"{platform_class.__qualname__} is no subclass of {base.__qualname__}",
            "raises TypeError at start-up",
        )

    def test_class_is_found_by_its_name(self, platform_class: type[Any]) -> None:
        """Children import it anew, by name."""
        try:
            again = pickle.loads(pickle.dumps(platform_class))  # noqa: S301 - made on this line
        except Exception as exc:  # noqa: BLE001 - any refusal is the finding
            again = exc
        demand(
            again is platform_class,
            f"{platform_class!r} does not survive pickling: {again!r}",
            "imports the class by name in its spawned processes",
        )

    def test_class_needs_no_arguments(self, platform_class: type[Any]) -> None:
        """It is constructed bare."""
        try:
            platform_class()
        except TypeError as exc:
            demand(False, f"{platform_class.__qualname__}() fails: {exc}", "constructs the class without arguments, at start-up")

    def test_platform_is_out_of_tree(self, platform: Any) -> None:
        """`_enum` says that it comes from outside."""
        name = getattr(getattr(platform, "_enum", None), "name", None)
        what = "refuses it with TypeError" if self.runtime == "diffusion" else "passes by every branch for platforms from outside, silently"
        demand(name == "OOT", f"_enum is {name}, not PlatformEnum.OOT", what)

    def test_platform_uses_its_runtimes_enum(self, platform: Any) -> None:
        """SRT and diffusion have one each, and members of different enums are never equal."""
        package = "sglang.multimodal_gen" if self.runtime == "diffusion" else "sglang.srt"
        home = type(platform._enum).__module__
        demand(
            home.startswith(package),
            f"_enum comes from {home}",
            f"compares it with members of {package}'s own PlatformEnum, and finds none equal",
        )

    def test_device_name_is_a_text(self, platform: Any) -> None:
        """For logs and people."""
        self._demand_text(platform, "device_name")

    def test_device_type_is_known_to_torch(self, platform: Any) -> None:
        """Importing the platform's module is enough for torch to know the type."""
        self._demand_text(platform, "device_type")
        import torch

        try:
            torch.device(platform.device_type)
        except RuntimeError as exc:
            demand(
                False,
                f"torch does not take the device type {platform.device_type!r}: {str(exc).splitlines()[0]}",
                "asks torch for the device's module before init_backend(); rename privateuse1 when the platform's module is imported",
            )

    def test_predicates_answer_yes_or_no(self, platform: Any) -> None:
        """Each is_…() is a bool."""
        for name in PREDICATES:
            method = getattr(platform, name, None)
            if method is not None:
                answer = method()
                demand(isinstance(answer, bool), f"{name}() returned {answer!r}", "branches on it, everywhere")
        demand(platform.is_out_of_tree(), "is_out_of_tree() is false", "takes the platform for one of its own")

    def test_platform_tells_its_name(self, platform: Any) -> None:
        """`repr` works: start-up logs it."""
        demand(isinstance(repr(platform), str) and repr(platform), "repr() is empty", "logs it at start-up")

    def test_overrides_are_listened_to(self, platform_class: type[Any], expected: PlatformContract) -> None:
        """No method is one that an earlier release called and this one does not have."""
        gone = _earlier_members(expected) - expected.members.keys() - STILL_SERVED
        dead = sorted(name for name in gone if _defines(platform_class, name))
        demand(
            not dead,
            f"{', '.join(dead)} {'is' if len(dead) == 1 else 'are'} gone from SGLang {expected.release}",
            "never calls them, and says nothing; define them only where the base class lacks the successor",
        )

    def test_overrides_take_the_cores_arguments(self, platform_class: type[Any], expected: PlatformContract) -> None:
        """Each override can be called as the base's method can."""
        from sglang_plug.contract.model import parse_signature

        for name, member in expected.members.items():
            method = getattr(platform_class, name, None)
            if member.signature is None or not _defines(platform_class, name) or not inspect.isroutine(method):
                continue
            wanted = [parameter for parameter in parse_signature(member.signature) if parameter.name not in {"self", "cls"}]
            positional = [object()] * sum(1 for parameter in wanted if parameter.kind in {"positional", "positional-only"})
            keywords = {parameter.name: object() for parameter in wanted if parameter.kind == "keyword-only"}
            bound = isinstance(inspect.getattr_static(platform_class, name), classmethod | staticmethod)
            signature = inspect.signature(method)
            for arguments in (positional, positional[: sum(1 for p in wanted if p.required and p.kind.startswith("positional"))]):
                try:
                    signature.bind(*arguments if bound else (None, *arguments), **keywords)
                except TypeError as exc:
                    demand(
                        False,
                        f"{name}{signature} cannot be called as {member.signature}: {exc}",
                        f"SGLang {expected.release} calls it like that",
                    )

    @only("diffusion")
    def test_class_methods_stay_class_methods(self, platform_class: type[Any], expected: PlatformContract) -> None:
        """The core calls some of them on the class."""
        for name, member in expected.members.items():
            if "classmethod" in member.decorators and _defines(platform_class, name):
                kind = inspect.getattr_static(platform_class, name)
                demand(isinstance(kind, classmethod | staticmethod), f"{name} is no class method", "calls it on the class as well")

    def _demand_text(self, platform: Any, name: str) -> None:
        __tracebackhide__ = True
        value = getattr(platform, name, None)
        what = "refuses the class with TypeError" if self.runtime == "diffusion" else "uses the base class's: unknown, on the processor"
        demand(isinstance(value, str) and value.strip(), f"{name} is {value!r}, not a text", what)
        if self.runtime == "srt":
            demand(value != "unknown", f"{name} is left at {value!r}", "cannot tell the platform from the bare base class")


def _defines(platform_class: type[Any], name: str) -> bool:
    """Tell whether the class, or a base of it outside SGLang, defines `name`."""
    return any(
        name in vars(owner) for owner in platform_class.__mro__ if not owner.__module__.startswith("sglang.") and owner is not object
    )


def _earlier_members(expected: PlatformContract) -> set[str]:
    from sglang_plug.contract import catalogue

    known = catalogue.releases()
    earlier = known[: known.index(expected.release)]
    contracts = (catalogue.load(release).platform_contract(expected.runtime) for release in earlier)
    return {name for contract in contracts if contract is not None for name in contract.members}
