"""How a conformance test asks a platform: a method called, its refusal judged by the release, its answer's unit and type checked."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from sglang_plug.testing.verdict import demand, refuse
from sglang_plug.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.contract.model import PlatformContract

Test = TypeVar("Test", bound="Callable[..., Any]")
MIB = 1 << 20


def only(*runtimes: str) -> Callable[[Test], Test]:
    """Mark a test as one of these runtimes' alone."""

    def mark(test: Test) -> Test:
        test.runtimes = runtimes  # type: ignore[attr-defined]
        return test

    return mark


def ask(platform: Any, expected: PlatformContract, name: str, *args: Any, **kwargs: Any) -> Any:
    """Return what `platform.name(*args, **kwargs)` returns.

    A method that the release does not have is skipped; one that refuses is an error where the release calls it and its own
    base refuses too, else skipped.
    """
    __tracebackhide__ = True
    method = getattr(platform, name, None)
    member = expected.members.get(name)
    if method is None or member is None:
        pytest.skip(f"SGLang {expected.release} has no {name}()")
    try:
        return method(*args, **kwargs)
    except NotImplementedError:
        if not member.called or member.default.startswith("returns "):
            own = "has an answer of its own" if member.called else "never calls it"
            pytest.skip(f"{name}() is not implemented, and SGLang {expected.release} {own}")
        site = f", such as {member.sites[0]}" if member.sites else ""
        refuse(
            f"{type(platform).__name__}.{name}() is not implemented",
            f"{expected.release} calls it from {counted(member.uses, 'place')}{site}",
        )


def is_number(value: object) -> bool:
    """Tell whether it is a number, bool aside."""
    return isinstance(value, Real) and not isinstance(value, bool)


def demand_bytes(value: object, what: str, *, least: int = MIB) -> None:
    """Demand a number of bytes: no text, and nothing so small that it must be MiB or GiB."""
    __tracebackhide__ = True
    demand(is_number(value), f"{what} is {value!r}, not a number of bytes", "compares and divides it, and stops with TypeError")
    assert isinstance(value, Real)
    demand(
        float(value) >= least,
        f"{what} is {value!r}, which cannot be bytes (MiB or GiB?)",
        "sizes the KV cache by bytes, finds no room, and stops at start-up",
    )
