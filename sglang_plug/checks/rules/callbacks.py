"""SP307 to SP313: what a platform's callback returns, and what it asks of SGLang while SGLang asks it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.activation import CIRCULAR_HINT
from sglang_plug.checks.world import Entry, World, cause_of, find, names, place, variable, where
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from sglang_plug.checks.model import Finding

_CLASS_PATH = re.compile(r"(?!\d)\w+(\.(?!\d)\w+)*(:(?!\d)\w+(\.(?!\d)\w+)*)?$")
#: What a platform may import while SGLang is half imported; measured on 0.5.13 to 0.5.23.
SAFE = ("sglang.srt.platforms", "sglang.srt.plugins", "sglang.srt.environ", "sglang.version", "sglang.multimodal_gen")
#: What fails then with a circular import.
CIRCULAR = (
    "sglang.srt.utils",
    "sglang.srt.server_args",
    "sglang.srt.layers",
    "sglang.srt.models",
    "sglang.srt.managers",
    "sglang.srt.model_executor",
    "sglang.srt.distributed",
    "sglang.srt.entrypoints",
    "sglang.srt.configs",
    "sglang.srt.mem_cache",
    "sglang.lang",
    "sglang.utils",
)


def bad_return(world: World) -> Iterator[Finding]:
    """SP307, SP308: what a callback returned."""
    for entry in world.tried:
        returned = entry.report.get("returned")
        if returned is None or entry.error("call"):
            continue
        kind = returned["type"]
        callback = entry.report.get("callback", {})
        location = Location(callback["file"], callback.get("returns") or callback["line"]) if callback.get("file") else None
        if kind in {"coroutine", "generator", "async_generator"}:
            word = {"coroutine": "an async function", "generator": "a generator"}.get(kind, "an async generator")
            message = f"{entry.label}: the callback is {word}, and SGLang only calls it: its body never runs"
            yield find("SP307", entry.subject(), message, hint="write a plain function", location=location)
        elif entry.kind == "platform" and kind != "NoneType":
            why = judge_return(returned)
            if why is not None:
                yield find(
                    "SP308",
                    entry.subject(),
                    f"{entry.label} returned {why}; a callback returns 'package.module:Class' or None: {_fatal(entry)}",
                    hint=_return_hint(entry, returned),
                    location=location,
                )


def _fatal(entry: Entry) -> str:
    return "startup fails, even without a selection" if entry.host else "selecting it fails"


def judge_return(returned: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a platform callback's answer; None for a class name."""
    if "text" not in returned:
        return f"{a(returned['type'])}: {returned['repr']}"
    text = returned["text"]
    if not text.strip():
        return "an empty text"
    if not _CLASS_PATH.fullmatch(text):
        return f"{text!r}, which is no dotted name"
    return f"{text!r}, which names no module" if "." not in text and ":" not in text else None


def _return_hint(entry: Entry, returned: Mapping[str, Any]) -> str:
    if returned["repr"] == "False":
        return "return None where the hardware is absent"
    text = str(returned["repr"][2:-1] if returned["type"] == "bytes" else returned.get("text", "")).strip()
    meant = entry.module.partition(".")[0] + text if text.startswith(".") else text
    if _CLASS_PATH.fullmatch(meant) and "." in meant:
        return f'return "{meant if ":" in meant else ":".join(meant.rsplit(".", 1))}"'
    if returned.get("class"):
        return f'return "{returned["class"]}"'
    if returned["type"] == "tuple":
        return "return the class name alone; (True, name) is another engine's contract"
    return 'return "package.module:Class"'


def hardware_absent(world: World) -> Iterator[Finding]:
    """SP309: ordinary on another machine, fatal for the selected platform; not where a slip is caught, or the group is the wrong one."""
    for entry in world.of("platform"):
        returned = entry.report.get("returned") or {}
        if returned.get("type") != "NoneType" or entry.report.get("callback", {}).get("kind", "").startswith("async"):
            continue
        explicit = world.selected(entry.runtime) == entry.name
        caught = entry.report.get("caught")
        slip = caught is not None and _is_slip(entry, caught)
        yield find(
            "SP309",
            entry.subject(),
            f"{entry.label} returned None: {_absence(entry)}"
            + (", and it is selected: startup fails with RuntimeError" if explicit else "")
            + ("; its callback has no return with a value, so it is never active" if entry.report["callback"].get("mute") else ""),
            cause=cause_of(caught) if caught else None,
            hint=f'[project.entry-points."{GROUPS[entry.runtime]}"] is the group of hooks'
            if entry.hooks
            else "check the driver, or unset the selector"
            if explicit
            else "catch only what the device's absence raises"
            if slip
            else None,
            location=place(caught["root"].get("place")) if caught else None,
            level=Level.ERROR if explicit else Level.WARNING if slip or entry.hooks else None,
        )


GROUPS = {"srt": "sglang.srt.plugins", "diffusion": "sglang.multimodal_gen.plugins"}
#: Exceptions that no absent device raises.
_SLIPS = {"NameError", "UnboundLocalError", "SyntaxError", "IndentationError", "TabError"}


def _absence(entry: Entry) -> str:
    """Return what a None may mean, as far as it was seen."""
    if entry.hooks:
        count = len(entry.hooks)
        return f"it registers {count} hook{'s' * (count > 1)}, which a plugin of the group {GROUPS[entry.runtime]} does"
    caught = entry.report.get("caught")
    return f"its hardware may be absent here; it caught {caught['type']}" if caught else "its hardware is absent here"


def _is_slip(entry: Entry, caught: Mapping[str, Any]) -> bool:
    """True for an exception that tells of a mistake in the plugin, not of the machine."""
    missing = str(caught["root"].get("module") or "").partition(".")[0]
    return caught["root"]["type"] in _SLIPS or bool(missing and missing == entry.module.partition(".")[0])


def imports_inside(world: World) -> Iterator[Finding]:
    """SP310, SP330: what a platform's callback imports of SGLang; the stand-in has no circle, real SGLang does."""
    inside = os.path.dirname(world.rehearsal.get("sglang", {}).get("file") or os.devnull) + os.sep
    for entry in world.of("platform", "srt"):
        if entry.error("load") or entry.error("call"):
            continue
        seen = _inner(entry.report.get("imports", ()), inside)
        late = [row for row in _inner(entry.report.get("class_imports", ()), inside) if row["module"].startswith(CIRCULAR)]
        if late and not world.real and entry.error("class") is None:
            yield find(
                "SP310",
                entry.subject(),
                f"{entry.label}: the module of its class imports {late[0]['module']}: on real SGLang, since 0.5.13, that is a circular "
                "import, and startup fails",
                cause=f"imported{where(late[0])}",
                hint=CIRCULAR_HINT,
                location=place(late[0]),
            )
        circular = [row for row in seen if row["module"].startswith(CIRCULAR)]
        if circular and not world.real:
            first = circular[0]
            yield find(
                "SP310",
                entry.subject(),
                f"{entry.label} imports {first['module']} while it is activated: on real SGLang, since 0.5.13, that is a circular import",
                cause=f"imported{where(first)}",
                hint=CIRCULAR_HINT,
                location=place(first),
            )
        elif seen:
            yield find(
                "SP330",
                entry.subject(),
                f"{entry.label} imports {names(sorted({row['module'] for row in seen}), 3)} while it is activated, in every process and "
                "before SGLang is ready",
                cause=f"imported{where(seen[0])}",
                hint="move the import into init_backend()",
                location=place(seen[0]),
            )


def _inner(rows: Iterable[Mapping[str, Any]], inside: str) -> list[Mapping[str, Any]]:
    """Return the imports of SGLang's inside that the plugin's own files ask for."""
    return [row for row in rows if row.get("file") and not row["file"].startswith(inside) and not row["module"].startswith(SAFE)]


def reads_current_platform(world: World) -> Iterator[Finding]:
    """SP311: also where the plugin swallowed the failure."""
    for entry in world.of("platform"):
        if entry.report.get("touched") and not (entry.error("load") or entry.error("call")):
            touched = entry.report["touched"][0]
            yield find(
                "SP311",
                entry.subject(),
                f"{entry.label} reads current_platform while SGLang asks it which platform that is",
                cause=f"read{where(touched)}",
                hint="ask the driver or torch directly; use current_platform from init_backend() on",
                location=place(touched),
            )


def import_order(world: World) -> Iterator[Finding]:
    """SP312: imported before SGLang, such a module is met half built."""
    for entry in world.of("platform", "srt"):
        tops = entry.report.get("top_imports") or []
        if tops and not entry.error("load"):
            yield find(
                "SP312",
                entry.subject(),
                f"{entry.label}: its module imports {tops[0]['module']} at its top and holds the callback; a program that imports "
                f"{entry.module} before sglang falls back to a built-in platform",
                cause="`import sglang` then asks the half-built module for its callback",
                hint="put the callback into a module of its own that imports nothing of SGLang",
                location=Location(tops[0]["file"], tops[0]["line"]),
            )


def several_active(world: World) -> Iterator[Finding]:
    """SP313: the host refuses to choose."""
    for runtime, decision in world.decisions.items():
        error = decision.resolution.error
        if error is None or not any(step.data.get("kind") == "ambiguous" for step in decision.resolution.steps):
            continue
        active = [
            e for e in world.of("platform", runtime) if e.host and (e.report.get("returned") or {}).get("type") not in {None, "NoneType"}
        ]
        selector = decision.policy.selector or "SGLANG_PLATFORM"
        told = " and ".join(f"'{entry.name}' ({entry.dist})" for entry in active)
        yield find(
            "SP313",
            variable(selector),
            f"{told} are both active and {selector} is not set: startup fails",
            cause=error.message,
            hint=f"export {selector}={active[0].name}" if active else f"set {selector}",
        )


RULES = (bad_return, hardware_absent, imports_inside, reads_current_platform, import_order, several_active)
