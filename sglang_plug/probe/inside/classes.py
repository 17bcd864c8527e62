"""What can be said about a platform class: its bases, identity, members against the host's own, and whether it can be built. Facts only."""

from __future__ import annotations

import contextlib
import inspect
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .failures import facts_of, safe_repr, short_type
from .functions import kind_of, signature_of

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The host's base class, and the modules where it and its own bases live.
BASES = {
    "srt": ("sglang.srt.platforms.interface", "SRTPlatform"),
    "diffusion": ("sglang.multimodal_gen.runtime.platforms.interface", "Platform"),
}
_QUIET = {"__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__", "__annotations__"}


def describe(cls: Any, runtime: str) -> dict[str, Any]:
    """Return the facts of what a callback's answer resolved to, class or not."""
    base = host_base(runtime)
    facts: dict[str, Any] = {"is_class": isinstance(cls, type), "type": short_type(type(cls)), "base": short_type(base) if base else None}
    if not isinstance(cls, type):
        facts["repr"] = safe_repr(cls)
        if isinstance(cls, ModuleType) and base is not None:
            facts["holds"] = [n for n, kind in vars(cls).items() if isinstance(kind, type) and issubclass(kind, base) and not is_host(kind)]
        return facts
    facts.update(
        qualname=f"{cls.__module__}.{cls.__qualname__}",
        mro=[short_type(kind) for kind in cls.__mro__],
        is_subclass=base is not None and issubclass(cls, base),
        **_source(cls),
    )
    if base is None or not facts["is_subclass"]:
        return facts
    facts["enum"] = enum_of(cls)
    facts["identity"] = {name: _plain(getattr(cls, name, None)) for name in ("device_name", "device_type", "dispatch_key")}
    facts["members"] = members_of(cls)
    facts["base_members"] = base_members_of(base)
    between = [kind for kind in cls.__mro__ if is_host(kind) and kind not in base.__mro__]
    facts["inherited"] = sorted({name for kind in between for name in vars(kind)} & facts["base_members"].keys())
    facts["shadowed"] = shadowed_by_host(cls)
    return facts


def describe_instance(instance: Any) -> dict[str, Any]:
    """Return the facts that only an instance has: names set in `__init__`, and whether torch knows its device type."""
    facts: dict[str, Any] = {"identity": {}}
    for name in ("device_name", "device_type"):
        try:
            facts["identity"][name] = _plain(getattr(instance, name, None))
        except Exception as exc:
            facts["identity"][name] = {"error": facts_of(exc)}
    try:
        facts["enum"] = enum_of(instance)
    except Exception:  # a property of the plugin's: the class's own stands
        facts["enum"] = enum_of(type(instance))
    facts["capabilities"] = _capabilities(instance)
    torch = sys.modules.get("torch")
    kind = facts["identity"].get("device_type")
    if torch is not None and isinstance(kind, str) and hasattr(torch, "device"):
        try:
            torch.device(kind)
        except Exception as exc:
            facts["torch_device_error"] = str(exc)[:300]
    return facts


def _capabilities(instance: Any) -> dict[str, Any] | None:
    """Return {"type", "text", "lacks"} where SRT's `capabilities` lack names that the base class's have; None where all are there."""
    kind = type(getattr(host_base("srt"), "capabilities", None))
    fields = getattr(kind, "__struct_fields__", getattr(kind, "__dataclass_fields__", ()))  # SGLang's is msgspec's
    try:
        value = instance.capabilities
        lacks = [name for name in fields if not hasattr(value, name)]
    except Exception:
        return None
    return {"type": short_type(type(value)), "text": safe_repr(value)[:80], "lacks": lacks} if lacks else None


def host_base(runtime: str) -> Any:
    """Return the host's base class, or None where its module is not loaded."""
    module, name = BASES[runtime]
    return getattr(sys.modules.get(module), name, None)


def enum_of(bearer: Any) -> dict[str, Any]:
    """Return {"name", "enum"}: the member that `_enum` of a class or an instance names, and the module of the enum it belongs to."""
    value = getattr(bearer, "_enum", None)
    return {"name": getattr(value, "name", None) or safe_repr(value), "enum": short_type(type(value))}


def given(instance: Any, runtime: str, own: Mapping[str, Any]) -> list[str]:
    """Return the base's methods that an instance has of its own though its class defines none, as one does that passes calls on."""
    base, found = host_base(runtime), []
    for name, raw in base_members_of(base).items() if base is not None else ():
        if name in own or raw["kind"] not in {"method", "classmethod", "staticmethod"}:
            continue
        method = None
        with contextlib.suppress(Exception):  # the plugin's own code: then there is none
            method = getattr(instance, name)
        if callable(method) and not any(getattr(method, "__func__", method) is _function(vars(kind).get(name)) for kind in hosts(instance)):
            found.append(name)
    return found


def hosts(instance: Any) -> list[type]:
    """Return the classes of SGLang that an instance derives from."""
    return [kind for kind in type(instance).__mro__ if is_host(kind)]


def _function(raw: Any) -> Any:
    return raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw


def is_host(kind: type) -> bool:
    """True for a class that SGLang defines (or Python itself)."""
    root = kind.__module__.partition(".")[0]
    return root in ("sglang", "builtins", "abc", "typing", "enum")


def members_of(cls: type) -> dict[str, Any]:
    """Return the members in force that classes outside SGLang define: name -> {"owner", "kind", "signature", "parameters", "line"}."""
    found: dict[str, Any] = {}
    hidden: set[str] = set()
    for kind in cls.__mro__:
        if is_host(kind):
            hidden.update(vars(kind))
            continue
        for name, raw in vars(kind).items():
            if name not in found and name not in hidden and name not in _QUIET:
                found[name] = member(name, raw, kind)
    return found


def base_members_of(base: type) -> dict[str, Any]:
    """Return the members of the host's base class, by name, as the base has them."""
    found: dict[str, Any] = {}
    for kind in base.__mro__:
        if kind is object:
            continue
        for name, raw in vars(kind).items():
            if name not in found and name not in _QUIET and not (name.startswith("__") and name.endswith("__")):
                found[name] = member(name, raw, kind)
    return found


def member(name: str, raw: Any, owner: type) -> dict[str, Any]:
    """Return the facts of one attribute as its class holds it."""
    facts: dict[str, Any] = {"owner": short_type(owner)}
    function = raw
    if isinstance(raw, (classmethod, staticmethod)):
        facts["kind"], function = type(raw).__name__, raw.__func__
    elif isinstance(raw, property):
        facts["kind"], function = "property", raw.fget
    elif inspect.isroutine(raw):
        facts["kind"] = "method"
    elif hasattr(raw, "__get__") and hasattr(raw, "func"):
        facts["kind"], function = "cached_property", raw.func
    else:
        facts["kind"] = "attribute"
        facts["value"] = safe_repr(raw)[:80]
        return facts
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    facts.update(signature_of(function))
    facts["line"] = getattr(code, "co_firstlineno", None)
    facts["file"] = getattr(code, "co_filename", None)
    facts["refuses"] = code is not None and "NotImplementedError" in code.co_names
    facts["async"] = kind_of(function).startswith("async")
    return facts


def shadowed_by_host(cls: type) -> list[dict[str, str]]:
    """Return members of the plugin's own classes that a host class earlier in the MRO defines too, so that they never run."""
    found = []
    host_names: dict[str, str] = {}
    for kind in cls.__mro__:
        if kind is object:
            continue
        if is_host(kind):
            for name in vars(kind):
                host_names.setdefault(name, short_type(kind))
            continue
        hidden = [name for name in vars(kind) if name in host_names and name not in _QUIET and not name.startswith("__")]
        found += [{"name": name, "owner": short_type(kind), "host": host_names[name]} for name in hidden]
    return found


def _source(cls: type) -> dict[str, Any]:
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    try:
        line = inspect.getsourcelines(cls)[1]
    except (OSError, TypeError):
        line = None
    return {"file": file, "line": line}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, bool)):
        return value
    return {"type": short_type(type(value)), "repr": safe_repr(value)[:120]}
