"""SP4xx: the class that a platform's callback names, against the host's base class and what the release calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.activation import judge_return
from sglang_plug.checks.signatures import call_gap
from sglang_plug.checks.standing import beyond_standin
from sglang_plug.checks.world import Entry, World, cause_of, find, names, place
from sglang_plug.probe.decision import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

BASES = {"srt": "SRTPlatform", "diffusion": "Platform"}
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
#: Overrides that a later release stopped calling -> (since, what to write instead).
DEAD = {
    "support_cuda_graph": ("0.5.22", "capabilities = PlatformCapabilities(graph_capture=True)"),
    "support_piecewise_cuda_graph": ("0.5.22", "capabilities = PlatformCapabilities(piecewise_graph=True)"),
    "supports_fp8": ("0.5.22", "nothing: no release ever called it"),
    "get_nsa_kv_pool_cls": ("0.5.13", "get_dsa_kv_pool_cls, or get_kv_pool_cls(*, kind) since 0.5.22"),
}
SERVED = dict.fromkeys(("get_mha_kv_pool_cls", "get_mla_kv_pool_cls", "get_dsa_kv_pool_cls"), "get_kv_pool_cls(self, *, kind)")


def _classes(world: World) -> Iterator[tuple[Entry, Mapping[str, Any]]]:
    """Yield every platform whose class was found and derives from the host's base."""
    for entry in world.of("platform"):
        facts = entry.report.get("class")
        if facts and facts.get("is_subclass"):
            yield entry, facts


def class_missing(world: World) -> Iterator[Finding]:
    """SP401, SP402: the host's own message often hides why."""
    for entry in world.of("platform"):
        error = entry.error("class")
        returned = entry.report.get("returned") or {}
        if error is None or judge_return(returned) is not None:
            continue
        hidden = entry.report.get("masked_by")
        beyond = beyond_standin(world, hidden or error)
        if beyond is not None:
            yield find(
                "SP008",
                entry.subject(),
                f"{entry.label}: its class needs {beyond}, which {world.host_name} has and the stand-in has not: it could not be tried here",
                cause=cause_of(hidden or error),
                hint="sglang-plug doctor --python /path/to/python, with SGLang installed there",
            )
            continue
        path = returned["text"]
        shown = _shown(world, entry)
        told = f"; SGLang shows this as: {shown}" if shown else ""
        if error.get("not_an_exception"):
            yield find(
                "SP303", entry.subject(), f"{entry.label}: importing {path} ends the process ({error['type']})", cause=cause_of(error)
            )
        elif hidden is not None or not _is_absent(error):
            real = hidden or error
            root = real["root"]
            package = str(root.get("module", "")).partition(".")[0].replace("_", "-")
            yield find(
                "SP402",
                entry.subject(target=path),
                f"{entry.label} returned '{path}', whose module does not import: {real['type']}{told}",
                cause=cause_of(real),
                hint=f"pip install {package}" if package else f"return '{_colon(path)}': with the colon SGLang shows the true cause",
                location=place(root.get("place") or real.get("place")),
                traceback=real["traceback"],
                shown=shown,
            )
        else:
            yield find(
                "SP401",
                entry.subject(target=path),
                f"{entry.label} returned '{path}', which is not there{told}",
                cause=cause_of(error),
                hint="correct the name that the callback returns, for example 'package.module:Class'",
                location=_callback(entry),
                shown=shown,
            )


def _is_absent(error: Mapping[str, Any]) -> bool:
    """True where a name on the path is simply not there, and no code of the plugin failed."""
    return error["type"] in {"AttributeError", "ModuleNotFoundError", "ImportError", "ValueError"} and error.get("place") is None


def _colon(path: str) -> str:
    head, _, tail = path.rpartition(".")
    return f"{head}:{tail}" if ":" not in path else path


def _callback(entry: Entry) -> Location | None:
    callback = entry.report.get("callback") or {}
    return Location(callback["file"], callback["line"]) if callback.get("file") else None


def _shown(world: World, entry: Entry) -> str | None:
    verdict = (world.rehearsal.get("verdict", {}).get(entry.runtime) or {}).get("value") or {}
    error = verdict.get("phases", {}).get("shown", {}).get("error")
    if error:
        return f"{error['message'].split(' (/')[0]}"
    return None


def wrong_base(world: World) -> Iterator[Finding]:
    """SP403: SRT and diffusion have base classes of their own."""
    for entry in world.of("platform"):
        facts = entry.report.get("class")
        if not facts or facts.get("is_subclass") or facts.get("base") is None:
            continue
        base = BASES[entry.runtime]
        what = f"the class {facts['qualname']}" if facts["is_class"] else f"a {facts['type']}"
        other = next((k for k in facts.get("mro", ()) if k.endswith((".SRTPlatform", ".platforms.interface.Platform"))), None)
        yield find(
            "SP403",
            entry.subject(target=str((entry.report.get("returned") or {}).get("text"))),
            f"{entry.label} leads to {what}, which is no subclass of {base} ({facts['base']})",
            cause=f"it derives from {other}, the other runtime's base class" if other else None,
            hint=f"class {str(facts.get('qualname', 'MyPlatform')).rpartition('.')[2]}({base}): …",
            location=_class_place(facts),
        )


def _class_place(facts: Mapping[str, Any]) -> Location | None:
    return Location(facts["file"], facts.get("line")) if facts.get("file") else None


def not_out_of_tree(world: World) -> Iterator[Finding]:
    """SP404: SRT accepts it and skips every out-of-tree path; diffusion refuses it."""
    for entry, facts in _classes(world):
        enum = facts["enum"]
        right = (
            f"{'sglang.srt.platforms.device_mixin' if entry.runtime == 'srt' else 'sglang.multimodal_gen.runtime.platforms'}.PlatformEnum"
        )
        own = _same_enum(enum["enum"], entry.runtime)
        if enum["name"] == "OOT" and own:
            continue
        result = "SRT accepts it and then skips every out-of-tree path" if entry.runtime == "srt" else "diffusion refuses it with TypeError"
        why = "" if own or enum["name"] != "OOT" else f" of {enum['enum']}, the other runtime's enum"
        yield find(
            "SP404",
            entry.subject(target=facts["qualname"]),
            f"{entry.label}: {facts['qualname']}._enum is {enum['name']}{why}, not PlatformEnum.OOT: {result}",
            hint=f"from {right.rpartition('.')[0]} import PlatformEnum; in the class body: _enum = PlatformEnum.OOT",
            location=_class_place(facts),
        )


def _same_enum(enum: str, runtime: str) -> bool:
    return ("multimodal_gen" in enum) == (runtime == "diffusion")


def not_constructible(world: World) -> Iterator[Finding]:
    """SP405: the host calls the class without arguments."""
    for entry in world.of("platform"):
        error = entry.error("instance")
        if error is None:
            continue
        facts = entry.report.get("class") or {}
        shown = _shown(world, entry)
        abstract = "abstract" in error["message"]
        yield find(
            "SP303" if error.get("not_an_exception") else "SP405",
            entry.subject(target=str(facts.get("qualname"))),
            f"{entry.label}: {facts.get('qualname')}() raises {error['type']}" + (f"; SGLang shows this as: {shown}" if shown else ""),
            cause=cause_of(error),
            hint="implement the abstract methods" if abstract else "build without arguments, and touch the device in init_backend() only",
            location=place(error["root"].get("place")) or _class_place(facts),
            traceback=error["traceback"],
            shown=shown,
        )


def name_empty(world: World) -> Iterator[Finding]:
    """SP406: diffusion refuses an empty name; SRT shows it in messages and looks up tables by it."""
    for entry, facts in _classes(world):
        instance = entry.report.get("instance")
        if instance is None:
            continue
        for attribute, value in instance["identity"].items():
            good = isinstance(value, str) and value.strip() and not (attribute == "device_name" and value == "unknown")
            if not good:
                diffusion = entry.runtime == "diffusion"
                yield find(
                    "SP406",
                    entry.subject(target=facts["qualname"]),
                    f"{entry.label}: {facts['qualname']}.{attribute} is {value!r}"
                    + (", and diffusion refuses a platform without it" if diffusion else ": SGLang finds its tables and messages by it"),
                    hint=f'{attribute} = "{"my_chip" if attribute == "device_name" else "cpu"}"',
                    location=_class_place(facts),
                    level=None if diffusion or attribute == "device_type" else Level.WARNING,
                )


def method_missing(world: World) -> Iterator[Finding]:
    """SP407: the base's NotImplementedError comes without a word, in the middle of start-up."""
    for entry, facts in _classes(world):
        contract = world.contract(entry.runtime)
        mine = facts["members"]
        missing: list[tuple[str, int]] = []
        optional: list[tuple[str, int]] = []
        for name in facts["base_members"]:
            member = contract.members.get(name) if contract is not None else None
            needed = name in NEEDED[entry.runtime]
            refuses = (member.raises if member is not None else facts["base_members"][name].get("refuses")) or needed
            if name in mine or not refuses or (member is not None and not member.called) or (member is None and contract is not None):
                continue
            (missing if needed else optional).append((name, member.uses if member is not None else 0))
        for name, uses in missing:
            yield find(
                "SP407",
                entry.subject(target=f"{facts['qualname']}.{name}"),
                f"{entry.label}: {facts['qualname']} does not implement {name}(), which {world.host_name} calls"
                + (f" in {uses} place{'s' * (uses > 1)}" if uses else "")
                + ": start-up ends there with an empty NotImplementedError",
                hint=f"def {name}{_signature(facts['base_members'][name])}: …",
                location=_class_place(facts),
            )
        if optional:
            yield find(
                "SP407",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: {facts['qualname']} leaves out {names([name for name, _ in optional])}; features that need them raise "
                "NotImplementedError",
                hint=f"sglang-plug contract show --release {world.release} tells what calls them",
                location=_class_place(facts),
                level=Level.INFO,
            )


def _signature(member: Mapping[str, Any]) -> str:
    return str(member.get("signature") or "(self)")


def dead_override(world: World) -> Iterator[Finding]:
    """SP408, SP413: the name is a name of older releases."""
    for entry, facts in _classes(world):
        for name, member in facts["members"].items():
            location = Location(member["file"], member["line"]) if member.get("file") else _class_place(facts)
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
    for entry, facts in _classes(world):
        contract = world.contract(entry.runtime)
        if contract is None:
            continue
        idle = [n for n in facts["members"] if (m := contract.members.get(n)) is not None and not m.called and m.kind == "method"]
        if idle:
            yield find(
                "SP409",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: nothing in {world.host_name} calls {names(idle)} of {facts['qualname']}",
                hint="keep them for later releases, but do not rely on them",
                location=_class_place(facts),
            )


def signature_differs(world: World) -> Iterator[Finding]:
    """SP410, SP414: the core calls an override as it calls the base's method."""
    for entry, facts in _classes(world):
        for name, mine in facts["members"].items():
            base = facts["base_members"].get(name)
            if base is None or name.startswith("__"):
                continue
            target = f"{facts['qualname']}.{name}"
            location = Location(mine["file"], mine["line"]) if mine.get("file") else _class_place(facts)
            kinds = (_callable_kind(base["kind"]), _callable_kind(mine["kind"]))
            if kinds[0] != kinds[1]:
                yield find(
                    "SP414",
                    entry.subject(target=target),
                    f"{entry.label}: {target} is {_a(mine['kind'])}, and {_a(base['kind'])} in {base['owner']}",
                    hint=f"make it {_a(base['kind'])}",
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


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def shadowed_mixin(world: World) -> Iterator[Finding]:
    """SP411: `class P(SRTPlatform, MyMixin)` takes the base's own methods first."""
    for entry, facts in _classes(world):
        lost = facts["shadowed"]
        if lost:
            owners = sorted({row["owner"] for row in lost})
            yield find(
                "SP411",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: {names(sorted({row['name'] for row in lost}))} of {', '.join(owners)} never run: {lost[0]['host']} comes "
                "first in the method resolution order",
                hint=f"class {facts['qualname'].rpartition('.')[2]}({owners[0].rpartition('.')[2]}, {BASES[entry.runtime]}): …",
                location=_class_place(facts),
            )


def unknown_device_type(world: World) -> Iterator[Finding]:
    """SP412: ordinary before the backend registers its name."""
    for entry, facts in _classes(world):
        instance = entry.report.get("instance") or {}
        if instance.get("torch_device_error"):
            kind = instance["identity"]["device_type"]
            yield find(
                "SP412",
                entry.subject(target=facts["qualname"]),
                f"{entry.label}: torch knows no device type '{kind}' before the backend is loaded",
                cause=instance["torch_device_error"][:200],
                hint="load the backend, or rename PrivateUse1, in init_backend()",
                location=_class_place(facts),
            )


RULES = (
    class_missing,
    wrong_base,
    not_out_of_tree,
    not_constructible,
    name_empty,
    method_missing,
    dead_override,
    uncalled_override,
    signature_differs,
    shadowed_mixin,
    unknown_device_type,
)
