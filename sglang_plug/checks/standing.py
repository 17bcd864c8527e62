"""What a hook target is where the host could not tell: SGLang's own names come from the catalogue while only the stand-in is there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.checks.model import Level
from sglang_plug.contract import peculiarities
from sglang_plug.core.policy import REGISTRIES
from sglang_plug.probe.decision import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_plug.checks.world import World
    from sglang_plug.contract.model import Symbol

_KINDS = {
    "module": "module",
    "class": "class",
    "classmethod": "classmethod",
    "staticmethod": "staticmethod",
    "property": "property",
    "attribute": "constant",
}


def target_of(world: World, hook: Mapping[str, Any], met: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a target's facts as the host met it, or, for SGLang's own names on the stand-in, as the catalogue has them."""
    name = str(hook["target"]).replace(":", ".", 1)
    if world.real or not name.startswith("sglang."):
        return met
    if world.catalogue is None:
        return met if met is None or "error" not in met else None  # the stand-in's word says nothing about SGLang
    symbol = world.catalogue.find(name)
    facts = dict(met or {}) if met is not None and "error" not in met else {}
    if symbol is None:
        near = list(world.catalogue.near(name, limit=3))
        parent = name.rpartition(".")[0]
        known = world.catalogue.find(parent) is not None or world.catalogue.has_module(parent)
        at, reason = (name, "no_attribute") if known else (_missing_part(world, name), "no_module")
        message = f"{name} is not in SGLang {world.catalogue.version}"
        return {"target": name, "error": {"type": "AttributeError", "message": message, "reason": reason, "at": at, "near": near}}
    beyond = met is not None and "error" in met
    return {**facts, "target": name, **_described(symbol, name), **({"beyond": True} if beyond else {})}


def _missing_part(world: World, name: str) -> str:
    """Return the first part of a dotted name that the release does not have."""
    assert world.catalogue is not None
    parts = name.split(".")
    for size in range(1, len(parts)):
        part = ".".join(parts[:size])
        if world.catalogue.find(part) is None and not world.catalogue.has_module(part):
            return part
    return name


def _described(symbol: Symbol, name: str) -> dict[str, Any]:
    """Return a symbol as a target's facts."""
    kind = _KINDS.get(symbol.kind.value, "function")
    if kind == "function":
        words = ["async"] * (symbol.is_async and not symbol.makes_context) + ["generator"] * symbol.yields
        kind = " ".join(words) or "function"
        kind = "async function" if kind == "async" else kind
    facts: dict[str, Any] = {"kind": kind}
    if symbol.kind.value in {"external", "unknown", "field"}:
        facts["kind"] = ""
    if kind == "constant":
        facts["value"] = symbol.value
        if not re.fullmatch(r"(-?[\d.]+|None|True|False|(['\"]).*\2|\[.*|\{.*|\(.*)", symbol.value.strip(), re.DOTALL):
            facts["kind"] = ""  # what is assigned may well be callable
    if symbol.inherited:
        facts["inherited_from"] = symbol.origin.rpartition(".")[0]
    elif symbol.origin != name and symbol.kind.value in {"function", "class"}:
        facts["defined_in"] = symbol.origin.rpartition(".")[0]
    if symbol.parameters is not None and kind != "class":
        parameters = [{"name": p.name, "kind": p.kind, "required": p.required} for p in symbol.parameters]
        facts["parameters"] = None if symbol.varies or symbol.rewrapped or kind == "property" else parameters
        facts["signature"] = symbol.signature
        facts["gives"] = symbol.gives
        facts["parent"] = "class" if symbol.kind.value in {"method", "classmethod", "staticmethod"} else "module"
        if symbol.kind.value == "classmethod" and facts["parameters"]:
            facts["parameters"] = parameters
    return facts


def beyond_standin(world: World, error: Mapping[str, Any]) -> str | None:
    """Return the name of SGLang that a failure misses on the stand-in though the release has it; None for every other failure."""
    name = missing_of_sglang(error["root"])
    if world.real or world.catalogue is None or name is None:
        return None
    return name if world.catalogue.has_module(name) or world.catalogue.find(name) is not None else None


def missing_of_sglang(root: Mapping[str, Any]) -> str | None:
    """Return the name of SGLang that an exception says is not there; None where it says nothing such."""
    words = str(root["message"])
    name = str(root.get("module") or "")
    imported = re.match(r"cannot import name '(\w+)' from '(sglang[\w.]*)'", words)
    attribute = re.match(r"(?:module|type object) '(sglang[\w.]*)' has no attribute '(\w+)'", words)
    if imported:
        name = f"{imported[2]}.{imported[1]}"
    elif attribute:
        name = f"{attribute[1]}.{attribute[2]}"
    return name if name.startswith("sglang.") else None


class Idle(NamedTuple):
    """Why a hook does not run, what to do, and how bad it is."""

    words: str
    hint: str
    level: Level = Level.ERROR
    code: str = "SP526"


#: What the catalogue does not give away: (target, first release, what happens).
_LATER = (
    (
        "sglang.srt.server_args.ServerArgs.__post_init__",
        "0.5.19",
        Idle(
            "since 0.5.19 arguments are resolved later, in resolve_once(): the hook sees them unresolved",
            "hook ServerArgs.resolve_once",
            Level.WARNING,
        ),
    ),
    (
        "sglang.srt.server_args.ServerArgs.add_cli_args",
        "0.5.11",
        Idle(
            "`sglang serve --help` is printed before plugins load, so it does not show the new flags; from_cli_args drops their values",
            "read the value in a hook on ServerArgs.from_cli_args",
            Level.INFO,
        ),
    ),
)


def never_fires(world: World, hook: Mapping[str, Any]) -> Idle | None:
    """Return why this release never, or not everywhere, runs a hook on that target; None where it is not known to be so."""
    name = str(hook["target"]).replace(":", ".", 1)
    if hook["registry"] == "diffusion":
        if name.startswith("sglang.srt.") and not name.startswith("sglang.srt.utils"):
            words = "SRT processes apply hooks of SRT's registry only; this one patches SRT's code in diffusion processes"
            return Idle(words, f"from {REGISTRIES['srt']} import HookRegistry", Level.WARNING)
        return None
    if name.startswith("sglang.multimodal_gen."):
        words = "diffusion workers apply hooks of the diffusion registry only"
        return Idle(words, f"from {REGISTRIES['diffusion']} import HookRegistry")
    if world.catalogue is not None:
        for note in peculiarities.of(world.catalogue, name, replaces=hook["type"] == "replace"):
            if note.level == "dead" or note.trap == "no-plugins":
                hint = f"hook {note.instead}" if note.instead else "sglang-plug contract targets tells what runs where"
                return Idle(f"{world.host_name} {note.text}", hint, code="SP531" if note.trap == "struct" else "SP526")
    for target, since, idle in _LATER:
        if name == target and numbers(world.release) >= numbers(since):
            return idle
    return None
