"""Whether what a name of SGLang is assigned is certainly nothing that can be called: literals, loggers, flags, plain objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_plug.contract.model import Kind, Presence

if TYPE_CHECKING:
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol

_LITERAL = re.compile(r"['\"(\[{]|-?\d|(?:None|True|False)$")
_MADE = re.compile(r"([\w.]+)\(…\)")
#: What other packages' calls give, none of it callable.
_OUTSIDE = frozenset(
    {"logging.getLogger", "builtins.frozenset", "builtins.set", "builtins.dict", "builtins.list", "builtins.tuple", "builtins.str",
     "builtins.int", "builtins.float", "builtins.bool", "builtins.len", "builtins.object", "os.path.join", "os.path.dirname",
     "os.path.abspath", "os.getenv", "os.environ.get", "re.compile", "threading.Lock", "threading.RLock", "threading.local",
     "contextvars.ContextVar", "collections.OrderedDict", "collections.defaultdict", "collections.deque", "pathlib.Path"}
)  # fmt: skip
_RETURNS = re.compile(r".*-> (?:bool|int|str|float|tuple|list|dict|[\w.]*Logger)(?:\[.*\])?$", re.DOTALL)


def is_constant(release: Release, symbol: Symbol) -> bool:
    """Return whether a name is assigned what is certainly no function and no class; False too where nobody can tell."""
    if symbol.kind is not Kind.ATTRIBUTE or symbol.varies or symbol.presence is not Presence.SURE:
        return False
    if _LITERAL.match(symbol.value):
        return True
    called = _MADE.fullmatch(symbol.value)
    return called is not None and _gives_value(release, symbol, called[1])


def _gives_value(release: Release, symbol: Symbol, called: str) -> bool:
    module = release.lookup.module_of(symbol.origin)
    made_by = release.lookup.in_namespace(module, called) if module is not None else None
    if made_by is None or made_by.varies:
        return False
    if made_by.kind is Kind.EXTERNAL:
        return made_by.origin in _OUTSIDE
    if made_by.presence is not Presence.SURE or made_by.is_async:
        return False
    if made_by.kind is Kind.CLASS:
        own = all(cls.startswith(("sglang.", "builtins.", "abc.", "enum.")) for cls in release.lookup.linearize(made_by.origin))
        call = release.find(f"{made_by.origin}.__call__")
        return own and not made_by.decorators and call is not None and call.origin == "builtins.type.__call__"
    return made_by.kind is Kind.FUNCTION and _RETURNS.match(made_by.signature or "") is not None
