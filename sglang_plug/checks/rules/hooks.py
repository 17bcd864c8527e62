"""SP51x, SP52x: what hook plugins register, whatever becomes of the targets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sglang_plug.checks import standing
from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.callbacks import judge_return
from sglang_plug.checks.signatures import Gap, call_gap
from sglang_plug.checks.world import Entry, World, find, names
from sglang_plug.core.policy import REGISTRIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

ORIGINAL_NAMES = {
    "original",
    "original_fn",
    "original_func",
    "original_function",
    "orig",
    "orig_fn",
    "fn",
    "func",
    "function",
    "wrapped",
    "inner",
}
RESULT_NAMES = {"result", "res", "ret", "retval", "return_value", "output", "out", "original_result"}

PLATFORMS = {"srt": "sglang.srt.platforms", "diffusion": "sglang.multimodal_gen.platforms"}
_PATCHES = "it may patch something directly)"


def hook_subject(entry: Entry, hook: Mapping[str, Any]) -> dict[str, str]:
    """Return the subject of a finding about one registration."""
    return entry.subject() | {"kind": "hook", "target": str(hook["target"])}


def told(entry: Entry, hook: Mapping[str, Any]) -> str:
    """Return a registration in words: `hook tgt.f (AROUND, by 'hk')`."""
    return f"hook {hook['target']} ({hook['type'].upper()}, by '{entry.name}')"


def hook_place(hook: Mapping[str, Any]) -> Location | None:
    """Return where the hook function is."""
    facts = hook["hook"]
    return Location(facts["file"], facts.get("line")) if facts.get("file") else None


def registers_nothing(world: World) -> Iterator[Finding]:
    """SP516: success in the log, no behaviour."""
    for entry in world.of("hook plugin"):
        if entry.failed or not entry.report or entry.hooks:
            continue
        returned = entry.report.get("returned", {})
        if returned.get("type") in {"coroutine", "generator", "async_generator"}:
            continue
        files = entry.report.get("unimported") or []
        swapped = "text" in returned and judge_return(returned) is None
        answer = "" if returned.get("type") == "NoneType" else f" and returned {returned.get('repr')}, which SGLang ignores"
        yield find(
            "SP516",
            entry.subject(),
            f"{entry.label} ran{answer}: 0 hooks registered ("
            + (f"a class's name is what a platform returns, whose group is {PLATFORMS[entry.runtime]})" if swapped else _PATCHES),
            cause=f"{files[0]} registers hooks and was not imported" if files else None,
            hint=f'[project.entry-points."{PLATFORMS[entry.runtime]}"] is the group of platforms'
            if swapped
            else f"import {files[0]} in the callback"
            if files
            else "if it is meant to hook: HookRegistry.register(target, hook, type)",
            location=Location(files[0]) if files else None,
            level=Level.WARNING if files or swapped or returned.get("repr") == "False" else Level.INFO,
        )


def wrong_registry(world: World) -> Iterator[Finding]:
    """SP517: each runtime applies its own registry only."""
    for entry in world.of("hook plugin"):
        for hook in entry.hooks:
            if hook["registry"] != entry.runtime:
                yield find(
                    "SP517",
                    hook_subject(entry, hook),
                    f"{told(entry, hook)} is in the registry of the {hook['registry']} runtime, but {entry.group} is a group of the "
                    f"{entry.runtime} runtime: it never runs",
                    hint=f"from {REGISTRIES[entry.runtime]} import HookRegistry, HookType",
                    location=hook_place(hook),
                )


def partial_registration(world: World) -> Iterator[Finding]:
    """SP518: SRT keeps what was registered before the failure, diffusion drops it."""
    for entry in world.of("hook plugin"):
        error = entry.error("call") or entry.error("load")
        if error is not None and entry.hooks and not error.get("not_an_exception"):
            kept = entry.runtime == "srt"
            yield find(
                "SP518",
                entry.subject(),
                f"{entry.label} fails after it has registered {len(entry.hooks)} hook{'s' * (len(entry.hooks) > 1)} "
                f"({names([hook['target'] for hook in entry.hooks], 3)}): "
                + ("SGLang applies them all the same" if kept else "diffusion drops them"),
                hint="check everything first, then register",
                level=None if kept else Level.INFO,
            )


def hook_without_owner(world: World) -> Iterator[Finding]:
    """SP527: SRT names the plugin around its callback only."""
    for entry in world.of("hook plugin", "srt"):
        early = int(entry.report.get("at_import", 0))
        if early and not any(hook["source"] for hook in entry.hooks[:early]):
            yield find(
                "SP527",
                entry.subject(),
                f"{entry.label} registers {early} hook{'s' * (early > 1)} while its module is imported: SGLang's log calls their owner "
                "'unknown', and they stay when the callback fails",
                hint="register inside the callback",
            )


def two_spellings(world: World) -> Iterator[Finding]:
    """SP528: the dot and the colon form are two keys of SGLang's registry."""
    for runtime in world.runtimes:
        spelled: dict[str, dict[str, Entry]] = defaultdict(dict)
        for entry, hook, _ in world.hooked(runtime):
            raw = str(hook.get("raw") or hook["target"])
            spelled[raw.replace(":", ".", 1)][raw] = entry
        for plain, forms in spelled.items():
            if len(forms) > 1:
                first = next(iter(forms.values()))
                yield find(
                    "SP528",
                    first.subject() | {"kind": "hook", "target": plain},
                    f"{plain} is hooked as {names(sorted(forms))}, by {names(sorted({e.name for e in forms.values()}))}: SGLang takes "
                    "them for two targets, wraps twice, and sees no conflict",
                    hint=f"write {plain} everywhere",
                )


def hook_shape(world: World) -> Iterator[Finding]:
    """SP512, SP513: a hook's parameters against its type and its target."""
    for runtime in world.runtimes:
        for entry, hook, met in world.hooked(runtime):
            facts = hook["hook"]
            if facts["kind"] == "class" or facts["parameters"] is None:
                continue
            wrong = _wrong_type(hook)
            if wrong is not None:
                yield find(
                    "SP512",
                    hook_subject(entry, hook),
                    f"{told(entry, hook)}: {facts['name']}{facts['signature']} {wrong[0]}",
                    hint=wrong[1],
                    location=hook_place(hook),
                )
                continue
            target = standing.target_of(world, hook, met)
            gap = _gap(hook, target)
            here = _gap(hook, met) if gap is None else None
            if here is not None:
                yield find(
                    "SP513",
                    hook_subject(entry, hook),
                    f"{told(entry, hook)} fits {world.host_name}; the stand-in's target has {(met or {}).get('signature')}, and "
                    f"{facts['name']}{facts['signature']} {here.words} there",
                    hint=_fitting(hook, met),
                    location=hook_place(hook),
                    level=Level.INFO,
                )
            elif gap is not None:
                yield find(
                    "SP513",
                    hook_subject(entry, hook),
                    f"{told(entry, hook)}: {facts['name']}{facts['signature']} {gap.words}; the target has "
                    f"{target['signature'] if target else 'another'}",
                    hint=_fitting(hook, target),
                    location=hook_place(hook),
                    level=None if gap.certain else Level.WARNING,
                )
            elif hook["type"] == "around" and hook.get("first_use") == "none" and not _first(hook).startswith("_"):
                yield find(
                    "SP512",
                    hook_subject(entry, hook),
                    f"{told(entry, hook)}: {facts['name']}{facts['signature']} never uses its first parameter '{_first(hook)}', which is "
                    "the original function: the original never runs",
                    hint=f"{_fitting(hook, target)}; if the original is not to run: HookType.REPLACE, without that parameter",
                    location=hook_place(hook),
                    level=Level.WARNING,
                )


def _first(hook: Mapping[str, Any]) -> str:
    """Return the name of a hook's first parameter by position, or nothing."""
    placed = [p for p in hook["hook"]["parameters"] if p["kind"] in {"positional", "positional-only"}]
    return str(placed[0]["name"]) if placed else ""


def _fitting(hook: Mapping[str, Any], target: Mapping[str, Any] | None) -> str:
    """Return a signature that fits, in words: what the type passes comes first, then the object of a method."""
    lead = {"around": "original, ", "after": "result, "}.get(hook["type"], "")
    own = "self, " if target and target.get("parent") == "class" and target.get("kind") not in {"staticmethod", "classmethod"} else ""
    call = {"around": f": return original({own}*args, **kwargs)", "after": ": …"}.get(hook["type"], ": …")
    return f"def hook({lead}{own}*args, **kwargs){call}"


def _wrong_type(hook: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (what, hint) where a hook looks like one of another type."""
    parameters = [p for p in hook["hook"]["parameters"] if p["kind"] in {"positional", "positional-only"}]
    written = parameters[0]["name"] if parameters else ""
    first = written.lower()
    kind = hook["type"]
    if kind in {"around", "after"} and not hook["hook"]["parameters"]:
        return (
            f"takes no arguments, and {kind.upper()} passes {'the original' if kind == 'around' else 'the result'} first",
            "take it first",
        )
    if kind == "around" and first in {"self", "cls"} and hook.get("first_use") in {"none", "attributes"}:
        words = f"lacks the parameter for the original function, which AROUND passes first: '{written}' would be that function"
        return words, f"def hook(original, {written}, *args, **kwargs): return original({written}, *args, **kwargs)"
    if kind == "after" and first in ORIGINAL_NAMES:
        words = (
            f"is registered as AFTER, the default, whose first argument is the result; '{written}' looks like AROUND's original function"
        )
        return words, "register it with HookType.AROUND"
    if kind == "around" and first in RESULT_NAMES:
        words = f"is registered as AROUND, whose first argument is the original function; '{written}' looks like AFTER's result"
        return words, "register it with HookType.AFTER"
    if kind in {"before", "replace"} and first in {"original_fn", "original", "orig", "original_func", "orig_fn"}:
        words = (
            f"is registered as {kind.upper()}, which passes the target's arguments only; '{written}' looks like AROUND's original function"
        )
        return words, "register it with HookType.AROUND"
    return None


def _gap(hook: Mapping[str, Any], target: Mapping[str, Any] | None) -> Any:
    """Return why the hook cannot be called as its target is; None where it can or nothing is known."""
    if target is None or target.get("parameters") is None or target.get("kind") == "class":
        return None
    parameters = list(hook["hook"]["parameters"])
    if hook["type"] in {"around", "after"}:
        if parameters and parameters[0]["kind"] in {"positional", "positional-only"}:
            parameters = parameters[1:]
        elif not (parameters and parameters[0]["kind"] == "var-positional"):
            return None
    expected = target["parameters"]
    if target.get("parent") == "class" and expected and parameters and parameters[0]["kind"] == "positional":
        method = target.get("kind") != "staticmethod"
        lacks = len(parameters) < len(expected) and any(p["name"] == parameters[0]["name"] for p in expected[1:])
        if method and lacks and all(p["kind"] == "positional" for p in parameters):
            return Gap(f"lacks the parameter for '{expected[0]['name']}', which comes before '{parameters[0]['name']}'", certain=True)
        expected = [{**expected[0], "name": parameters[0]["name"], "kind": "positional-only"}, *expected[1:]]  # self under any name
    return call_gap(expected, parameters)


def hook_return(world: World) -> Iterator[Finding]:
    """SP514: what a BEFORE hook returns is unpacked as (args, kwargs)."""
    for runtime in world.runtimes:
        for entry, hook, target in world.hooked(runtime):
            for row in hook.get("returns", ()):
                why = _bad_return(hook["type"], row, target)
                if why is not None:
                    yield find(
                        "SP514",
                        hook_subject(entry, hook),
                        f"{told(entry, hook)}: `return {row['text']}` {why}",
                        hint="return (args, kwargs), or None to leave them" if hook["type"] == "before" else "return None",
                        location=Location(hook["hook"]["file"], row["line"]) if hook["hook"].get("file") else None,
                        level=None if row["shape"] != "call" else Level.WARNING,
                    )
                    break
            if _drops_result(world, hook, target):
                yield find(
                    "SP514",
                    hook_subject(entry, hook),
                    f"{told(entry, hook)}: it calls the original and returns nothing: callers get None in place of the result",
                    hint="return original(*args, **kwargs)",
                    location=hook_place(hook),
                    level=None if _promises(world, hook) else Level.WARNING,
                )


def _promises(world: World, hook: Mapping[str, Any]) -> bool:
    """True where the release's signature says that the target gives a result, and never None."""
    symbol = world.catalogue.find(str(hook["target"]).replace(":", ".", 1)) if world.catalogue is not None else None
    return symbol is not None and symbol.gives


def _drops_result(world: World, hook: Mapping[str, Any], target: Mapping[str, Any] | None) -> bool:
    """True for an AROUND hook without a result on a target that has one, as far as its own source tells."""
    known = standing.target_of(world, hook, target)
    return bool(known and known.get("gives") and hook["type"] == "around" and hook.get("gives_nothing") and hook.get("first_use") == "used")


def _bad_return(kind: str, row: Mapping[str, Any], target: Mapping[str, Any] | None) -> str | None:
    if kind == "before":
        if row["shape"] == "tuple" and row["size"] != 2:
            return f"gives {row['size']} values where (args, kwargs) are unpacked"
        if row["shape"] == "tuple" and row["text"].startswith(("({", "(dict(")):
            return "is (kwargs, args), the wrong way round: the call ends with an error"
        if row["shape"] == "constant":
            return "is not (args, kwargs): the call ends with an error"
    elif kind == "after" and str((target or {}).get("target", "")).endswith(".__init__") and row["shape"] != "none":
        return "makes __init__ return a value: Python raises TypeError"
    return None


RULES = (
    registers_nothing,
    wrong_registry,
    partial_registration,
    hook_without_owner,
    two_spellings,
    hook_shape,
    hook_return,
)
