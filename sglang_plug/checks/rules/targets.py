"""SP50x, SP511: what a hook's target is, and what patching does to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sglang_plug.checks import standing
from sglang_plug.checks.absent import import_hint
from sglang_plug.checks.lines import lines_of
from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.activation import is_refused_class, is_required
from sglang_plug.checks.rules.hooks import hook_place, hook_subject, told
from sglang_plug.checks.world import Entry, World, cause_of, find, names, place
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

    Hooked = tuple[Entry, Mapping[str, Any], Mapping[str, Any]]


def met(world: World) -> Iterator[Hooked]:
    """Yield every registration whose target is known: met in the host, or found in the catalogue where only the stand-in is there."""
    for runtime in world.runtimes:
        for entry, hook, target in world.hooked(runtime):
            known = standing.target_of(world, hook, target)
            if known is not None:
                yield entry, hook, known


def unresolved(world: World) -> Iterator[Finding]:
    """SP501, SP502, SP503: SGLang logs one line and serves without the hook."""
    for entry, hook, target in met(world):
        error = target.get("error")
        raw = str(hook.get("raw") or hook["target"])
        wrong = _misspelt(raw)
        if wrong is not None:
            yield find(
                "SP503",
                hook_subject(entry, hook),
                f"{told(entry, {**hook, 'target': raw})}: {wrong}: {_lost(world, entry)}",
                hint=f"write {better}" if (better := _cleaned(raw)) else "write package.module.function",
                location=hook_place(hook),
            )
        elif error is not None:
            yield _judge_error(world, entry, hook, error)
        elif target.get("beyond"):
            yield find(
                "SP008",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: {world.host_name} has the target and the stand-in has not: the hook was not applied here",
                hint="sglang-plug doctor --python /path/to/python, with SGLang installed there",
                location=hook_place(hook),
            )


def _misspelt(raw: str) -> str | None:
    """Return what is wrong with a target's spelling on every release; None where SGLang can read it."""
    head, colon, tail = raw.partition(":")
    if raw.strip() != raw:
        return "the target has blanks around it"
    if not colon and "." not in raw:
        return "the target has no dot: it needs at least module.attribute"
    if colon and "." not in tail:
        if "." not in head:
            return "SGLang splits a target at its last dot, so a colon works in module:Class.method only"
        return "SGLang splits a target at its last dot, so the colon form works for Class.method only, not for a function or class"
    parts = raw.replace(":", ".").split(".")
    return None if all(part.isidentifier() for part in parts) else "it is no dotted name"


def _cleaned(raw: str) -> str | None:
    """Return a target as it may be meant; None where that is no target either."""
    better = re.sub(r"\(.*\)$", "", raw.strip()).replace("/", ".").replace(":", ".").strip(". ")
    return better if "." in better and better != raw and all(part.isidentifier() for part in better.split(".")) else None


def _lost(world: World, entry: Entry) -> str:
    """Return what becomes of a hook that is not applied."""
    if entry.runtime == "diffusion" and is_required(world, entry):
        return "it belongs to the selected platform's package, so diffusion aborts startup"
    return "SGLang logs one line and serves without the hook"


def _judge_error(world: World, entry: Entry, hook: Mapping[str, Any], error: Mapping[str, Any]) -> Finding:
    reason, behind = error["reason"], error.get("behind")
    if reason == "module":
        return find(
            "SP503",
            hook_subject(entry, hook),
            f"{told(entry, hook)}: {error['at']} is a module, and a target names what is in one: {_lost(world, entry)}",
            hint=f"write {error['near'][0] if error['near'] else str(error['at']) + '.function'}",
            location=hook_place(hook),
        )
    shown = f"{error['type']}: {error['message']}"
    if behind is not None or reason == "import_fails":
        real = behind or error
        hint = import_hint(real["root"], str(error["at"]), world.facts["interpreter"]["prefix"])
        masked = f"; SGLang shows this as: {shown}" if behind is not None and error["message"] != behind["message"] else ""
        return find(
            "SP502",
            hook_subject(entry, hook),
            f"{told(entry, hook)}: importing {error['at']} fails with {real['type']}{masked}; {_lost(world, entry)}",
            cause=cause_of(real),
            hint=hint or f"python -c 'import {error['at']}' shows it",
            location=place(real["root"].get("place")) or hook_place(hook),
            shown=shown,
            traceback=real.get("traceback"),
        )
    where = f"in {world.host_name}" if str(hook["target"]).startswith("sglang.") else "here"
    gone = error.get("since", "")
    what = f"there is no module {error['at']}" if reason == "no_module" else f"there is no {error['at']}"
    near = [str(name) for name in error.get("near") or []]
    return find(
        "SP501",
        hook_subject(entry, hook),
        f"{told(entry, hook)}: {what} {where}{gone}; {_lost(world, entry)}",
        cause=shown,
        hint=f"did you mean {names(near, 3)}?"
        if near
        else f"sglang-plug contract targets '{str(hook['target']).rpartition('.')[0]}.*' lists what can be hooked",
        location=_written(hook) or hook_place(hook),
    )


def _written(hook: Mapping[str, Any]) -> Location | None:
    """Return where the hook's file writes the target as one text, nearest to the hook; None where it does not."""
    file, line = hook["hook"].get("file"), hook["hook"].get("line") or 0
    raw = str(hook.get("raw") or hook["target"])
    found = [n for n, text in enumerate(lines_of(file) if file else (), 1) if f'"{raw}"' in text or f"'{raw}'" in text]
    return Location(str(file), min(found, key=lambda n: abs(n - line))) if found else None


def _kind(target: Mapping[str, Any]) -> str:
    return str(target.get("kind", ""))


def async_target(world: World) -> Iterator[Finding]:
    """SP504, SP515: SGLang's wrappers are plain functions."""
    for entry, hook, target in met(world):
        is_async = _kind(target).startswith("async")
        if is_async and "generator" in _kind(target) and hook["type"] in {"after", "around", "before"}:
            continue  # told as a generator
        hook_async = hook["hook"]["async"]
        subject, spot = hook_subject(entry, hook), hook_place(hook)
        if is_async and hook["type"] == "after" and not hook_async:
            message = f"{told(entry, hook)}: the target is async, so the hook gets a coroutine instead of the result"
            yield find(
                "SP504", subject, message, hint="AROUND with `async def hook(original, …): result = await original(…)`", location=spot
            )
        elif is_async and hook["type"] == "before" and hook_async:
            message = f"{told(entry, hook)}: an async BEFORE hook gives a coroutine where (args, kwargs) are unpacked"
            yield find("SP515", subject, message, hint="write a plain function", location=spot)
        elif is_async and hook["type"] in {"around", "replace"} and not hook_async and hook["hook"]["kind"] == "function":
            message = (
                f"{told(entry, hook)}: the target is async; a plain hook must return an awaitable, and its timing ends before the work"
            )
            replaces = hook["type"] == "replace"
            plain = (
                replaces and bool(hook["returns"]) and all(row["shape"] in {"none", "constant", "tuple", "name"} for row in hook["returns"])
            )
            hint = "write it as `async def`" + ("" if replaces else " and await the original")
            yield find("SP504", subject, message, hint=hint, location=spot, level=Level.WARNING if plain else Level.INFO)
        elif is_async and hook["type"] == "around" and hook.get("unawaited"):
            message = (
                f"{told(entry, hook)}: it returns the original's coroutine without awaiting it: who awaits the target gets a coroutine"
            )
            spot = place({"file": hook["hook"]["file"], "line": hook["unawaited"]})
            yield find("SP515", subject, message, hint="return await original(…)", location=spot)
        elif is_async:
            message = f"{told(entry, hook)}: after patching, inspect.iscoroutinefunction() says False of the target; web frameworks ask it"
            yield find("SP504", subject, message, location=spot, level=Level.INFO)
        elif hook_async and target.get("error") is None and "generator" not in _kind(target) and _kind(target):
            message = f"{told(entry, hook)}: the hook is async and the target is not: its caller gets a coroutine"
            yield find("SP515", subject, message, hint="write a plain function", location=spot)


def generator_target(world: World) -> Iterator[Finding]:
    """SP505: the body has not run when the wrapper has the result."""
    for entry, hook, target in met(world):
        iterates = "generator" in hook["hook"]["kind"] and hook["type"] != "before"
        if "generator" in _kind(target) and hook["type"] in {"after", "around", "before"} and not iterates:
            what = {
                "after": "the hook gets the generator before its body has run",
                "around": "what the hook does around the call ends before the body runs, unless it iterates",
                "before": "the hook runs when the generator is made, not when it is used",
            }[hook["type"]]
            yield find(
                "SP505",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: the target is {'an async' if _kind(target).startswith('async') else 'a'} generator: {what}",
                hint="AROUND with an async generator: `async for item in original(…): yield item`"
                if _kind(target).startswith("async")
                else "AROUND with a generator: `yield from original(…)`",
                location=hook_place(hook),
                level=None if hook["type"] == "after" else Level.INFO,
            )
        elif iterates and _kind(target) in {"function", "async function"} and not hook.get("iterates", True):
            yield find(
                "SP505",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: the hook is a generator and the target is not: its caller gets a generator, and nothing runs",
                hint="return the value instead of yielding it",
                location=hook_place(hook),
                level=Level.ERROR,
            )


def wrong_kind(world: World) -> Iterator[Finding]:
    """SP506, SP507, SP508: targets that SGLang patches and breaks."""
    for entry, hook, target in met(world):
        kind, name = _kind(target), hook["target"]
        subject, spot = hook_subject(entry, hook), hook_place(hook)
        if "property" in kind:
            message = (
                f"{told(entry, hook)}: the target is {a(kind)}; SGLang puts a plain method there, which is always true and never the value"
            )
            yield find("SP506", subject, message, hint="hook the function behind it, or REPLACE the class", location=spot)
        elif kind == "constant":
            message = (
                f"{told(entry, hook)}: the target is a constant ({target.get('value')}); SGLang puts a function there, and in every module "
                "that holds the same object"
            )
            yield find("SP507", subject, message, hint="assign the value in the callback", location=spot)
        elif target.get("inherited_from") and kind.endswith(("classmethod", "staticmethod")):
            owner = str(target["inherited_from"])
            message = (
                f"{told(entry, hook)}: {name} is {a(kind)} inherited from {owner}; SGLang patches it as a plain function: calls on "
                "instances raise TypeError" + (", and the class is not passed" if kind == "classmethod" else "")
            )
            yield find("SP508", subject, message, hint=f"hook {owner}.{name.rpartition('.')[2]}", location=spot)


def loses_api(world: World) -> Iterator[Finding]:
    """SP509: lru_cache, triton kernels and other callable objects become functions."""
    for entry, hook, target in met(world):
        lost = target.get("lost") or []
        if lost or _kind(target) == "callable object":
            what = f"loses {names(lost)}" if lost else "becomes a plain function"
            yield find(
                "SP509",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: the target is {a(_kind(target))} and {what} when it is patched",
                hint="hook the function that calls it",
                location=hook_place(hook),
            )


def reexported(world: World) -> Iterator[Finding]:
    """SP510: SGLang patches every module that holds the same object."""
    for entry, hook, target in met(world):
        home = target.get("defined_in")
        if not home or hook["target"].rpartition(".")[0] == home:
            continue
        outside = [root for root in target.get("held_outside") or [] if root != "sglang"]
        foreign = target.get("stdlib") or (home.partition(".")[0] != hook["target"].partition(".")[0])
        if foreign:
            yield find(
                "SP510",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: the target is defined in {home}; the patch spreads to every module that imported it"
                + (f", among them of {names(outside, 4)}" if outside else ""),
                hint="hook the function of SGLang that calls it",
                location=hook_place(hook),
                level=Level.ERROR if target.get("stdlib") else None,
            )


def class_type(world: World) -> Iterator[Finding]:
    """SP511: wrapping a class in a function would break isinstance."""
    for entry, hook, target in met(world):
        is_class = hook["hook"]["kind"] == "class"
        if _kind(target) == "class" and hook["type"] != "replace":
            message = f"{told(entry, hook)}: the target is a class, which takes REPLACE only; all hooks on it fail, other plugins' too"
            hint = f"hook {hook['target']}.__init__, or another method"
        elif _kind(target) == "class" and not is_class:
            message = f"{told(entry, hook)}: a function replaces a class: isinstance() with it raises TypeError"
            hint = "replace it by a subclass"
        elif is_class and _kind(target) and _kind(target) != "class" and target.get("error") is None:
            message = f"{told(entry, hook)}: a class replaces {a(_kind(target))}"
            hint = "register a function"
        else:
            continue
        yield find("SP511", hook_subject(entry, hook), message, hint=hint, location=hook_place(hook))


def refused_type(world: World) -> Iterator[Finding]:
    """SP511: the registration itself raises."""
    for entry in world.of("hook plugin"):
        error = entry.error("call") or entry.error("load")
        if error is not None and is_refused_class(error):
            yield find(
                "SP511",
                entry.subject(),
                f"{entry.label} registers a class with another type than REPLACE: {error['message'].splitlines()[0]}",
                hint="register it with HookType.REPLACE, or register a function",
                location=place(error.get("place")),
            )


RULES = (unresolved, async_target, generator_target, wrong_kind, loses_api, reexported, class_type, refused_type)
