"""Doctor's options: the command line over `[tool.sglang-plug]` of a pyproject.toml over the defaults. Owns the defaults."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
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
        UsageError: the table holds an unknown key, or a value of the wrong kind.
    """
    table = _table(folder / "pyproject.toml")
    for key, value in table.items():
        if key not in _KINDS:
            continue  # another command's key
        if not isinstance(value, _KINDS[key]) or (isinstance(value, bool) and bool not in _KINDS[key]):
            raise UsageError(f"[tool.sglang-plug] {key} = {value!r} is not of the right kind", subject=str(folder / "pyproject.toml"))
    chosen = {key: table.get(key) if given.get(key) is None else given[key] for key in _KINDS}
    runtime = chosen["runtime"] or "all"
    if runtime not in RUNTIMES:
        raise UsageError(
            f"[tool.sglang-plug] runtime = {runtime!r} is none of {', '.join(RUNTIMES)}", subject=str(folder / "pyproject.toml")
        )
    isolation = chosen["isolation"] or "auto"
    if isolation not in ISOLATIONS:
        raise UsageError(
            f"[tool.sglang-plug] isolation = {isolation!r} is none of {', '.join(ISOLATIONS)}", subject=str(folder / "pyproject.toml")
        )
    memory = 4096 if chosen["memory"] is None else int(chosen["memory"])
    limits = Limits(
        timeout=float(chosen["timeout"]) if chosen["timeout"] else None,
        memory=memory << 20 if memory else None,
        jobs=int(chosen["jobs"] or min(os.cpu_count() or 1, 8)),
        isolation=isolation,
    )
    return Options(RUNTIMES[runtime], limits, _words(chosen["select"]), _words(chosen["ignore"]), bool(chosen["strict"]))


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
    table = document.get("tool", {}).get("sglang-plug", {})
    return table if isinstance(table, dict) else {}
