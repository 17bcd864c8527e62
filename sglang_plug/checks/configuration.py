"""Doctor's options: the command line over `[tool.sglang-plug]` of a pyproject.toml over the defaults. Owns the defaults."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.rehearsal import Limits
from sglang_plug.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

ISOLATIONS = ("auto", "fork", "spawn")
RUNTIMES = {"srt": ("srt",), "diffusion": ("diffusion",), "all": ("srt", "diffusion")}
_KINDS: dict[str, tuple[type, ...]] = {
    "runtime": (str,),
    "timeout": (int, float),
    "memory": (int,),
    "jobs": (int,),
    "isolation": (str,),
    "select": (list, str),
    "ignore": (list, str),
    "strict": (bool,),
}
_LEAST: dict[str, float] = {"timeout": 0.1, "memory": 0, "jobs": 1}


@dataclass(frozen=True)
class Options:
    """What doctor is asked to do."""

    runtimes: tuple[str, ...]
    limits: Limits
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    strict: bool


def configured(folder: Path, **given: Any) -> Options:
    """Return the options of a command line, completed from the folder's pyproject.toml.

    Raises:
        UsageError: the table holds a misspelt key, or a value of the wrong kind or size.
    """
    path = folder / "pyproject.toml"
    table = _table(path)
    for key, value in table.items():
        _check(key, value, path)
    chosen = {key: table.get(key) if given.get(key) is None else given[key] for key in _KINDS}
    runtime, isolation = chosen["runtime"] or "all", chosen["isolation"] or "auto"
    for key, value, choices in (("runtime", runtime, tuple(RUNTIMES)), ("isolation", isolation, ISOLATIONS)):
        if value not in choices:
            raise UsageError(f"[tool.sglang-plug] {key} = {value!r} is none of {', '.join(choices)}", subject=str(path))
    memory = 4096 if chosen["memory"] is None else int(chosen["memory"])
    limits = Limits(
        timeout=float(chosen["timeout"]) if chosen["timeout"] else None,
        memory=memory << 20 if memory else None,
        jobs=int(chosen["jobs"] or min(os.cpu_count() or 1, 8)),
        isolation=isolation,
    )
    return Options(RUNTIMES[runtime], limits, _words(chosen["select"]), _words(chosen["ignore"]), bool(chosen["strict"]))


def _check(key: str, value: Any, path: Path) -> None:
    """Raise for a slip in a key's name, and for a value of the wrong kind or size; other names are another command's."""
    if key not in _KINDS:
        meant = get_close_matches(key, _KINDS, n=1, cutoff=0.75)
        if meant:
            raise UsageError(f"[tool.sglang-plug] has no key {key!r}", subject=str(path), hint=f"did you mean {meant[0]!r}?")
        return
    if not isinstance(value, _KINDS[key]) or (isinstance(value, bool) and bool not in _KINDS[key]):
        raise UsageError(f"[tool.sglang-plug] {key} = {value!r} is not of the right kind", subject=str(path))
    number: Any = value
    if key in _LEAST and not _LEAST[key] <= number < float("inf"):
        raise UsageError(f"[tool.sglang-plug] {key} = {value!r} is below {_LEAST[key]:g}, or no number", subject=str(path))


def _words(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value or ())


def _table(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            document = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise UsageError(
            "pyproject.toml cannot be read", subject=str(path), cause=str(exc), hint="correct it, or start from another folder"
        ) from exc
    tool = document.get("tool", {})
    table = tool.get("sglang-plug", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise UsageError("tool.sglang-plug is no table", subject=str(path), hint="write [tool.sglang-plug], and its keys below")
    return table
