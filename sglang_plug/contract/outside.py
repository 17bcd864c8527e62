"""Writes `data/outside.json`: what the classes of other packages that SGLang inherits from bring along.

Standard library only, run by path with an interpreter that has SGLang's dependencies; names in, one a line, JSON out:

    ENGINE/bin/python sglang_plug/contract/outside.py < names > sglang_plug/contract/data/outside.json
"""

from __future__ import annotations

import importlib
import json
import sys
import typing


class _Tuple(typing.NamedTuple):
    only: int


class _Dict(typing.TypedDict):
    only: int


def members(name: str) -> list[str] | None:
    """Return the attribute names of a class, those of `object` left out; None where it cannot be imported."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, RuntimeError):
        return None
    found = {"typing.NamedTuple": _Tuple, "typing.TypedDict": _Dict}.get(name, found)  # these are functions that make classes
    if not isinstance(found, type):
        return None
    return sorted(set(dir(found)) - set(dir(object)) - {"only"})


def main() -> None:
    """Read names from stdin, write the table to stdout."""
    table = {name: found for name in sorted(line.strip() for line in sys.stdin) if name and (found := members(name)) is not None}
    print(json.dumps({name: " ".join(found) for name, found in table.items()}, separators=(",\n", ":")))  # noqa: T201


if __name__ == "__main__":
    main()
