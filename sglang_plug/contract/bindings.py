"""What a module binds its names to: the values that reading makes and the catalogue keeps."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Binding:
    """What a name is bound to.

    Attributes:
        code: `c` class, `f` function, `i` import, `v` value, `d` annotation without a value.
        flags: of a function: `a` async, `g` generator, `s` static, `k` class method, `p` property; of an import: `z` lazy;
            of a class: `l` slots, `o` open (computed names are set on it).
        text: bases, signature, import target, or value.
        decorators: comma-separated.
        maybe: bound under a condition only.
        varies: other definitions exist and a condition chooses.
    """

    code: str
    flags: str = ""
    text: str = ""
    decorators: str = ""
    maybe: bool = False
    varies: bool = False
    members: dict[str, Binding] = field(default_factory=dict, compare=False)


@dataclass
class ModuleNames:
    """All that one module binds.

    Attributes:
        names: its bindings by name.
        stars: modules that are imported with `*`, in order.
        exports: `__all__`, None where there is none, `("?",)` where it cannot be known, `(">module",)` where it is another module's.
        served: what its `__getattr__` answers, as `name` or `name=target`; `?` last where it may answer more.
        dynamic: names may be added that reading does not see.
    """

    names: dict[str, Binding] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    exports: tuple[str, ...] | None = None
    served: tuple[str, ...] | None = None
    dynamic: bool = False


def absolute(package: str, module: str | None, level: int) -> str:
    """Return the absolute name of the module that `from …module import` names inside `package`."""
    if level == 0:
        return module or ""
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - level + 1])
    return f"{base}.{module}" if module else base
