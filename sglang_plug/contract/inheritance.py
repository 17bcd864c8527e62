"""Method resolution order, and what classes of other packages bring along. Reads no source."""

from __future__ import annotations

import builtins
import importlib
import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_OUTSIDE = Path(__file__).parent / "data" / "outside.json"
_RECORDS = ("msgspec.Struct", "typing.NamedTuple", "NamedTuple")

CLASS_ATTRIBUTES = frozenset(
    {"__name__", "__qualname__", "__module__", "__dict__", "__bases__", "__mro__", "__base__", "__annotations__", "__weakref__", "__doc__",
     "mro", "__subclasses__", "__basicsize__", "__flags__", "__instancecheck__", "__subclasscheck__", "__call__", "__prepare__"}
)  # fmt: skip
ENUM_ATTRIBUTES = frozenset(
    {"__members__", "_member_map_", "_member_names_", "_value2member_map_", "_member_type_", "__len__", "__iter__", "__getitem__"}
)
#: What the interpreter, or a base, writes on some classes.
WRITTEN = frozenset(
    {"__slots__", "__match_args__", "__orig_bases__", "__parameters__", "__type_params__", "__static_attributes__", "__firstlineno__",
     "__annotate__", "__abstractmethods__", "__protocol_attrs__", "__signature__", "__wrapped__",
     "__class_vars__", "__private_attributes__", "__pydantic_computed_fields__", "__pydantic_custom_init__", "__pydantic_extra_info__",
     "__pydantic_fields__", "__pydantic_generic_metadata__", "__pydantic_post_init__", "__pydantic_setattr_handlers__"}
)  # fmt: skip
#: What a decorated function may have, and a plain one has not.
WRAPPED = frozenset({"__wrapped__", "__self__", "__func__"})
DATACLASS_METHODS = frozenset({"__init__", "__repr__", "__eq__"})
DATACLASS_ATTRIBUTES = frozenset({"__dataclass_fields__", "__dataclass_params__", "__match_args__"})


_KEEPING = frozenset({"final", "unique", "runtime_checkable", "total_ordering", "deprecated"})


def keeps_class(decorator: str) -> bool:
    """True for decorators that are known to give back the class with what its body defines, and no more that matters."""
    name = decorator.partition("(")[0].rpartition(".")[2]
    return name in _KEEPING or "dataclass" in name or "register" in name.lower()


def _sample() -> None: ...


FUNCTION = _sample


def linearize(origin: str, bases_of: Callable[[str], tuple[str, ...] | None]) -> tuple[str, ...]:
    """Return the C3 order of a class; where the bases contradict each other, the order in which they are met.

    Args:
        origin: the class.
        bases_of: a class's bases, or None for one that cannot be looked into.
    """
    memo: dict[str, list[str]] = {}

    def order(cls: str, depth: int) -> list[str]:
        if cls not in memo:
            memo[cls] = [cls]  # a circle ends here
            bases = (bases_of(cls) or ()) if depth < 40 else ()
            memo[cls] = [cls, *_merge([*(list(order(base, depth + 1)) for base in bases), list(bases)])]
        return memo[cls]

    found = [cls for cls in order(origin, 0) if cls not in {"builtins.object", "object"}]
    return (*found, "builtins.object")


def _merge(sequences: list[list[str]]) -> list[str]:
    result: list[str] = []
    sequences = [list(part) for part in sequences if part]
    while sequences:
        head = next((part[0] for part in sequences if not any(part[0] in other[1:] for other in sequences)), sequences[0][0])
        result.append(head)
        sequences = [rest for part in sequences if (rest := [cls for cls in part if cls != head])]
    return result


def has_field_descriptors(order: tuple[str, ...]) -> bool:
    """True where annotated fields become descriptors on the class."""
    return any(cls in _RECORDS for cls in order)


def is_pydantic(order: tuple[str, ...]) -> bool:
    """True where annotated fields are taken off the class."""
    return any(
        cls.startswith("pydantic.") or "model_fields" in (external_members(cls) or ()) for cls in order if not cls.startswith("sglang.")
    )


@lru_cache(maxsize=1)
def _outside() -> dict[str, frozenset[str]]:
    if not _OUTSIDE.is_file():
        return {}
    return {name: frozenset(members.split()) for name, members in json.loads(_OUTSIDE.read_text()).items()}


@lru_cache(maxsize=512)
def external_members(cls: str) -> frozenset[str] | None:
    """Return the attribute names of a class outside sglang, or None where they are not known."""
    if cls == "?":
        return None
    known = _outside().get(cls)
    if known is not None:
        return known
    module, _, name = cls.rpartition(".")
    if module in {"", "builtins"} or module.partition(".")[0] not in sys.stdlib_module_names:
        found = getattr(builtins, name, None) if module in {"", "builtins"} else None
    else:
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError:
            return None
    if found is None:
        return None
    return frozenset(dir(found))
