"""One module's rows in one release, and rows turned into symbols. Looks nothing up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sglang_plug.contract.model import Symbol

if TYPE_CHECKING:
    from sglang_plug.contract.model import Kind, Presence
    from sglang_plug.contract.store import Row


@dataclass(frozen=True)
class ModuleTable:
    """One module's names in one release."""

    name: str
    is_package: bool
    compiled: bool
    rows: dict[str, Row]

    def get(self, name: str) -> Row | None:
        return self.rows.get(name)

    @cached_property
    def stars(self) -> tuple[str, ...]:
        found = sorted((row for key, row in self.rows.items() if key.startswith("*")), key=lambda row: int(row.name[1:]), reverse=True)
        return tuple(row.text for row in found)

    @cached_property
    def exports(self) -> tuple[str, ...] | None:
        row = self.rows.get("@all")
        return None if row is None else tuple(row.text.split())

    @cached_property
    def served(self) -> dict[str, str] | None:
        row = self.rows.get("@get")
        return None if row is None else dict(part.partition("=")[::2] for part in row.text.split())

    @property
    def dynamic(self) -> bool:
        return "@dyn" in self.rows


def function_symbol(row: Row, dotted: str, kind: Kind, presence: Presence) -> Symbol:
    return Symbol(
        dotted,
        kind,
        dotted,
        presence,
        signature=row.text,
        is_async="a" in row.code[1:],
        is_generator="g" in row.code[1:],
        decorators=split_list(row.decorators),
        varies="~" in row.code,
    )


def split_list(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def without_first(signature: str) -> str:
    inner = signature[1:]
    first, comma, rest = inner.partition(", ")
    if not comma or ")" in first:
        return "(" + inner[inner.index(")") :]
    return "(" + rest
