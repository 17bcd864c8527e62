"""How a dotted name is looked up in one release: re-exports, star imports, lazy attributes, inheritance. Reads rows; knows no files."""

from __future__ import annotations

import builtins
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from sglang_plug.contract import inheritance
from sglang_plug.contract.model import Kind, Presence, Symbol
from sglang_plug.contract.tables import ModuleTable, function_symbol, split_list, without_first

if TYPE_CHECKING:
    from sglang_plug.contract.store import Row, Store

_MODULE_DUNDERS = frozenset(
    {
        "__name__",
        "__annotations__",
        "__file__",
        "__doc__",
        "__dict__",
        "__spec__",
        "__path__",
        "__package__",
        "__loader__",
        "__builtins__",
        "__cached__",
    }
)
_IMPLIED = {"__new__": Kind.STATICMETHOD, "__init_subclass__": Kind.CLASSMETHOD, "__class_getitem__": Kind.CLASSMETHOD}
_DEPTH = 24  # a chain of re-exports longer than this is a circle


class Lookup:
    """All names of one release of one store."""

    def __init__(self, store: Store, bit: int) -> None:
        self.store = store
        self.bit = 1 << bit
        self._modules: dict[str, ModuleTable | None] = {}
        self._found: dict[str, Symbol | None] = {}

    def module(self, name: str) -> ModuleTable | None:
        """Return a module, or None where this release has none of that name."""
        if name not in self._modules:
            entry = self.store.index.get(name)
            if entry is None or not entry.mask & self.bit:
                self._modules[name] = None if not self._is_namespace(name) else ModuleTable(name, True, False, {})
            else:
                rows = {row.name: row for row in self.store.rows(name) if row.mask & self.bit}
                self._modules[name] = ModuleTable(name, "p" in entry.flags, "o" in entry.flags, rows)
        return self._modules[name]

    def _is_namespace(self, name: str) -> bool:
        return name in self.namespaces

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every module of this release."""
        return tuple(name for name, entry in self.store.index.items() if entry.mask & self.bit)

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """Folders without `__init__.py`: they can be imported too."""
        found = set()
        for name in self.names:
            parent = name.rpartition(".")[0]
            while parent and parent not in found:
                found.add(parent)
                parent = parent.rpartition(".")[0]
        return frozenset(found.difference(name for name, entry in self.store.index.items() if entry.mask & self.bit))

    def find(self, dotted: str) -> Symbol | None:
        """Return what a dotted (or colon) name is, or None where it does not exist."""
        dotted = dotted.replace(":", ".")
        if dotted not in self._found:
            found = self._resolve(dotted, 0)
            self._found[dotted] = None if found is None else replace(found, name=dotted)
        return self._found[dotted]

    def _resolve(self, dotted: str, depth: int) -> Symbol | None:
        parts = dotted.split(".")
        if depth > _DEPTH:
            return Symbol(dotted, Kind.UNKNOWN, dotted, Presence.UNKNOWN)
        for length in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:length]))
            if module is not None:
                break
        else:
            return None
        rest = parts[length:]
        if not rest:
            return self._shadow(module, depth) or Symbol(dotted, Kind.MODULE, module.name)
        found = self.attribute(module, rest[0], depth + 1)
        if found is None and length > 1:  # an attribute may hide a submodule of the same name
            above = self.module(".".join(parts[: length - 1]))
            hidden = above.get(parts[length - 1]) if above else None
            if above and hidden and not (hidden.code.startswith("i") and hidden.text == module.name):
                found = self.attribute(above, parts[length - 1], depth + 1)
                rest = parts[length - 1 :] if found else rest
        for name in rest[1:]:
            if found is None:
                return None
            found = self._inside(found, name, depth + 1)
        return found

    def _shadow(self, module: ModuleTable, depth: int) -> Symbol | None:
        """What a package binds under its submodule's name, when that is not the submodule."""
        above, _, name = module.name.rpartition(".")
        package = self.module(above) if above else None
        row = package.get(name) if package else None
        if not row or not package or row.code[0] not in "cfi" or (row.code[0] == "i" and row.text == module.name):
            return None
        found = self.attribute(package, name, depth + 1)
        return found if found is not None and found.kind in {Kind.CLASS, Kind.FUNCTION} and found.presence is Presence.SURE else None

    def _inside(self, owner: Symbol, name: str, depth: int) -> Symbol | None:
        if owner.kind is Kind.MODULE:
            module = self.module(owner.origin)
            return self.attribute(module, name, depth) if module else None
        if owner.kind is Kind.CLASS:
            found = self.member(owner.origin, name, depth)
            return found and replace(found, holder=owner.origin)
        if owner.kind in {Kind.EXTERNAL, Kind.UNKNOWN}:
            return Symbol(f"{owner.origin}.{name}", owner.kind, f"{owner.origin}.{name}", Presence.UNKNOWN)
        if owner.kind in {Kind.FUNCTION, Kind.METHOD, Kind.CLASSMETHOD, Kind.STATICMETHOD}:
            plain, known = not owner.decorators and not owner.varies, hasattr(inheritance.FUNCTION, name)
            if plain and known:
                return Symbol(f"{owner.origin}.{name}", Kind.ATTRIBUTE, f"{owner.origin}.{name}")
            if plain or (name.startswith("__") and name.endswith("__") and not known and name not in inheritance.WRAPPED):
                return None
        return Symbol(f"{owner.origin}.{name}", Kind.UNKNOWN, f"{owner.origin}.{name}", Presence.UNKNOWN)

    def attribute(self, module: ModuleTable, name: str, depth: int = 0) -> Symbol | None:
        """Return what `module.name` is after the module was imported, or None."""
        dotted = f"{module.name}.{name}"
        if depth > _DEPTH or module.compiled:
            return Symbol(dotted, Kind.UNKNOWN, dotted, Presence.UNKNOWN)
        row = module.get(name)
        if row is not None and row.code[0] in "cfvi":
            return self._from_row(module, row, dotted, depth)
        if name in _MODULE_DUNDERS:
            return Symbol(dotted, Kind.ATTRIBUTE, dotted)
        if self.module(dotted) is not None:
            return Symbol(dotted, Kind.MODULE, dotted)
        unknown = module.dynamic
        for star in module.stars:
            found = self._through_star(star, name, depth)
            if found is not None and found.kind is not Kind.UNKNOWN:
                return found
            unknown |= found is not None
        if module.served is not None:
            if name in module.served:
                target = module.served[name]
                found = self._resolve(target, depth + 1) if target else None
                return replace(found, name=dotted) if found else Symbol(dotted, Kind.ATTRIBUTE, dotted, Presence.SURE)
            unknown |= "?" in module.served
        return Symbol(dotted, Kind.UNKNOWN, dotted, Presence.UNKNOWN) if unknown else None

    def _through_star(self, star: str, name: str, depth: int) -> Symbol | None:
        source = self.module(star)
        unknown = Symbol(f"{star}.{name}", Kind.UNKNOWN, f"{star}.{name}", Presence.UNKNOWN)
        if source is None:
            return unknown if star.partition(".")[0] != "sglang" and not name.startswith("_") else None
        exports = self.exports(source)
        if exports is not None:
            if name in exports:
                return self.attribute(source, name, depth + 1) or unknown
            if exports == ("?",) and not name.startswith("_"):
                found = self.attribute(source, name, depth + 1)
                return found and unknown
            return None
        if name.startswith("_"):
            return None
        found = self.attribute(source, name, depth + 1)
        if found is not None and found.kind is Kind.MODULE and source.get(name) is None:
            return replace(found, presence=Presence.MAYBE)  # there when something has imported the submodule before
        return found

    def exports(self, module: ModuleTable) -> tuple[str, ...] | None:
        """Return a module's `__all__`, through the module it was imported from."""
        seen = 0
        exports = module.exports
        while exports and exports[0].startswith(">") and seen < _DEPTH:
            source = self.module(exports[0][1:])
            exports = source.exports if source else ("?",)
            seen += 1
        return exports

    def _from_row(self, module: ModuleTable, row: Row, dotted: str, depth: int) -> Symbol | None:
        presence = Presence.MAYBE if "?" in row.code else Presence.SURE
        varies = "~" in row.code
        if row.code[0] == "i":
            return self._imported(row, dotted, presence, depth)
        if row.code[0] == "c":
            init = module.get(f"{row.name}.__init__")
            signature = without_first(init.text) if init is not None and init.code[0] == "f" else None
            bases = tuple(part for part in row.text.split(",") if part)
            return Symbol(
                dotted, Kind.CLASS, dotted, presence, signature, decorators=split_list(row.decorators), bases=bases, varies=varies
            )
        if row.code[0] == "f":
            return function_symbol(row, dotted, Kind.FUNCTION, presence)
        value = row.text.removeprefix("=") if row.text.startswith("=") else ""
        if value and value != row.name:  # `name = other_name`: the same object
            found = self.in_namespace(module, value, depth + 1)
            if found is not None and found.kind in {Kind.CLASS, Kind.FUNCTION}:
                return replace(found, name=dotted, presence=presence, varies=found.varies or varies)
        return Symbol(dotted, Kind.ATTRIBUTE, dotted, presence, value=row.text, varies=varies)

    def _imported(self, row: Row, dotted: str, presence: Presence, depth: int) -> Symbol:
        target, varies = row.text, "~" in row.code
        if target.partition(".")[0] != "sglang":
            return Symbol(dotted, Kind.EXTERNAL, target, presence, varies=varies)
        if target == dotted:  # `from . import submodule`
            found = Symbol(dotted, Kind.MODULE, dotted) if self.module(target) else None
        else:
            found = self._resolve(target, depth + 1)
        if found is None:
            return Symbol(dotted, Kind.UNKNOWN, target, Presence.MAYBE if presence is Presence.MAYBE else Presence.UNKNOWN)
        if presence is Presence.MAYBE and found.presence is Presence.SURE:
            found = replace(found, presence=presence)
        return replace(found, name=dotted, varies=found.varies or varies)

    def in_namespace(self, module: ModuleTable, written: str, depth: int = 0) -> Symbol | None:
        """Return what a dotted name means inside a module: its own names first, then builtins."""
        first, *rest = written.split(".")
        found = self.attribute(module, first, depth + 1)
        if found is not None and found.kind is Kind.MODULE and rest:
            return self._resolve(".".join([found.origin, *rest]), depth + 1)
        if found is None:
            return Symbol(written, Kind.EXTERNAL, f"builtins.{written}") if hasattr(builtins, first) else None
        for name in rest:
            found = self._inside(found, name, depth + 1) if found else None
        return found

    # classes

    def linearize(self, origin: str) -> tuple[str, ...]:
        """Return a class's method resolution order: classes of this release, and the names of those outside (`?`: unreadable)."""
        return inheritance.linearize(origin, self._bases)

    def _bases(self, origin: str) -> tuple[str, ...] | None:
        module, path = self._split(origin)
        row = module.get(path) if module else None
        if not module or row is None or row.code[0] != "c":
            return None
        found = []
        for base in row.text.split(","):
            if not base or base.startswith(("metaclass=", "fields=")):
                continue
            symbol = self.in_namespace(module, base) if base != "?" else None
            if base == "msgspec.Struct":  # written by the reader, whether the module binds `msgspec` or not
                symbol = Symbol(base, Kind.EXTERNAL, base)
            if symbol is None and "." in path:
                symbol = self.find(f"{origin.rpartition('.')[0]}.{base}")
            found.append("?" if symbol is None or symbol.kind not in {Kind.CLASS, Kind.EXTERNAL} else symbol.origin)
        return tuple(found)

    def _split(self, origin: str) -> tuple[ModuleTable | None, str]:
        parts = origin.split(".")
        for length in range(len(parts) - 1, 0, -1):
            module = self.module(".".join(parts[:length]))
            if module is not None:
                return module, ".".join(parts[length:])
        return None, origin

    def module_of(self, origin: str) -> ModuleTable | None:
        """Return the module in which a name is defined, or None."""
        return self._split(origin)[0]

    def member(self, origin: str, name: str, depth: int = 0) -> Symbol | None:
        """Return a class's member as `getattr(cls, name)` finds it, or None."""
        order = self.linearize(origin)
        dotted = f"{origin}.{name}"
        field: Symbol | None = None
        unknown = False
        for cls in order:
            module, path = self._split(cls) if cls.startswith("sglang.") else (None, "")
            row = module.get(f"{path}.{name}") if module else None
            own = module.get(path) if module else None
            if module and row and own:
                bare = self._is_bare(row, own, order)
                if bare is None:
                    return Symbol(dotted, Kind.ATTRIBUTE, f"{cls}.{name}")
                if not bare:
                    return self._member_from_row(module, row, cls, dotted, depth)
                field = field or Symbol(dotted, Kind.FIELD, f"{cls}.{name}")
            elif own is not None and "dataclass" in own.decorators and name in inheritance.DATACLASS_METHODS:
                return Symbol(dotted, Kind.METHOD, f"{cls}.{name}")
            elif not module:
                known = inheritance.external_members(cls)
                if known is not None and name in known:
                    return Symbol(dotted, Kind.EXTERNAL, f"{cls}.{name}")
                unknown |= known is None
        if name in inheritance.CLASS_ATTRIBUTES or (name in inheritance.ENUM_ATTRIBUTES and any(cls.startswith("enum.") for cls in order)):
            return Symbol(dotted, Kind.ATTRIBUTE, f"builtins.type.{name}")
        if field is not None and not unknown:
            return field
        if any(self._takes_field(cls, name) for cls in order):
            return Symbol(dotted, Kind.ATTRIBUTE, dotted)
        if name in inheritance.DATACLASS_ATTRIBUTES and self._is_dataclass(order):
            return Symbol(dotted, Kind.ATTRIBUTE, dotted)
        unknown |= any(self._is_remade(cls) for cls in order) or "ctypes.Structure" in order or "ctypes.Union" in order
        unknown |= name in inheritance.WRITTEN
        return field or (Symbol(dotted, Kind.UNKNOWN, dotted, Presence.UNKNOWN) if unknown else None)

    def _is_remade(self, cls: str) -> bool:
        """True where a metaclass or a decorator may have given the class more than its body says."""
        module, path = self._split(cls) if cls.startswith("sglang.") else (None, "")
        row = module.get(path) if module else None
        if row is None:
            return False
        if "o" in row.code[1:]:
            return True  # attributes with computed names are set on it
        if "metaclass=" in row.text and not row.text.endswith(("ABCMeta", "EnumMeta")):
            return True
        return any(not inheritance.keeps_class(decorator) for decorator in split_list(row.decorators))

    def _takes_field(self, cls: str, name: str) -> bool:
        """True for a field that a record takes over from the classes it is assembled from."""
        module, path = self._split(cls) if cls.startswith("sglang.") else (None, "")
        row = module.get(path) if module else None
        if not module or not row or "fields=" not in row.text:
            return False
        for part in row.text.split(","):
            source = self.in_namespace(module, part.removeprefix("fields=")) if part.startswith("fields=") else None
            found = self.member(source.origin, name) if source is not None and source.kind is Kind.CLASS else None
            if found is not None and found.kind in {Kind.ATTRIBUTE, Kind.FIELD, Kind.EXTERNAL}:
                return True
        return False

    @staticmethod
    def _is_bare(row: Row, own: Row, order: tuple[str, ...]) -> bool | None:
        """True for a field that the class itself has no attribute for, None where it has a descriptor, False for a value."""
        if row.code[0] == "d":
            if "=" in row.code and "dataclass" not in own.decorators and not inheritance.has_field_descriptors(order):
                return False  # `field(…)` outside a dataclass is a value like any other
            return None if inheritance.has_field_descriptors(order) or "l" in own.code or "slots" in own.decorators else True
        private = row.name.rpartition(".")[2][:1] == "_"
        return ("n" in row.code or (private and row.code[0] == "v")) and inheritance.is_pydantic(order)

    def _is_dataclass(self, order: tuple[str, ...]) -> bool:
        for cls in order:
            module, path = self._split(cls) if cls.startswith("sglang.") else (None, "")
            row = module.get(path) if module else None
            if row and "dataclass" in row.decorators:
                return True
        return False

    def _member_from_row(self, module: ModuleTable, row: Row, cls: str, dotted: str, depth: int) -> Symbol | None:
        name = dotted.rpartition(".")[2]
        presence = Presence.MAYBE if "?" in row.code else Presence.SURE
        origin = f"{cls}.{name}"
        if row.code[0] == "f":
            kind = _IMPLIED.get(name, Kind.METHOD)
            for flag, special in (("k", Kind.CLASSMETHOD), ("s", Kind.STATICMETHOD), ("p", Kind.PROPERTY)):
                kind = special if flag in row.code else kind
            if any("property" in part.lower() for part in split_list(row.decorators)):
                kind = Kind.PROPERTY
            return replace(function_symbol(row, dotted, kind, presence), origin=origin)
        if row.code[0] == "c":
            return replace(self._from_row(module, row, origin, depth) or Symbol(dotted, Kind.CLASS, origin), name=dotted)
        if row.code[0] == "i":
            return self._imported(row, dotted, presence, depth)
        value = row.text.removeprefix("=") if row.text.startswith("=") else ""
        if value and depth < _DEPTH:
            found = self.member(cls, value, depth + 1) if "." not in value and module.get(f"{self._split(cls)[1]}.{value}") else None
            found = found or self.in_namespace(module, value, depth + 1)
            if found is not None and found.kind in {Kind.CLASS, Kind.FUNCTION, Kind.METHOD}:
                kind = Kind.METHOD if found.kind is Kind.FUNCTION else found.kind
                return replace(found, name=dotted, kind=kind, presence=presence, varies=found.varies or "~" in row.code)
        return Symbol(dotted, Kind.ATTRIBUTE, origin, presence, value=row.text, varies="~" in row.code)
