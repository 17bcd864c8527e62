"""SP401 to SP406, SP412: the class that a platform's callback names: found, derived, identified, built."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sglang_plug.checks import spelling
from sglang_plug.checks.absent import import_hint
from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.activation import CIRCULAR_HINT, is_circular, shown
from sglang_plug.checks.rules.callbacks import judge_return
from sglang_plug.checks.standing import beyond_standin
from sglang_plug.checks.world import Entry, World, cause_of, find, place
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

_RESULTS = {"srt": "SRT accepts it and then skips every out-of-tree path", "diffusion": "diffusion refuses it with TypeError"}
BASES = {"srt": "SRTPlatform", "diffusion": "Platform"}


def classes(world: World) -> Iterator[tuple[Entry, Mapping[str, Any]]]:
    """Yield every platform whose class was found and derives from the host's base."""
    for entry in world.of("platform"):
        facts = entry.report.get("class")
        if facts and facts.get("is_subclass") and not _is_sglangs(facts):
            yield entry, facts


def _is_sglangs(facts: Mapping[str, Any]) -> bool:
    return str(facts.get("qualname")).startswith("sglang.")


def sglangs_own(world: World) -> Iterator[Finding]:
    """SP404: a class of SGLang's own is no platform out of its tree."""
    for entry in world.of("platform"):
        facts = entry.report.get("class") or {}
        if facts.get("is_subclass") and _is_sglangs(facts):
            yield find(
                "SP404",
                entry.subject(target=facts["qualname"]),
                f"{entry.label} returned {facts['qualname']}, a class of SGLang's own, whose _enum is {facts['enum']['name']}, not "
                f"PlatformEnum.OOT: {_RESULTS[entry.runtime]}",
                hint=f"class MyPlatform({facts['qualname'].rpartition('.')[2]}): _enum = PlatformEnum.OOT, and return its name",
                location=_callback(entry),
            )


def class_missing(world: World) -> Iterator[Finding]:
    """SP401, SP402: the host's own message often hides why."""
    for entry in world.of("platform"):
        error = entry.error("class")
        returned = entry.report.get("returned") or {}
        if error is None or judge_return(returned) is not None:
            continue
        hidden = entry.report.get("masked_by")
        beyond = beyond_standin(world, hidden or error)
        if beyond is not None and not is_circular(hidden or error):
            yield find(
                "SP008",
                entry.subject(),
                f"{entry.label}: its class needs {beyond}, which {world.host_name} has and the stand-in has not: it was not tried",
                cause=cause_of(hidden or error),
                hint="sglang-plug doctor --python /path/to/python, with SGLang installed there",
            )
            continue
        path = returned["text"]
        words = shown(entry, error)
        told = f"; SGLang shows this as: {words}" if words else ""
        if error.get("not_an_exception"):
            yield find(
                "SP303",
                entry.subject(),
                f"{entry.label}: importing {path} ends the process ({error['type']})",
                cause=cause_of(error),
                hint="never exit while a module is imported",
                location=place(error["root"].get("place")),
            )
        elif is_circular(hidden or error):
            yield find(
                "SP310",
                entry.subject(target=path),
                f"{entry.label}: the module of its class imports SGLang's inside while SGLang itself is half imported: startup fails{told}",
                cause=cause_of(hidden or error),
                hint=CIRCULAR_HINT,
                location=place((hidden or error)["root"].get("place")),
                shown=words,
            )
        elif hidden is not None or not _is_absent(error):
            real = hidden or error
            root = real["root"]
            hint = import_hint(root, path.replace(":", "."), world.facts["interpreter"]["prefix"])
            yield find(
                "SP402",
                entry.subject(target=path),
                f"{entry.label} returned '{path}', whose module does not import: {real['type']}{told}",
                cause=cause_of(real),
                hint=hint or f"python -c 'import {path.partition(':')[0] if ':' in path else path.rpartition('.')[0]}' shows it",
                location=place(root.get("place") or real.get("place")),
                traceback=real["traceback"],
                shown=words,
            )
        else:
            yield find(
                "SP401",
                entry.subject(target=path),
                f"{entry.label} returned '{path}', which is not there{told}",
                cause=cause_of(error),
                hint=_nearest(path, error["root"]),
                location=_callback(entry),
                shown=words,
            )


def _nearest(path: str, root: Mapping[str, Any]) -> str:
    """Say which name may be meant in place of the one on `path` that is not there."""
    missing = root.get("module")
    if missing and root.get("near"):
        return f"return {_with_colon(root['near'][0] + path[len(missing) :])!r}"
    gone = re.search(r"module '([\w.]+)' has no attribute '(\w+)'", root["message"])
    if gone is None or not root.get("meant"):
        return f"correct {path!r} to 'package.module:Class', as it can be imported"
    parent, rest = gone[1], path[len(gone[1]) + 1 + len(gone[2]) :]
    return f"return {_with_colon(parent + path[len(parent)] + root['meant'][0] + rest)!r}"


def _with_colon(path: str) -> str:
    """Return a class's name in the form in which SGLang shows the true cause of an import that fails."""
    module, _, name = path.rpartition(".")
    return path if ":" in path else f"{module}:{name}"


def _is_absent(error: Mapping[str, Any]) -> bool:
    """True where a name on the path is simply not there, and no code of the plugin failed."""
    return error["type"] in {"AttributeError", "ModuleNotFoundError", "ImportError", "ValueError"} and error.get("place") is None


def _callback(entry: Entry) -> Location | None:
    """Return the line that returns the class's name, or else that of the callback."""
    callback = entry.report.get("callback") or {}
    if callback.get("file") and callback.get("returns"):
        return Location(callback["file"], callback["returns"])
    return Location(callback["file"], callback["line"]) if callback.get("file") else None


def wrong_base(world: World) -> Iterator[Finding]:
    """SP403: SRT and diffusion have base classes of their own."""
    for entry in world.of("platform"):
        facts = entry.report.get("class")
        if not facts or facts.get("is_subclass") or facts.get("base") is None:
            continue
        base = BASES[entry.runtime]
        what = f"the class {facts['qualname']}" if facts["is_class"] else a(facts["type"])
        other = next((k for k in facts.get("mro", ()) if k.endswith((".SRTPlatform", ".platforms.interface.Platform"))), None)
        yield find(
            "SP403",
            entry.subject(target=str((entry.report.get("returned") or {}).get("text"))),
            f"{entry.label} leads to {what}, which is no subclass of {base} ({facts['base']})",
            cause=f"it derives from {other}, the other runtime's base class" if other else None,
            hint=f"return '{(entry.report['returned'])['text'].strip()}:{facts['holds'][0]}'"
            if facts.get("holds")
            else f"class {str(facts.get('qualname', 'MyPlatform')).rpartition('.')[2]}({base}): …",
            location=class_place(facts),
        )


def class_place(facts: Mapping[str, Any]) -> Location | None:
    return Location(facts["file"], facts.get("line")) if facts.get("file") else None


def not_out_of_tree(world: World) -> Iterator[Finding]:
    """SP404: SRT accepts it and skips every out-of-tree path; diffusion refuses it."""
    for entry, facts in classes(world):
        instance = entry.report.get("instance")
        enum = instance["enum"] if instance and instance["own"] else facts["enum"]  # SGLang asks the object
        right = (
            f"{'sglang.srt.platforms.device_mixin' if entry.runtime == 'srt' else 'sglang.multimodal_gen.runtime.platforms'}.PlatformEnum"
        )
        own = _same_enum(enum["enum"], entry.runtime)
        if enum["name"] == "OOT" and own:
            continue
        result = _RESULTS[entry.runtime]
        whose = "the other runtime's enum" if enum["enum"].startswith("sglang.") else "an enum that SGLang does not know"
        why = "" if own or enum["name"] != "OOT" else f" of {enum['enum']}, {whose}"
        yield find(
            "SP404",
            entry.subject(target=facts["qualname"]),
            f"{entry.label}: {facts['qualname']}._enum is {enum['name']}{why}, not PlatformEnum.OOT: {result}",
            hint=f"from {right.rpartition('.')[0]} import PlatformEnum; in the class body: _enum = PlatformEnum.OOT",
            location=class_place(facts),
        )


def _same_enum(enum: str, runtime: str) -> bool:
    return enum.startswith("sglang.") and ("multimodal_gen" in enum) == (runtime == "diffusion")


def not_constructible(world: World) -> Iterator[Finding]:
    """SP405: the host calls the class without arguments."""
    for entry in world.of("platform"):
        error = entry.error("instance")
        if error is None and is_stranger(entry):
            name = str(entry.report["class"].get("qualname"))
            yield find(
                "SP405",
                entry.subject(target=name),
                f"{entry.label}: {name}() gives {a(entry.report['instance']['type'])}, not a platform: its __new__ returns another thing",
                hint="return super().__new__(cls)",
                location=class_place(entry.report["class"]),
            )
        if error is None:
            continue
        facts = entry.report.get("class") or {}
        words = shown(entry, error)
        abstract = "abstract" in error["message"]
        yield find(
            "SP303" if error.get("not_an_exception") else "SP405",
            entry.subject(target=str(facts.get("qualname"))),
            f"{entry.label}: {facts.get('qualname')}() raises {error['type']}" + (f"; SGLang shows this as: {words}" if words else ""),
            cause=cause_of(error),
            hint="never exit"
            if error.get("not_an_exception")
            else "implement the abstract methods"
            if abstract
            else "build without arguments, and touch the device in init_backend() only",
            location=place(error["root"].get("place")) or class_place(facts),
            traceback=error["traceback"],
            shown=words,
        )


def is_stranger(entry: Entry) -> bool:
    """True where building the class gave something that is no instance of it."""
    instance = entry.report.get("instance")
    return instance is not None and not instance["own"]


def name_empty(world: World) -> Iterator[Finding]:
    """SP406: diffusion refuses an empty name; SRT shows it in messages and looks up tables by it."""
    for entry, facts in classes(world):
        instance = entry.report.get("instance")
        if instance is None or is_stranger(entry):
            continue
        for attribute, value in instance["identity"].items():
            raised = value["error"]["type"] if isinstance(value, dict) and "error" in value else None
            good = isinstance(value, str) and value.strip() and not (attribute == "device_name" and value == "unknown")
            if not good:
                diffusion = entry.runtime == "diffusion"
                yield find(
                    "SP406",
                    entry.subject(target=facts["qualname"]),
                    f"{entry.label}: {facts['qualname']}.{attribute} "
                    + (f"raises {raised}" if raised else f"is {value!r}")
                    + (", and diffusion refuses a platform without it" if diffusion else ": SGLang finds its tables and messages by it"),
                    hint=f'{attribute} = "{"my_chip" if attribute == "device_name" else "cpu"}"',
                    location=class_place(facts),
                    level=None if diffusion or attribute == "device_type" else Level.WARNING,
                )


def unknown_device_type(world: World) -> Iterator[Finding]:
    """SP412: ordinary before the backend registers its name."""
    for entry, facts in classes(world):
        instance = entry.report.get("instance") or {}
        if instance.get("torch_device_error"):
            kind = instance["identity"]["device_type"]
            known = re.findall(r"[a-z]+", instance["torch_device_error"].partition("one of ")[2].partition(" device type")[0])
            meant, slip = spelling.device_type(kind, known)
            yield find(
                "SP412",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: torch knows no device type '{kind}'" + (": the start ends" if slip else " before the backend is loaded"),
                cause=instance["torch_device_error"][:200],
                hint=f"did you mean '{meant}'?"
                if meant
                else "load the backend, or rename PrivateUse1, when the platform's module is imported: init_backend() is too late",
                location=class_place(facts),
                level=Level.ERROR if slip else Level.WARNING if meant else None,
            )


RULES = (class_missing, wrong_base, sglangs_own, not_out_of_tree, not_constructible, name_empty, unknown_device_type)
