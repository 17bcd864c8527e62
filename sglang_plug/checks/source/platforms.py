"""Rules over platform classes: what the base of a release offers, and what the class makes of it."""

from __future__ import annotations

import ast
import difflib
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from sglang_plug.checks import spelling
from sglang_plug.checks.model import Level
from sglang_plug.checks.signatures import call_gap
from sglang_plug.checks.source.classes import BASES, MIXIN, Member, PlatformClass, class_members, platform_classes
from sglang_plug.checks.source.found import found
from sglang_plug.checks.source.guards import reached
from sglang_plug.contract import catalogue
from sglang_plug.contract.model import parse_signature, read_parameters
from sglang_plug.contract.renames import change_of
from sglang_plug.contract.signatures import decorator_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import PlatformContract, PlatformMember

    Function = ast.FunctionDef | ast.AsyncFunctionDef

#: the engine cannot start without these, whatever the device
_NEEDED = frozenset({"get_device", "get_device_total_memory"})


def judge_platforms(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP404, SP406–SP415, SP708: every platform class against the release's contract."""
    for cls in platform_classes(plugin, release):
        contract = release.platform_contract(cls.runtime)
        if contract is None or not contract.accepts_plugins:
            continue
        yield from _identity(cls, release)
        yield from _missing(cls, contract, release)
        for name, member in cls.members.items():
            known = contract.members.get(name)
            if known is None:
                yield from _unknown_member(cls, contract, name, member, release)
            else:
                yield from _known_member(cls, known, name, member)
        yield from _shadowed(cls, contract, release)
    yield from _capabilities(plugin, release)


def _say(cls: PlatformClass, code: str, name: str, message: str, *, at: Member | None = None, **more: Any) -> Finding:
    file, node = (at.facts_file, at.node) if at is not None else (cls.facts.file, cls.node)
    return found(code, file, node, name, message, kind="class", runtime=cls.runtime, **more)


def _identity(cls: PlatformClass, release: Release) -> Iterator[Finding]:
    if not cls.complete:
        return
    value = cls.members.get("_enum")
    written = ast.unparse(value.node) if value is not None else ""
    if value is None or (
        isinstance(value.node, (ast.Assign, ast.AnnAssign)) and "PlatformEnum." in written and not written.rstrip().endswith("OOT")
    ):
        what = "says nothing" if value is None else f"says {written.partition('=')[2].strip()}"
        message = f"{cls.node.name} is not marked as out-of-tree: its _enum {what}"
        cause = "the core skips its out-of-tree paths silently" if cls.runtime == "srt" else "the diffusion runtime refuses the class"
        yield _say(cls, "SP404", cls.node.name, message, at=value, cause=cause,
                   hint="write `_enum = PlatformEnum.OOT` in the class")  # fmt: skip
    kind = cls.members.get("device_type")
    said = _constant(kind.node.value) if kind is not None and isinstance(kind.node, (ast.Assign, ast.AnnAssign)) else None
    meant, slip = spelling.device_type(said) if isinstance(said, str) else (None, False)
    if slip:
        message = f"{cls.node.name}.device_type is {said!r}, which torch does not know: the start ends"
        yield _say(cls, "SP412", f"{cls.node.name}.device_type", message, at=kind, hint=f"did you mean {meant!r}?", level=Level.ERROR)
    lacking = [name for name in ("device_name", "device_type") if name not in cls.members and not _provided(cls, name, release)]
    if lacking:
        level = Level.ERROR if cls.runtime == "diffusion" else Level.WARNING
        message = f"{cls.node.name} has no {' and no '.join(lacking)}"
        yield _say(cls, "SP406", cls.node.name, message, hint=f'write `{lacking[0]} = "…"` in the class', level=level)


def _constant(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _missing(cls: PlatformClass, contract: PlatformContract, release: Release) -> Iterator[Finding]:
    if not cls.complete:
        return
    wanted = [member for member in contract.members.values() if member.kind == "method" and member.raises and member.called]
    lacking = [member for member in wanted if member.name not in cls.members and not _provided(cls, member.name, release)]
    needed = [member for member in lacking if member.name in _NEEDED and cls.runtime == "srt"]
    other = [member for member in lacking if member not in needed]
    for member in needed:
        message = f"{cls.node.name} does not implement {member.name}(), which SGLang calls on the way to the first token"
        cause = f"the base {member.default}; used in {', '.join(member.sites[:2])}"
        yield _say(cls, "SP407", f"{cls.node.name}.{member.name}", message, cause=cause,
                   hint=f"def {member.name}{member.signature}", members=[member.name])  # fmt: skip
    if other:
        spelled = ", ".join(
            f"{member.name} ({member.uses}×)" if member.uses else member.name for member in sorted(other, key=lambda m: -m.uses)
        )
        many = f"{len(other)} method{'s' * (len(other) != 1)}"
        message = f"{cls.node.name} leaves {many} to a base that raises, and SGLang calls them in some configurations"
        hint = f"see `sglang-plug contract show --method {other[0].name}`"
        yield _say(cls, "SP407", cls.node.name, message, cause=spelled, hint=hint, level=Level.INFO, members=[m.name for m in other])


def _provided(cls: PlatformClass, name: str, release: Release) -> bool:
    """True where a class of SGLang between the plugin's and the base gives the member: `class P(CudaSRTPlatform)`."""
    for base in cls.order:
        if isinstance(base, str) and base not in {*BASES, MIXIN}:
            module, _, owner = base.rpartition(".")
            names = release.lookup.module(module)
            if names is None or f"{owner}.{name}" in names.rows:
                return True
    return False


def _unknown_member(cls: PlatformClass, contract: PlatformContract, name: str, member: Member, release: Release) -> Iterator[Finding]:
    if name.startswith("__") or not isinstance(member.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Assign, ast.AnnAssign)):
        return
    change = change_of(cls.runtime, name, release.version)
    title = f"{cls.node.name}.{name}"
    if change is not None and change.served:
        if "get_kv_pool_cls" in cls.members:
            return  # for older releases, beside the new one
        message = f"{title}() is an old name that SGLang still reads, with a warning"
        yield _say(cls, "SP413", title, message, at=member, hint=change.instead)
        return
    since = change.since if change else _last_known(cls.runtime, name, release)
    if since is None:
        near = difflib.get_close_matches(name, [known for known in contract.members if known not in cls.members], n=1, cutoff=0.9)
        text = member.facts_file.text
        if near and not name.startswith("_") and text.count(name.encode()) == 1 and not _known_anywhere(cls.runtime, name):
            message = f"{title} overrides nothing, and nothing in its file calls it"
            yield _say(cls, "SP408", title, message, at=member, hint=f"did you mean {near[0]}?")
        return
    if change and "capabilities" in change.instead and "capabilities" in cls.members:
        return
    message = f"{title} overrides nothing: SGLang no longer reads it"
    hint = (change.instead if change and change.instead else "") or "delete it, or keep it for older releases only"
    yield _say(cls, "SP408", title, message, at=member, cause=f"it left the base class in {since}", hint=hint)


def _known_anywhere(runtime: str, name: str) -> bool:
    contracts = (catalogue.load(version).platform_contract(runtime) for version in catalogue.releases())
    return any(contract is not None and name in contract.members for contract in contracts)


def _last_known(runtime: str, name: str, release: Release) -> str | None:
    """The first release without a member that an earlier one had; None where none had it."""
    gone: str | None = None
    for version in catalogue.releases():
        if Version(version) > Version(release.version):
            break
        contract = catalogue.load(version).platform_contract(runtime)
        if contract is None:
            continue
        has = name in contract.members
        if has:
            gone = ""
        elif gone == "":
            gone = version
    return gone or None


def _known_member(cls: PlatformClass, known: PlatformMember, name: str, member: Member) -> Iterator[Finding]:
    title = f"{cls.node.name}.{name}"
    node = member.node
    if isinstance(node, ast.Attribute) or name.startswith("__"):
        return
    if known.kind == "method":
        yield from _method(cls, known, title, member)
        yield from _answer(cls, name, title, member)
    elif name == "capabilities" and isinstance(getattr(node, "value", None), (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Constant)):
        message = f"{title} is no PlatformCapabilities: SGLang reads attributes of it, and stops with AttributeError"
        yield _say(cls, "SP414", title, message, at=member, hint="write PlatformCapabilities(…)")
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not _is_property(node):
        message = f"{title} is a method, and SGLang reads it as an attribute"
        yield _say(cls, "SP414", title, message, at=member, hint="make it a class attribute or a property")


def _answer(cls: PlatformClass, name: str, title: str, member: Member) -> Iterator[Finding]:
    """SP415: a method whose last word is a name which is nearly a backend's, or that does nothing but return no attention backend."""
    judge = {"get_torch_distributed_backend_str": spelling.collective, "get_default_attention_backend": spelling.attention}.get(name)
    body = member.node.body if isinstance(member.node, ast.FunctionDef) else []
    value = _constant(body[-1].value) if body and isinstance(body[-1], ast.Return) else None
    meant = judge(value) if judge is not None and isinstance(value, str) and cls.runtime == "srt" else None
    if meant is not None:
        message = f"{title}() returns {value!r}, which is no backend: the start ends"
        yield _say(cls, "SP415", title, message, at=member, hint=f"did you mean {meant!r}?")
    bare = [part for part in body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    if name == "get_default_attention_backend" and [ast.unparse(part) for part in bare] == ["return None"]:
        message = f"{title}() returns None: SGLang makes its attention backend of it, and stops"
        yield _say(cls, "SP415", title, message, at=member, hint="return a name, such as 'torch_native'")


def _method(cls: PlatformClass, known: PlatformMember, title: str, member: Member) -> Iterator[Finding]:
    node = member.node
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        if isinstance(node.value, ast.Constant) and not _is_cached(known):
            message = f"{title} is a value, and SGLang calls it"
            yield _say(cls, "SP414", title, message, at=member, hint=f"write it as a method: def {known.name}{known.signature}")
        return
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    was_property, is_property = _is_cached(known), _is_property(node)
    if is_property != was_property:
        one, other = ("a property", "calls it") if is_property else ("a method", "reads it as a property")
        yield _say(
            cls,
            "SP414",
            title,
            f"{title} is {one}, and SGLang {other}",
            at=member,
            hint=f"write it as in the base: {known.signature}",
        )
        return
    if isinstance(node, ast.AsyncFunctionDef):
        yield _say(
            cls,
            "SP414",
            title,
            f"{title} is async, and SGLang calls it as a plain method",
            at=member,
            hint="write it without async",
        )
        return
    gap = _gap(known, node)
    if gap is not None and known.called:
        message = f"{title} {gap.words}"
        level = Level.ERROR if gap.certain else Level.INFO if "may leave out" in gap.words else Level.WARNING
        yield _say(cls, "SP410", title, message, at=member, cause=f"SGLang calls it as {known.name}{known.signature}", level=level,
                   hint=f"write it as def {known.name}{known.signature}")  # fmt: skip
    elif not known.called and not known.name.startswith("_"):
        message = f"{title} is never called by SGLang"
        yield _say(cls, "SP409", title, message, at=member, hint="keep it for your own code, or delete it")


def _is_property(node: Function) -> bool:
    return any("property" in name for name in decorator_names(node.decorator_list))


def _is_cached(known: PlatformMember) -> bool:
    return any("property" in name for name in known.decorators)


def _gap(known: PlatformMember, node: Function) -> Any:
    """Why the override cannot be called as the base is; parameters in the same place count as the same."""
    decorators = decorator_names(node.decorator_list)
    if any(
        name.rpartition(".")[2] not in {"staticmethod", "classmethod", "override", "lru_cache(…)", "abstractmethod"} for name in decorators
    ):
        return None
    expected = [parameter._asdict() for parameter in parse_signature(known.signature or "(self)")]
    if "staticmethod" not in known.decorators:
        expected = expected[1:]
    actual = [parameter._asdict() for parameter in read_parameters(node.args)]
    if "staticmethod" not in decorators and (not actual or actual[0]["kind"] != "var-positional"):
        actual = actual[1:]
    placed = [p["name"] for p in expected if p["kind"] == "positional"]
    names = {p["name"] for p in actual}
    renamed = [
        {**p, "name": placed[i]} if i < len(placed) and p["kind"] == "positional" and placed[i] not in names else p
        for i, p in enumerate(actual)
    ]
    return call_gap(expected, renamed)


def _shadowed(cls: PlatformClass, contract: PlatformContract, release: Release) -> Iterator[Finding]:
    """`class P(SRTPlatform, MyMixin)`: what SGLang's classes define before the mixin wins."""
    seen: set[str] = set()
    for base in cls.order[1:]:
        if isinstance(base, str):
            module, _, name = base.rpartition(".")
            rows = release.lookup.module(module)
            seen |= {
                key[len(name) + 1 :]
                for key in (rows.rows if rows else ())
                if key.startswith(f"{name}.") and "." not in key[len(name) + 1 :]
            }
            continue
        hidden = [
            name for name, node in class_members(base) if name in seen and name in contract.members and not isinstance(node, ast.Attribute)
        ]
        hidden = [name for name in dict.fromkeys(hidden) if cls.members[name].owner is base]
        if hidden:
            first = cls.members[hidden[0]]
            message = f"{base.name}.{hidden[0]} never runs on {cls.node.name}: SGLang's own comes first in its bases"
            if len(hidden) > 1:
                message = f"{len(hidden)} members of {base.name} never run on {cls.node.name}: SGLang's own come first in its bases"
            yield _say(cls, "SP411", f"{base.name}.{hidden[0]}", message, at=first, cause=", ".join(hidden),
                       hint=f"write the mixin first: class {cls.node.name}({base.name}, …)")  # fmt: skip


def _capabilities(plugin: Plugin, release: Release) -> Iterator[Finding]:
    contract = release.platform_contract("srt")
    for facts in plugin.facts:
        for call in facts.calls:
            if call.name.rpartition(".")[2] != "PlatformCapabilities" or contract is None or not contract.capabilities:
                continue
            dotted = call.scope.dotted(call.node.func) or ""
            if not dotted.startswith("sglang.") or not reached(call.guards, release):
                continue
            for word in call.node.keywords:
                if word.arg and word.arg not in contract.capabilities:
                    message = f"PlatformCapabilities has no {word.arg}: the class does not even import"
                    hint = f"set it only where it is known: {', '.join(contract.capabilities)}"
                    yield found(
                        "SP708", facts.file, word.value, f"PlatformCapabilities.{word.arg}", message, kind="class", runtime="srt", hint=hint
                    )
