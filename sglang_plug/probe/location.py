"""What a static look at the returned class means: it is there, only an import can tell, or the path surely leads nowhere. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.core.resolution import Failure, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_plug.core.resolution import Resolution


def judge(resolution: Resolution, found: Mapping[str, Any], *, has_sglang: bool) -> tuple[Step, Failure | None]:
    """Return the step for the trail, and the failure that the host will end with where that is certain.

    Args:
        resolution: names the class.
        found: the answer of `inside/source.py`.
        has_sglang: then a missing import of the class's module is fatal; without it, on a laptop, other things may be missing too.
    """
    qualname = resolution.qualname or ""
    place = f"{found['file']}:{found['line']}" if found["line"] else found["file"]
    verdict = found["verdict"]
    if verdict in {"defined", "reexported"}:
        return _judge_imports(resolution, found, place, has_sglang=has_sglang)
    if verdict == "dynamic":
        return Step("source", qualname, "doubtful", f"only an import can tell: {found['why']}"), None
    near = f"; did you mean {found['near'][0]}?" if found["near"] else ""
    why = found["why"] + near
    hint = f"return {found['near'][0]!r} from activate()" if found["near"] else f"correct what activate() of {resolution.name!r} returns"
    failure = Failure(_host_error(qualname, found), why, cause=_masking(qualname, found, place), hint=hint)
    return Step("source", qualname, "failed", why if place is None else f"{why} ({place})"), failure


def _judge_imports(resolution: Resolution, found: Mapping[str, Any], place: str, *, has_sglang: bool) -> tuple[Step, Failure | None]:
    qualname = resolution.qualname or ""
    how = "defined" if found["verdict"] == "defined" else f"re-exported, defined in {found['module']}"
    bases = f", derives from {', '.join(found['bases'])}" if found["bases"] else ""
    if not found["missing_imports"]:
        return Step("source", qualname, "present", f"{how} at {place}{bases}"), None
    missing = found["missing_imports"][0]
    why = f"its module imports {missing['module']}, which is not installed ({found['file']}:{missing['line']})"
    if not has_sglang:
        return Step("source", qualname, "doubtful", why), None
    cause = f"ModuleNotFoundError: No module named {missing['module']!r} (at {found['file']}:{missing['line']})"
    kind = "ModuleNotFoundError" if _surfaces(qualname) else "AttributeError"
    failure = Failure(kind, f"{qualname} cannot be imported: {why}", cause=cause, hint=f"install {missing['module']}")
    return Step("source", qualname, "failed", why), failure


def _host_error(qualname: str, found: Mapping[str, Any]) -> str:
    """The type that the host ends with."""
    if found["verdict"] == "malformed":
        return "ValueError"
    if found["verdict"] == "not_a_class":
        return "TypeError"
    if found["verdict"] == "unparsable":
        return "SyntaxError"
    if found["verdict"] == "missing_module" and (_surfaces(qualname) or "." not in found["module"]):
        return "ModuleNotFoundError"
    return "AttributeError"


def _surfaces(qualname: str) -> bool:
    """Tell whether a failing import shows as itself: `pkgutil.resolve_name` takes that of a deeper dotted part for a missing name."""
    return ":" in qualname or qualname.count(".") == 1


def _masking(qualname: str, found: Mapping[str, Any], place: str | None) -> str:
    """Say where, and how SGLang will show it, so that people who search for its words find the cause."""
    shown = f"looked for in {place}" if place else f"{qualname} was returned by the plugin's callback"
    if _host_error(qualname, found) == "AttributeError":
        shown += "; SGLang shows this as: cannot import name 'current_platform' from 'sglang.srt.platforms'"
    return shown
