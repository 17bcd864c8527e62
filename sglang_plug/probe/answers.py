"""Facts about callbacks and hardware as the values that the chain asks for. Owns the words for what went wrong; asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.core.selection import Activation, Detection, ErrorFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

PHASES = {
    "load": "import",
    "call": "activate()",
    "class": "the import of its class",
    "instance": "its class's constructor",
    "host": "loading the platform in the host",
    "rehearsal": "the host's dry run",
}


def activation(facts: Mapping[str, Any]) -> Activation:
    """Return what the chain needs of one answer of the operation `activate`."""
    kind, seconds = facts["kind"], facts.get("seconds")
    if kind == "none":
        return Activation(seconds=seconds)
    if kind == "returned":
        return Activation(facts["returned"], seconds=seconds)
    if kind == "wrong_type":
        return Activation(kind=facts["type"], seconds=seconds)
    if kind == "raised":
        return Activation(error=error(facts["error"], facts["stage"]), seconds=seconds, fatal=not facts["error"]["exception"])
    return Activation(error=ending(facts), seconds=seconds, fatal=True)


def rehearsed(facts: Mapping[str, Any]) -> Activation:
    """Return what the chain needs of one platform's trial in host order (`inside/stage.py`)."""
    report = facts["value"]
    if report is None:
        return Activation(error=ending({**facts, "stage": facts.get("phase")}), seconds=facts.get("seconds"), fatal=True)
    phases = report["phases"]
    seconds = sum(phases[name]["seconds"] for name in ("load", "call") if name in phases)
    for name in ("load", "call"):
        failed = phases.get(name, {}).get("error")
        if failed:
            return Activation(error=error(failed, name), seconds=seconds, fatal=bool(failed.get("not_an_exception")))
    returned = report["returned"]
    return Activation(returned.get("text"), kind=returned["type"], seconds=seconds)


def error(facts: Mapping[str, Any], phase: str) -> ErrorFacts:
    """Return an exception's facts: its own words, the innermost failure behind it, and the line of the plugin."""
    root = facts["root"]
    place = root.get("place") or root.get("where") or facts.get("place") or facts.get("where")
    cause = f"{_type(root)}: {root['message']}" if root["message"] else _type(root)
    where = f"{place['file']}:{place['line']}" if place else None
    return ErrorFacts(_type(facts), facts["message"], f"{cause} (at {where})" if where else cause, where, phase)


def _type(facts: Mapping[str, Any]) -> str:
    """The exception's name; for the stand-in's own ones, the built-in type that SGLang raises in their place."""
    name: str = facts["builtin"] if facts["type"].startswith("sglang_plug.") else facts["type"]
    return name


def ending(facts: Mapping[str, Any]) -> ErrorFacts:
    """Return how a callback ended its process instead of answering."""
    ended = facts["ended"]
    doing = PHASES.get(facts.get("stage") or "", "its import or activate()")
    kind = ended["kind"]
    if kind == "timeout":
        name, words = "TimeoutError", f"{doing} did not return in {ended['seconds']:g} s"
    elif kind == "signal":
        name, words = ended["name"], f"{doing} crashed the process ({ended['name']})"
    elif kind == "exit":
        name, words = "SystemExit", f"{doing} ended the process (exit status {ended['code']})"
    elif kind == "too_large":
        name, words = "OverflowError", f"{doing} answered with {ended['bytes']} bytes"
    else:
        name, words = "ProcessLookupError", f"{doing} was lost ({kind})"
    stack = ended.get("stack") or []
    where = f"{stack[0]['file']}:{stack[0]['line']}" if stack else None
    cause = f"{words}; it was in {stack[0]['function']} at {where}" if stack else words
    return ErrorFacts(name, words, cause, where, "call" if facts.get("stage") == "call" else "load")


def detection(facts: Mapping[str, Any]) -> Detection:
    """Return one detector's answer; what cannot be known counts as absent, and says so."""
    return Detection(bool(facts["present"]), facts["why"])


def lost(ended: str, stderr: str) -> ErrorFacts:
    """Return the failure of a child that ended instead of answering."""
    last = stderr.strip().splitlines()[-1:] or ["it wrote nothing"]
    return ErrorFacts("ProcessLookupError", f"the probe's child ended ({ended})", last[0], None, "load")


def unrehearsed(rehearsal: Mapping[str, Any], at: Mapping[str, Any]) -> ErrorFacts:
    """Return why a callback that imports SGLang could not be tried in SGLang's own order."""
    asked = f"it imports {at['module']} at {at['file']}:{at['line']}"
    for record in rehearsal["imports"]:
        if "error" in record:
            return error(record["error"], "load")
    ended = rehearsal.get("ended")
    words = f"the host's dry run ended ({ended['kind']})" if ended else "the host did not get as far as the plugin"
    return ErrorFacts("RuntimeError", words, asked, f"{at['file']}:{at['line']}", "load")
