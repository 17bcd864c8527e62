"""From a resolution to a platform object, or to the exception that SGLang raises. Owns the checks on an external platform class (S4.5)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from sglang_plug import errors
from sglang_plug.core import objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.core.policy import Policy
    from sglang_plug.core.resolution import Resolution
    from sglang_plug.core.selection import ErrorFacts

_KINDS: dict[str, type[errors.SglangPlugError]] = {
    "unavailable": errors.PlatformUnavailable,
    "ambiguous": errors.PlatformAmbiguous,
    "conflict": errors.EntryPointConflict,
    "bad-return": errors.BadPlatformClass,
    "bad-name": errors.UnsupportedOverride,
}


def error_of(resolution: Resolution) -> errors.SglangPlugError:
    """Return the exception for a resolution that ended in an error: one that derives from the built-in type SGLang raises."""
    failure = resolution.error
    if failure is None:
        raise ValueError("this resolution is no error")
    step = resolution.steps[-1]
    kind = str(step.data.get("kind"))
    if kind == "unknown":
        found: type[errors.SglangPlugError] = errors.UnsupportedOverride if failure.type == "ValueError" else errors.PlatformNotFound
    else:
        found = _KINDS.get(kind, errors.PlatformUnavailable)
    return found(failure.message, subject=step.subject, cause=failure.cause, hint=failure.hint)


def load_class(policy: Policy, qualname: str, *, external: bool, load: Callable[[str], Any] = objects.load) -> type[Any]:
    """Import a platform class and check that it is one.

    Args:
        policy: the runtime's rules.
        qualname: the class's name.
        external: whether a plugin named it.
        load: imports a name.

    Raises:
        BadPlatformClass: no such class, or not a platform of this runtime.
        Exception: what the import of its module raises, unchanged.
    """
    try:
        found = load(qualname)
    except errors.TargetError as error:
        # Not the AttributeError itself: inside a module's __getattr__ it would be shown as "cannot import name".
        raise errors.BadPlatformClass(error.message, subject=qualname, hint=error.hint) from error
    base = objects.load(policy.platform_class)
    name = base.__name__
    if not isinstance(found, type) or not issubclass(found, base):
        message = (
            f"Expected a {name} subclass: {qualname}" if policy.oot_enum else f"Expected an {name} subclass, got {type(found)}: {qualname}"
        )
        raise errors.BadPlatformClass(message, subject=qualname, hint=f"derive it from {policy.platform_class}")
    if external and policy.oot_enum is not None and found._enum is not objects.load(policy.oot_enum):  # type: ignore[attr-defined]
        shown = policy.oot_enum.replace(".interface.", ".")
        message = f"External {policy.runtime} platform {qualname} must set _enum = {shown}"
        raise errors.BadPlatformClass(message, subject=qualname, hint=f"add to the class: _enum = {shown.rpartition('platforms.')[2]}")
    return found


def check_instance(policy: Policy, qualname: str, platform: Any) -> None:
    """Check what the policy requires of an external platform object.

    Raises:
        BadPlatformClass: a required attribute is missing or empty.
    """
    for attribute in policy.required_attributes:
        value = getattr(platform, attribute, None)
        if not isinstance(value, str) or not value.strip():
            message = f"External {policy.runtime} platform {qualname} must define a non-empty {attribute}"
            raise errors.BadPlatformClass(message, subject=qualname, hint=f'add to the class: {attribute} = "my_device"')


def root_cause(error: BaseException) -> BaseException:
    """Return the exception at the bottom of the chain that ends in `error`."""
    seen = {id(error)}
    while True:
        inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if inner is None or id(inner) in seen:
            return error
        seen.add(id(inner))
        error = inner


def place_of(error: BaseException) -> str | None:
    """Return `file:line` of the frame that raised."""
    trace = error.__traceback__
    if trace is None:
        return None
    while trace.tb_next is not None:
        trace = trace.tb_next
    with contextlib.suppress(AttributeError):
        return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return None


def _words(error: BaseException) -> str:
    with contextlib.suppress(Exception):  # a stranger's `__str__`; logging, too, goes on
        return str(error)
    return "<message cannot be shown>"


def facts_of(error: BaseException, phase: str = "call") -> ErrorFacts:
    """Return an exception in words, with its root cause."""
    from sglang_plug.core.selection import ErrorFacts

    root = root_cause(error)
    cause = None if root is error else f"{type(root).__name__}: {_words(root)}"
    return ErrorFacts(type(error).__name__, _words(error), cause, place_of(root), phase)
