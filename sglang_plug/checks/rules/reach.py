"""SP522 to SP526, SP531: whether an applied hook is met by all calls, or by any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks import standing
from sglang_plug.checks.model import Level
from sglang_plug.checks.rules.hooks import hook_place, hook_subject, told
from sglang_plug.checks.rules.targets import met
from sglang_plug.checks.world import World, find, names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding


def recursion(world: World) -> Iterator[Finding]:
    """SP522: SGLang rewrites the plugin's own import of the original as well."""
    for entry, hook, target in met(world):
        if hook["type"] == "replace" and target.get("recursive"):
            bound = [row for row in target.get("hooks", ()) if row["type"] == "replace"]
            if len(bound) > 1 and bound[-1]["source"] != entry.name:
                continue
            yield find(
                "SP522",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: the replacement calls the original as {names(target['recursive'])}, a name that SGLang makes point "
                "at the replacement: RecursionError at the first call",
                hint="use AROUND, which passes the original; in a class use super()",
                location=hook_place(hook),
            )


def stale_binding(world: World) -> Iterator[Finding]:
    """SP523: containers, defaults, partials and class attributes keep the original."""
    for entry, hook, target in met(world):
        own = (f"{entry.module.partition('.')[0]}.", f"{target.get('inherited_from') or ' '}.")
        held = [name for name in target.get("stale") or [] if not name.startswith(own)]
        if held and target.get("patched") and not target.get("defined_in"):
            yield find(
                "SP523",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: the original is still held by {names(held, 4)}: calls by that way miss the hook",
                hint="patch those places in the callback too, or hook what reads them",
                location=hook_place(hook),
            )


def overridden(world: World) -> Iterator[Finding]:
    """SP524, SP525: subclasses that exist when the patch is made."""
    for entry, hook, target in met(world):
        over = target.get("overridden_by") or []
        if over and hook["type"] != "replace":
            yield find(
                "SP524",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: {len(over)} subclass{'es' * (len(over) > 1)} with a method of that name ({names(over, 3)}): calls "
                "on them miss the hook, unless they go through super()",
                hint="hook the overriding methods too",
                location=hook_place(hook),
                level=Level.INFO,
            )
        kept = target.get("subclasses") or []
        if kept and hook["type"] == "replace" and hook["hook"]["kind"] == "class":
            yield find(
                "SP525",
                hook_subject(entry, hook),
                f"{told(entry, hook)}: {len(kept)} subclass{'es' * (len(kept) > 1)} from before ({names(kept, 3)}) still derive from the "
                "old class: isinstance() and issubclass() with the new one say False",
                hint="hook the methods instead of the class",
                location=hook_place(hook),
            )


def never_fires(world: World) -> Iterator[Finding]:
    """SP526, SP530, SP531: applied, and yet nothing calls it, or not in every process."""
    for entry, hook, target in met(world):
        subject, spot = hook_subject(entry, hook), hook_place(hook)
        member = hook["target"].rpartition(".")[2]
        if target.get("struct") and member in {"__init__", "__post_init__", "__new__"}:
            message = (
                f"{told(entry, hook)}: the class is a msgspec struct, built without calling {member}: the hook is applied and never runs"
            )
            hint = (
                "hook ServerArgs.resolve_once, or ServerArgs.check_server_args"
                if "ServerArgs" in hook["target"]
                else "hook a method that is called"
            )
            yield find("SP531", subject, message, hint=hint, location=spot)
            continue
        known = standing.never_fires(world, hook)
        if known is not None:
            yield find(known.code, subject, f"{told(entry, hook)}: {known.words}", hint=known.hint, location=spot, level=known.level)


RULES = (recursion, stale_binding, overridden, never_fires)
