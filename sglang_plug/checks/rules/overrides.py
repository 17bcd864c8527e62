"""SP407 to SP414: a platform class's members, against the host's base class and what the release calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.classes import BASES, class_place, classes
from sglang_plug.checks.rules.variables import distance
from sglang_plug.checks.signatures import call_gap
from sglang_plug.checks.world import World, find, names, place
from sglang_plug.core.words import a
from sglang_plug.probe.decision import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from sglang_plug.checks.model import Finding

#: Methods without which start-up or the first request ends in NotImplementedError; others belong to features that may be off.
NEEDED = {
    "srt": (
        "get_device",
        "set_device",
        "get_device_uuid",
        "get_device_capability",
        "get_device_total_memory",
        "get_current_memory_usage",
        "get_default_attention_backend",
    ),
    "diffusion": ("get_device", "get_local_torch_device", "get_device_name", "get_device_total_memory", "get_available_gpu_memory"),
}
ATTENTION = "get_attn_backend_cls_str"
#: Overrides that a later release stopped calling -> (since, what to write instead).
DEAD = {
    "support_cuda_graph": ("0.5.22", "capabilities = PlatformCapabilities(graph_capture=True)"),
    "support_piecewise_cuda_graph": ("0.5.22", "capabilities = PlatformCapabilities(piecewise_graph=True)"),
    "supports_fp8": ("0.5.22", "nothing in its place: no release ever called it"),
    "get_nsa_kv_pool_cls": ("0.5.13", "get_dsa_kv_pool_cls, or get_kv_pool_cls(*, kind) since 0.5.22"),
}
SERVED = dict.fromkeys(("get_mha_kv_pool_cls", "get_mla_kv_pool_cls", "get_dsa_kv_pool_cls"), "get_kv_pool_cls(self, *, kind)")


def method_missing(world: World) -> Iterator[Finding]:
    """SP407: the base's NotImplementedError comes without a word, in the middle of start-up."""
    for entry, facts in classes(world):
        contract = world.contract(entry.runtime)
        hidden = {row["name"] for row in facts["shadowed"]}  # told by SP411
        have = {*facts["members"], *facts["inherited"], *(entry.report.get("instance") or {}).get("given", ()), *hidden}
        missing: list[tuple[str, int]] = []
        optional: list[tuple[str, int]] = []
        for name in facts["base_members"]:
            member = contract.members.get(name) if contract is not None else None
            needed = name in NEEDED[entry.runtime]
            refuses = (member.raises if member is not None else facts["base_members"][name].get("refuses")) or needed
            if name in have or not refuses or (member is not None and not member.called) or (member is None and contract is not None):
                continue
            (missing if needed else optional).append((name, member.uses if member is not None else 0))
        for name, uses in missing:
            slip = _slip(name, facts)
            yield find(
                "SP407",
                entry.subject(target=f"{facts['qualname']}.{name}"),
                f"{entry.label}: {facts['qualname']} does not implement {name}(), which {world.host_name} calls"
                + (f" in {uses} place{'s' * (uses > 1)}" if uses else "")
                + ": start-up ends there with an empty NotImplementedError",
                hint=(f"rename {slip}: " if slip else "") + f"def {name}{_signature(facts['base_members'][name])}: …",
                location=class_place(facts),
            )
        if entry.runtime == "diffusion" and ATTENTION not in have:
            yield find(
                "SP407",
                entry.subject(target=f"{facts['qualname']}.{ATTENTION}"),
                f"{entry.label}: {facts['qualname']} does not implement {ATTENTION}(): the base answers with an empty text, and the first "
                f"attention layer stops with ValueError: Invalid attention backend for {facts['identity']['device_name']}",
                hint="def get_attn_backend_cls_str(cls, selected_backend, head_size, dtype): return 'package.module:Backend'",
                location=class_place(facts),
                level=Level.INFO,  # a model may have no attention layer
            )
        if optional:
            yield find(
                "SP407",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: {facts['qualname']} leaves out {names([name for name, _ in optional])}; features that need them raise "
                "NotImplementedError",
                hint=f"sglang-plug contract show {world.release} tells what calls them",
                location=class_place(facts),
                level=Level.INFO,
            )


def _slip(name: str, facts: Mapping[str, Any]) -> str | None:
    """Return the plugin's own method whose name is one slip away from that of a method of the base; None where there is none."""
    own = [key for key, member in facts["members"].items() if _callable_kind(member["kind"]) == "called" and key not in {*DEAD, *SERVED}]
    return next((key for key in own if key not in facts["base_members"] and distance(key, name) == 1 and key != f"{name}s"), None)


def misspelt_override(world: World) -> Iterator[Finding]:
    """SP409: a method that SGLang would call if its name were right."""
    for entry, facts in classes(world):
        for name in facts["base_members"]:
            slip = _slip(name, facts)
            if slip is not None and name not in {*facts["members"], *NEEDED[entry.runtime]}:
                yield find(
                    "SP409",
                    entry.subject(target=f"{facts['qualname']}.{slip}"),
                    f"{entry.label}: nothing calls {facts['qualname']}.{slip}; the base class has {name}",
                    hint=f"if it is meant to override: def {name}{_signature(facts['base_members'][name])}: …",
                    location=place(facts["members"][slip]) or class_place(facts),
                    level=Level.WARNING,
                )


def _signature(member: Mapping[str, Any]) -> str:
    return str(member.get("signature") or "(self)")


def dead_override(world: World) -> Iterator[Finding]:
    """SP408, SP413: the name is a name of older releases."""
    for entry, facts in classes(world):
        for name, member in facts["members"].items():
            location = Location(member["file"], member["line"]) if member.get("file") else class_place(facts)
            target = f"{facts['qualname']}.{name}"
            if name in SERVED and numbers(world.release) >= (0, 5, 22):
                yield find(
                    "SP413",
                    entry.subject(target=target),
                    f"{entry.label}: {target}() is an old name, which {world.host_name} still serves with a warning",
                    hint=f"since 0.5.22: {SERVED[name]}",
                    location=location,
                )
            elif name in DEAD and numbers(world.release) >= numbers(DEAD[name][0]):
                since, instead = DEAD[name]
                yield find(
                    "SP408",
                    entry.subject(target=target),
                    f"{entry.label}: {target}() is not called by {world.host_name} (gone since {since}): what it says is ignored",
                    hint=f"write {instead}",
                    location=location,
                )


def uncalled_override(world: World) -> Iterator[Finding]:
    """SP409: documented, and called by nobody."""
    for entry, facts in classes(world):
        contract = world.contract(entry.runtime)
        if contract is None:
            continue
        known = {name: contract.members[name] for name in facts["members"] if name in contract.members}
        idle = [n for n, m in known.items() if not m.called and m.kind == "method" and not m.raises]  # what the base refuses is asked for
        if idle:
            yield find(
                "SP409",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: nothing in {world.host_name} calls {names(idle)} of {facts['qualname']}",
                hint="keep them for later releases, but do not rely on them",
                location=class_place(facts),
            )


def signature_differs(world: World) -> Iterator[Finding]:
    """SP410, SP414: the core calls an override as it calls the base's method."""
    for entry, facts in classes(world):
        for name, mine in facts["members"].items():
            base = facts["base_members"].get(name)
            if base is None or name.startswith("__"):
                continue
            target = f"{facts['qualname']}.{name}"
            location = Location(mine["file"], mine["line"]) if mine.get("file") else class_place(facts)
            kinds = (_callable_kind(base["kind"]), _callable_kind(mine["kind"]))
            if kinds[0] != kinds[1]:
                yield find(
                    "SP414",
                    entry.subject(target=target),
                    f"{entry.label}: {target} is {a(mine['kind'])}, and {a(base['kind'])} in {base['owner']}",
                    hint=f"make it {a(base['kind'])}",
                    location=location,
                )
                continue
            if mine.get("async") and not base.get("async"):
                yield find(
                    "SP414",
                    entry.subject(target=target),
                    f"{entry.label}: {target}() is async, and SGLang calls it as a plain function: it gets a coroutine",
                    hint=f"def {name}{_signature(base)}: …",
                    location=location,
                )
                continue
            gap = call_gap(_unbound(base), _unbound(mine))
            if gap is not None:
                yield find(
                    "SP410",
                    entry.subject(target=target),
                    f"{entry.label}: {target}{mine.get('signature')} {gap.words}; {base['owner']} has {name}{base.get('signature')}",
                    hint=f"def {name}{_signature(base)}: …",
                    location=location,
                    level=None if gap.certain else Level.WARNING,
                )


def _unbound(member: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Return the parameters without the bound first one."""
    parameters = member.get("parameters")
    if parameters is None:
        return None
    bound = member["kind"] in {"method", "classmethod"}
    return list(parameters[1:] if bound and parameters and parameters[0]["kind"].startswith("positional") else parameters)


def _callable_kind(kind: str) -> str:
    return "called" if kind in {"method", "classmethod", "staticmethod"} else "read"


def shadowed_mixin(world: World) -> Iterator[Finding]:
    """SP411: `class P(SRTPlatform, MyMixin)` takes the base's own methods first."""
    for entry, facts in classes(world):
        lost = facts["shadowed"]
        if lost:
            owners = sorted({row["owner"] for row in lost})
            ends = any(row["name"] in NEEDED[entry.runtime] for row in lost)
            yield find(
                "SP411",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: {names(sorted({row['name'] for row in lost}))} of {', '.join(owners)} never run: {lost[0]['host']} comes "
                "first in the method resolution order" + (", and refuses" if ends else ""),
                hint=f"class {facts['qualname'].rpartition('.')[2]}({owners[0].rpartition('.')[2]}, {BASES[entry.runtime]}): …",
                location=class_place(facts),
                level=Level.ERROR if ends else None,
            )


RULES = (method_missing, misspelt_override, dead_override, uncalled_override, signature_differs, shadowed_mixin)
