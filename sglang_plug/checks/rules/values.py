"""SP415: what a platform's value methods answer, as SGLang asks them on the way to the first token."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sglang_plug.checks import spelling
from sglang_plug.checks.model import Level
from sglang_plug.checks.rules.classes import classes
from sglang_plug.checks.standing import beyond_standin
from sglang_plug.checks.world import World, cause_of, find, place
from sglang_plug.core.words import a
from sglang_plug.probe.inside.source import NOWHERE
from sglang_plug.probe.inside.values import NAMES_CLASS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

_MIB = 1 << 20
_TEXTS = {
    "get_device": "makes it ServerArgs.device and splits it at ':', and stops with AttributeError",
    "get_torch_distributed_backend_str": "hands it to torch.distributed.init_process_group, also for one rank",
    "get_compile_backend": "hands it to torch.compile",
    "get_default_attention_backend": "makes its attention backend of it, and stops",
}
_SHOWN = {"get_device": "get_device(None)", "get_attn_backend_cls_str": "get_attn_backend_cls_str(None, head_size, dtype)"}


def wrong_value(world: World) -> Iterator[Finding]:
    """SP415: what the platform answers on the way to the first token."""
    for entry, facts in classes(world):
        for name, answer in (entry.report.get("values") or {}).items():
            shown_as = _SHOWN.get(name, f"{name}()")
            member = facts["members"].get(name) or {}
            error, ended = answer.get("error"), answer.get("ended")
            verdict: tuple[str, str, Level] | None = None
            if ended is not None:
                verdict = None if name in NAMES_CLASS and ended == "hangs" else _ended(shown_as, ended)
            elif error is not None:
                verdict = _raised(world, name, shown_as, error)
            elif name in NAMES_CLASS:
                verdict = _nowhere(world, shown_as, answer)
            else:
                verdict = _misfit(name, shown_as, answer)
            if verdict is not None:
                words, hint, level = verdict
                yield find(
                    "SP415",
                    entry.subject(target=facts["qualname"]),
                    f"{entry.label}: {words}",
                    cause=cause_of(error) if error is not None else None,
                    hint=hint,
                    location=place(member),
                    level=level,
                )


def _ended(shown_as: str, ended: str) -> tuple[str, str, Level]:
    """Judge a method that gave no answer."""
    level = Level.WARNING if ended == "hangs" else Level.ERROR
    return f"{shown_as} {ended}, and SGLang calls it at start-up", "answer without touching the device", level


def _raised(world: World, name: str, shown_as: str, error: Mapping[str, Any]) -> tuple[str, str, Level] | None:
    """Judge an exception of a method that SGLang calls before `init_backend()`."""
    if name not in {"get_device", "get_device_total_memory"} or "ImportError" in error["type"] or "ModuleNotFoundError" in error["type"]:
        return None
    if beyond_standin(world, error) is not None:
        return None
    return f"{shown_as} raises {error['type']} here, and SGLang calls it at start-up", "answer without init_backend()", Level.WARNING


def _nowhere(world: World, shown_as: str, answer: Mapping[str, Any]) -> tuple[str, str, Level] | None:
    """Judge the name of a class: is it one, and does it lead somewhere?"""
    said, hint = f"{shown_as} is {answer['text']}", "return 'package.module:Backend'"
    stops = "the first attention layer stops"
    if not answer["is_text"] and answer["text"] != "None":
        return f"{said}, {a(str(answer['type']).rpartition('.')[2])}, not the name of a class: {stops}", hint, Level.ERROR
    if not answer["whole"]:
        return f"{said}: {stops} with ValueError: Invalid attention backend", hint, Level.ERROR
    found, name = answer["found"], answer["whole"].strip()
    if found["verdict"] not in NOWHERE:
        return None
    near, why = found["near"], found["why"]
    if name.startswith("sglang.") and not world.real:
        if world.catalogue is None or world.catalogue.find(name.replace(":", ".")) is not None:
            return None
        near = world.catalogue.near(name.replace(":", "."), limit=1)
        why = f"{world.host_name} has no such class"
    foreign = found["verdict"] == "missing_module" and "." not in found["module"]  # its package may be installed elsewhere
    if near and found["verdict"] != "missing_module":
        module, _, last = near[0].rpartition(".")
        hint = f"did you mean '{module}:{last}'?"
    elif near:
        hint = f"did you mean the module {near[0]}?"
    return f"{said}, which leads nowhere ({why}): {stops}", hint, Level.WARNING if foreign else Level.ERROR


def _misfit(name: str, shown_as: str, answer: Mapping[str, Any]) -> tuple[str, str, Level] | None:
    """Judge a value: (what, hint, level)."""
    said, kind, number = f"{shown_as} is {answer['text']}", str(answer["type"]).rpartition(".")[2], answer["number"]
    if name in _TEXTS:
        if answer["is_text"] and answer["text"] not in {"''", '""'}:
            return _misspelt(name, said, answer)
        if answer["is_text"]:
            return f"{said}, an empty text: SGLang {_TEXTS[name]}", "return a name", Level.WARNING
        level = Level.ERROR if name in {"get_device", "get_default_attention_backend"} else Level.WARNING
        return f"{said}, {a(kind)}, not a text: SGLang {_TEXTS[name]}", "return a str", level
    if number is None or math.isnan(number):
        if kind not in {"bool", "float", "str", "bytes", "NoneType", "tuple", "list", "dict"}:
            return None
        unit = "GiB" if name == "get_available_gpu_memory" else "bytes"
        result = "SGLang computes with it" if kind in {"bool", "float"} else "SGLang compares and divides it, and stops with TypeError"
        words = f"{said}, {a(kind)}, not a number of {unit}: {result}"
        return words, f"return a number of {unit}", Level.ERROR
    if number <= 0:
        return f"{said}: SGLang finds no room for the model, and stops at start-up", "return what the device has", Level.ERROR
    if name == "get_device_total_memory" and number < _MIB:
        words = f"{said}, which cannot be bytes (MiB or GiB?): SGLang sizes the KV cache by bytes, finds no room, and stops at start-up"
        return words, "return bytes: GiB * 1024**3", Level.ERROR
    if name == "get_available_gpu_memory" and number > _MIB:
        words = f"{said}, which cannot be GiB (bytes?): SGLang decides by it what stays on the device, and runs out of memory"
        return words, "return GiB: bytes / 1024**3", Level.WARNING
    return None


def _misspelt(name: str, said: str, answer: Mapping[str, Any]) -> tuple[str, str, Level] | None:
    """Judge a name that is nearly one that SGLang or torch has; every other may be a backend of the plugin's own."""
    if name == "get_torch_distributed_backend_str":
        meant, what = spelling.collective(answer["whole"], answer["known"] or spelling.COLLECTIVES), "torch.distributed does not know"
    elif name == "get_default_attention_backend":
        meant, what = spelling.attention(answer["whole"]), "no attention backend of SGLang's is called"
    else:
        return None
    return (f"{said}, which {what}: the start ends", f"did you mean '{meant}'?", Level.ERROR) if meant else None


def wrong_capabilities(world: World) -> Iterator[Finding]:
    """SP414: SRT reads attributes of `capabilities`."""
    for entry, facts in classes(world):
        found = (entry.report.get("instance") or {}).get("capabilities") if entry.runtime == "srt" else None
        if found:
            kind = found["type"].rpartition(".")[2]
            yield find(
                "SP414",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: capabilities is {a(kind)}, {found['text']}: SGLang reads .{found['lacks'][0]} of it, and stops with "
                "AttributeError",
                hint="capabilities = PlatformCapabilities(…), from sglang.srt.platforms.interface",
                location=place(facts),
            )


RULES = (wrong_value, wrong_capabilities)
