"""What a static look at the returned class means: it is there, only an import can tell, or the path surely leads nowhere. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.core.policy import POLICIES
from sglang_plug.core.resolution import Failure, Step

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglang_plug.core.resolution import Resolution


def judge(resolution: Resolution, found: Mapping[str, Any], *, has_sglang: bool) -> tuple[Step, Failure | None]:
    """Return the step for the trail, and the failure that the host will end with where that is certain.

    Args:
        resolution: names the class.
        found: the answer of `inside/source.py`.
        has_sglang: then a missing package that the class's module imports is fatal; without it, on a laptop, other things may be missing
            too. What the plugin's own distribution lacks is missing everywhere.
    """
    qualname = resolution.qualname or ""
    place = f"{found['file']}:{found['line']}" if found["line"] else found["file"]
    broken = _first_failure(found["missing_imports"], has_sglang=has_sglang)
    verdict = found["verdict"]
    if broken is not None:
        return _broken_import(resolution, broken)
    if found["plain"]:
        return _baseless(resolution, found, place)
    if resolution.runtime == "diffusion" and (lacking := _lacking(qualname, found)) is not None:
        return _refused(qualname, lacking, place)
    if verdict in {"defined", "reexported"}:
        return _present(qualname, found, place), None
    if verdict == "dynamic":
        return Step("source", qualname, "doubtful", f"only an import can tell: {found['why']}"), None
    why = found["why"] + (f"; did you mean {found['near'][0]}?" if found["near"] else "")
    hint = (
        f"return {_meant(qualname, found)!r} from activate()"
        if found["near"]
        else f"correct what activate() of {resolution.name!r} returns"
    )
    failure = Failure(_host_error(qualname, found), why, cause=_masking(resolution, found, place), hint=hint)
    return Step("source", qualname, "failed", why if place is None else f"{why} ({place})"), failure


def _meant(qualname: str, found: Mapping[str, Any]) -> str:
    """Return the class that was probably meant, with a colon, by which the host shows the true cause of a failing import."""
    dotted, near, module = qualname.strip().replace(":", "."), str(found["near"][0]), str(found["module"])
    if found["verdict"] == "missing_name":
        return f"{module}:{near[len(module) + 1 :]}{dotted[len(module) + 1 + len(found['name']) :]}"
    if ":" in qualname:
        return near + qualname.strip()[len(module) :]
    package, _, name = (near + dotted[len(module) :]).rpartition(".")
    return f"{package}:{name}"


def _present(qualname: str, found: Mapping[str, Any], place: str) -> Step:
    if found["missing_imports"]:
        row = found["missing_imports"][0]
        return Step("source", qualname, "doubtful", f"its module imports {row['module']}, which is not installed ({_at(row)})")
    how = "defined" if found["verdict"] == "defined" else f"re-exported, defined in {found['module']}"
    bases = f", derives from {', '.join(found['bases'])}" if found["bases"] else ""
    return Step("source", qualname, "present", f"{how} at {place}{bases}")


def _baseless(resolution: Resolution, found: Mapping[str, Any], place: str) -> tuple[Step, Failure]:
    base = POLICIES[resolution.runtime].platform_class
    message = f"{resolution.qualname} derives from nothing, so it is no {base.rpartition('.')[2]}"
    failure = Failure("TypeError", message, cause=f"defined at {place}", hint=f"derive it from {base}")
    return Step("source", resolution.qualname or "", "failed", f"{message} ({place})"), failure


def _lacking(qualname: str, found: Mapping[str, Any]) -> str | None:
    """Return what diffusion will miss in a class from outside; its own built-in platforms are refused too."""
    builtin = {entry.qualname for entry in POLICIES["diffusion"].builtins}
    return "_enum" if qualname.replace(":", ".") in builtin else next(iter(found["lacks"]), None)


def _refused(qualname: str, lacking: str, place: str) -> tuple[Step, Failure]:
    enum = f"{POLICIES['diffusion'].platform_class.rpartition('.interface')[0]}.PlatformEnum.OOT"
    what = f"set _enum = {enum}" if lacking == "_enum" else f"define a non-empty {lacking}"
    add = "derive a class of your own from it, with" if qualname.startswith("sglang.") else "add to the class:"
    hint = f"{add} _enum = PlatformEnum.OOT" if lacking == "_enum" else f'add to the class: {lacking} = "my_device"'
    message = f"External diffusion platform {qualname} must {what}"
    return Step("source", qualname, "failed", f"{message} ({place})"), Failure("TypeError", message, cause=f"defined at {place}", hint=hint)


def _first_failure(rows: Sequence[Mapping[str, Any]], *, has_sglang: bool) -> Mapping[str, Any] | None:
    return next((row for row in rows if has_sglang or row["own"]), None)


def _at(row: Mapping[str, Any]) -> str:
    return f"{row['file']}:{row['line']}" if row["line"] else str(row["file"])


def _broken_import(resolution: Resolution, row: Mapping[str, Any]) -> tuple[Step, Failure]:
    """The class's module does not import: say what fails, and how the host shows it."""
    qualname = resolution.qualname or ""
    why = row["why"] if row["own"] else f"its module imports {row['module']}, which is not installed"
    masked = row["type"] in {"ModuleNotFoundError", "ImportError"} and ":" not in qualname and "." in row["stage"]
    failure = Failure(
        "AttributeError" if masked else row["type"],
        f"{qualname} cannot be imported: {why}",
        cause=f"{row['type']} at {_at(row)}" + (f"; {_mask(resolution)}" if masked else ""),
        hint=f"correct {_at(row)}" if row["own"] else f"install {row['module']}",
    )
    return Step("source", qualname, "failed", f"{why} ({_at(row)})"), failure


def _host_error(qualname: str, found: Mapping[str, Any]) -> str:
    """The type that the host ends with."""
    if found["verdict"] == "malformed":
        return "ValueError"
    if found["verdict"] == "not_a_class":
        return "TypeError"
    if found["verdict"] in {"unparsable", "unreadable"}:
        return "SyntaxError" if found["verdict"] == "unparsable" else "PermissionError"
    if found["verdict"] == "missing_module" and (_surfaces(qualname) or "." not in found["module"]):
        return "ModuleNotFoundError"
    return "AttributeError"


def _surfaces(qualname: str) -> bool:
    """Tell whether a failing import shows as itself: `pkgutil.resolve_name` takes that of a deeper dotted part for a missing name."""
    return ":" in qualname or qualname.count(".") == 1


def _masking(resolution: Resolution, found: Mapping[str, Any], place: str | None) -> str:
    """Say where, and how SGLang will show it, so that people who search for its words find the cause."""
    qualname = resolution.qualname or ""
    shown = f"looked for in {place}" if place else f"{qualname} was returned by the plugin's callback"
    if _host_error(qualname, found) == "AttributeError":
        shown += f"; {_mask(resolution)}"
    return shown


def _mask(resolution: Resolution) -> str:
    """An AttributeError inside a module's `__getattr__` shows as a failed import of the name that was asked for."""
    return f"SGLang shows this as: cannot import name 'current_platform' from {POLICIES[resolution.runtime].loggers.platforms!r}"
