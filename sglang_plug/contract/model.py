"""What the catalogue says: values only. Owns the words (kinds, presence); never reads a file."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Kind(StrEnum):
    """What a dotted name is."""

    MODULE = "module"
    CLASS = "class"
    FUNCTION = "function"
    METHOD = "method"
    CLASSMETHOD = "classmethod"
    STATICMETHOD = "staticmethod"
    PROPERTY = "property"
    ATTRIBUTE = "attribute"
    FIELD = "field"  # annotated in a class body, without a value on the class
    EXTERNAL = "external"  # it lives in another package: nothing is known about it
    UNKNOWN = "unknown"  # static reading cannot tell


CALLABLE = frozenset({Kind.FUNCTION, Kind.METHOD, Kind.CLASSMETHOD, Kind.STATICMETHOD})


class Presence(StrEnum):
    """How sure it is that the name is there when the module is imported."""

    SURE = "sure"
    MAYBE = "maybe"  # bound under a condition (hardware, an optional package)
    UNKNOWN = "unknown"


class Parameter(NamedTuple):
    """One parameter. `kind` is one of `positional-only`, `positional`, `var-positional`, `keyword-only`, `var-keyword`."""

    name: str
    kind: str
    required: bool


@dataclass(frozen=True)
class Symbol:
    """One name of one release.

    Attributes:
        name: the dotted name that was asked for.
        kind: what it is.
        origin: where it is defined; differs from `name` for re-exports and inherited members.
        presence: sure, maybe, or unknown.
        signature: `(self, batch: ScheduleBatch) -> None` for what can be called; a class has that of its `__init__` where it defines one.
        value: of an attribute, the shortest honest text for its value (`=` a constant or a dotted name, else empty).
        is_async: `async def`.
        is_generator: the body yields.
        decorators: dotted names, outermost first, `(…)` after those that are called.
        bases: of a class, as written there and made absolute where they can be.
        varies: several definitions exist and a condition chooses: the signature is one of them.
        holder: of a class member, the class it was looked up in, by the name under which that class is defined.
    """

    name: str
    kind: Kind
    origin: str
    presence: Presence = Presence.SURE
    signature: str | None = None
    value: str = ""
    is_async: bool = False
    is_generator: bool = False
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    varies: bool = False
    holder: str = ""

    @property
    def parameters(self) -> tuple[Parameter, ...] | None:
        """The parameters, or None where there is no signature."""
        return None if self.signature is None else parse_signature(self.signature)

    @property
    def inherited(self) -> bool:
        """True for a class member that a base class defines."""
        return self.kind in _MEMBERS and bool(self.holder) and self.origin.rpartition(".")[0] != self.holder

    @property
    def rewrapped(self) -> bool:
        """Whether a decorator gives the function other parameters than those written."""
        return any(decorator.rpartition(".")[2].startswith(("overload", "jit", "custom_op")) for decorator in self.decorators)

    @property
    def gives(self) -> bool:
        """Whether the annotation promises a result, and never None."""
        annotation = (self.signature or "").partition(" -> ")[2]
        return bool(annotation) and not re.search(r"\b(None|Optional|Any|object|NoReturn|Never)\b", annotation)

    @property
    def makes_context(self) -> bool:
        """Whether a call gives a context manager, whatever the function is that the decorator holds."""
        return any("contextmanager" in decorator for decorator in self.decorators)

    @property
    def yields(self) -> bool:
        """Whether a call gives a generator, sync or async."""
        return self.is_generator and not self.makes_context

    @property
    def label(self) -> str:
        """The kind in words: `async method`, `generator function`, …"""
        inside = "context manager" if self.makes_context else "generator"
        words = ["async"] * self.is_async + [inside] * self.is_generator + [self.kind.value]
        return " ".join(words)


_MEMBERS = frozenset({Kind.METHOD, Kind.CLASSMETHOD, Kind.STATICMETHOD, Kind.PROPERTY, Kind.FIELD})


@dataclass(frozen=True)
class PlatformMember:
    """One method or attribute that a platform class may define, in one release.

    Attributes:
        name: its name.
        owner: the class that defines it (`DeviceMixin`, `SRTPlatform`, `Platform`).
        kind: `method` or `attribute`.
        signature: of a method.
        decorators: of a method.
        default: what the base does, in short (`raises NotImplementedError`, `returns False`, `no-op`, `computes`), or an attribute's value.
        raises: True where the base refuses.
        documented: `Active`, `Planned` or None, as the docstring says.
        uses: how many places of the core read it from the current platform.
        sites: some of them, `path:line (function)`.
        internal: other members of the base read it.
    """

    name: str
    owner: str
    kind: str
    signature: str | None = None
    decorators: tuple[str, ...] = ()
    default: str = ""
    raises: bool = False
    documented: str | None = None
    uses: int = 0
    sites: tuple[str, ...] = ()
    internal: bool = False

    @property
    def called(self) -> bool:
        """True where the core uses it, directly or through another member."""
        return self.uses > 0 or self.internal


@dataclass(frozen=True)
class PlatformContract:
    """What one runtime of one release expects of a platform class."""

    release: str
    runtime: str
    base: str
    members: dict[str, PlatformMember] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    chain: tuple[tuple[str, str], ...] = ()  # built-in fallbacks in order: (name, class); SRT's last has no name: the base
    accepts_plugins: bool = True  # False: a release before this runtime took platforms from outside


@dataclass(frozen=True)
class Process:
    """One process of a runtime: which function it runs, and whether plugins are loaded there.

    `plugins` is `yes`, `indirect` (through a function it calls), `parent` (only when the launching command loaded them before), or `no`.
    """

    role: str
    entry: str
    plugins: str
    loads: tuple[str, ...] = ()
    note: str = ""


@lru_cache(maxsize=4096)
def parse_signature(text: str) -> tuple[Parameter, ...]:
    """Return the parameters of a signature such as `(self, x: int = 1, *, y) -> None`."""
    function = ast.parse(f"def f{text}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    return read_parameters(function.args)


def read_parameters(args: ast.arguments) -> tuple[Parameter, ...]:
    """Return the parameters of a function's arguments."""
    plain = [*args.posonlyargs, *args.args]
    free = len(plain) - len(args.defaults)
    found = [
        Parameter(arg.arg, "positional-only" if index < len(args.posonlyargs) else "positional", index < free)
        for index, arg in enumerate(plain)
    ]
    if args.vararg:
        found.append(Parameter(args.vararg.arg, "var-positional", False))
    found += [Parameter(arg.arg, "keyword-only", default is None) for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg:
        found.append(Parameter(args.kwarg.arg, "var-keyword", False))
    return tuple(found)
