"""Rules over what the metadata declares: entry points and what they lead to, requirements, packages, against the project's own files."""

from __future__ import annotations

import ast
import difflib
import re
from typing import TYPE_CHECKING, Any

from packaging.requirements import InvalidRequirement, Requirement

from sglang_plug.checks.model import Level
from sglang_plug.checks.source.found import found
from sglang_plug.checks.source.packages import missing_packages
from sglang_plug.contract.folding import Unfoldable, fold
from sglang_plug.contract.signatures import yields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.declared import DeclaredEntry
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.contract.catalogue import Release

PLATFORM_GROUPS = {"sglang.srt.platforms": "srt", "sglang.multimodal_gen.platforms": "diffusion"}
HOOK_GROUPS = {"sglang.srt.plugins": "srt", "sglang.multimodal_gen.plugins": "diffusion"}
GROUPS = (*PLATFORM_GROUPS, *HOOK_GROUPS, "sglang.serve_backends")
#: what a release must have for a group to be read
_READER = {
    "sglang.srt.platforms": "sglang.srt.platforms",
    "sglang.srt.plugins": "sglang.srt.plugins",
    "sglang.multimodal_gen.platforms": "sglang.multimodal_gen.runtime.platforms.plugins",
    "sglang.multimodal_gen.plugins": "sglang.multimodal_gen.runtime.platforms.plugins",
    "sglang.serve_backends": "sglang.cli.serve_backends",
}
_OUTDATED = {
    "sglang.platform_plugins": "sglang.srt.platforms",
    "sglang.platforms": "sglang.srt.platforms",
    "sglang.platform": "sglang.srt.platforms",
    "sglang.srt.platform": "sglang.srt.platforms",
    "sglang.srt.platform_plugins": "sglang.srt.platforms",
    "sglang.plugins": "sglang.srt.plugins",
    "sglang.plugin": "sglang.srt.plugins",
    "sglang.general_plugins": "sglang.srt.plugins",
    "sglang.srt.plugin": "sglang.srt.plugins",
    "sglang.srt.hooks": "sglang.srt.plugins",
    "sglang.diffusion.platforms": "sglang.multimodal_gen.platforms",
    "sglang.diffusion.plugins": "sglang.multimodal_gen.plugins",
    "sglang.multimodal_gen.platform": "sglang.multimodal_gen.platforms",
    "sglang.multimodal_gen.plugin": "sglang.multimodal_gen.plugins",
}
_RESERVED = frozenset({"cpu", "cuda", "rocm", "xpu", "mps", "npu", "musa"})
_RESERVED_BACKENDS = frozenset({"llm", "diffusion", "auto"})
_VALUE = re.compile(
    r"^\s*(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)\s*(:\s*(?P<attribute>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*))?\s*(\[[^\]]*\])?\s*$"
)


def nearest_group(group: str) -> str | None:
    """Return the group of SGLang that a wrong one means, or None where it means something else."""
    text = group.lower().replace("-", "_")
    if text in GROUPS and text != group:
        return text
    if text in _OUTDATED:
        return _OUTDATED[text]
    if not text.startswith(("sglang", "sgl.")):
        return None
    near = difflib.get_close_matches(text, GROUPS, n=1, cutoff=0.88)
    return near[0] if near and group not in GROUPS else None


def judge_declarations(plugin: Plugin) -> Iterator[Finding]:
    """SP203–SP206, SP208, SP213, SP216, SP307, SP308, SP801–SP804: what holds for every release."""
    declared = plugin.project.declared
    for message, path, line in declared.problems:
        yield found("SP804", path, line, path, message)
    seen: dict[tuple[str, str], DeclaredEntry] = {}
    for entry in declared.entries:
        if entry.group not in GROUPS:
            meant = nearest_group(entry.group)
            if meant is not None:
                message = f"nobody reads the group {entry.group!r}"
                yield _say(entry, "SP204", message, hint=f"call it {meant!r}", meant=meant)
            continue
        if (entry.group, entry.name) in seen:
            yield _say(entry, "SP205", f"{entry.name!r} is declared twice in {entry.group}", hint="give each its own name")
        seen[entry.group, entry.name] = entry
        yield from _judge_entry(plugin, entry)
    yield from _requirements(plugin)
    yield from missing_packages(plugin)
    yield from _startup(plugin)
    ours = [entry for entry in declared.entries if entry.group in GROUPS or nearest_group(entry.group)]
    if declared.source and not ours and not declared.problems:
        message = f"{declared.name or 'the project'} declares no entry point that SGLang reads"
        yield found(
            "SP803", declared.source, None, declared.name or declared.source, message, hint="declare one, or give a plugin's folder"
        )


def _say(entry: DeclaredEntry, code: str, message: str, **more: Any) -> Finding:
    return found(code, entry.path, entry.line, entry.name, message, kind="entry_point", group=entry.group, value=entry.value, **more)


def _judge_entry(plugin: Plugin, entry: DeclaredEntry) -> Iterator[Finding]:
    name = entry.name.lower()
    if (entry.group == "sglang.multimodal_gen.platforms" and name in _RESERVED) or (
        entry.group == "sglang.serve_backends" and name in _RESERVED_BACKENDS
    ):
        yield _say(entry, "SP206", f"{entry.name!r} is a name that SGLang keeps for itself", hint="give the entry point another name")
    match = _VALUE.match(entry.value)
    if match is None or match["attribute"] is None:
        good = entry.value.replace("-", "_").replace("/", ".").removesuffix(".py")
        hint = f"did you mean {good!r}?" if _VALUE.match(good) and good != entry.value and ":" in good else "write module:function"
        yield _say(entry, "SP203", f"{entry.value!r} is not module:function", hint=hint)
        return
    module, attribute = match["module"], match["attribute"]
    top = module.partition(".")[0]
    own = {name.partition(".")[0] for name in plugin.project.modules}
    if top not in own:
        meant = _misspelt(plugin, top, own)
        if meant is not None:
            hint = f"did you mean {meant}{module[len(top) :]}:{attribute}?"
            yield _say(entry, "SP208", f"there is no module {module} in the source", hint=hint)
        return  # generated, compiled, or of another distribution
    facts = plugin.module(module)
    if facts is None:
        near = difflib.get_close_matches(module, plugin.project.modules, n=1)
        hint = f"did you mean {near[0]}?" if near else "correct the module's name, or add the file"
        if not _has_compiled(plugin, module):
            yield _say(entry, "SP208", f"there is no module {module} in the source", hint=hint)
        return
    if (
        facts.error is not None
        or attribute.partition(".")[0] in facts.scope.names
        or "__getattr__" in facts.scope.names
        or _has_star(facts)
    ):
        yield from _callback(plugin, entry, f"{module}.{attribute}")
        return
    near = difflib.get_close_matches(attribute, facts.scope.names, n=1)
    hint = f"did you mean {module}:{near[0]}?" if near else "name a function of the module"
    yield _say(entry, "SP208", f"{module} has no {attribute}", hint=hint)


def _misspelt(plugin: Plugin, top: str, own: set[str]) -> str | None:
    """The project's own package that a name means, where nothing else can: no requirement, no compiled or mapped module, no part of it."""
    near = difflib.get_close_matches(top, own, n=1, cutoff=0.75)
    if not near or near[0].startswith(top) or top.startswith(near[0]) or _has_compiled(plugin, top):
        return None
    required = {re.split(r"[^\w.-]", text.strip(), maxsplit=1)[0].lower() for text, _ in plugin.project.declared.requirements}
    if top.lower() in {re.sub(r"[-.]", "_", name) for name in required}:
        return None
    for name in ("pyproject.toml", "setup.cfg", "setup.py"):
        path = plugin.project.root / name
        text = path.read_text(errors="replace") if path.is_file() else ""
        if re.search(r"package[-_]dir|py[-_]modules|ext[-_]modules|module-name", text):
            return None  # its names are not those of its files
    return near[0]


def _has_star(facts: Any) -> bool:
    return any(item.name == "*" for item in facts.imports)


def _has_compiled(plugin: Plugin, module: str) -> bool:
    relative = module.replace(".", "/")
    return any(list(root.glob(f"{relative}.*")) or (root / relative).is_dir() for root in plugin.project.roots)


def _callback(plugin: Plugin, entry: DeclaredEntry, dotted: str) -> Iterator[Finding]:
    """The callback's own shape: no arguments, no coroutine, a class name or None."""
    definition = plugin.defined(dotted)
    if definition is None or entry.group == "sglang.serve_backends":
        return
    node, scope = definition
    file, title = scope.file, f"{entry.name} = {entry.value}"
    say: dict[str, Any] = {"kind": "entry_point", "group": entry.group, "value": entry.value}
    if isinstance(node, ast.ClassDef):
        yield found("SP307", file, node, entry.name, f"{title} is a class; SGLang calls a function without arguments", **say)
        return
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    required = [arg.arg for arg in plain[: len(plain) - len(args.defaults)]]
    required += [arg.arg for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default is None]
    if required and not node.decorator_list:
        message = f"{node.name}() needs {', '.join(required)}; SGLang calls it without arguments"
        yield found("SP307", file, node, entry.name, message, hint=f"write def {node.name}()", **say)
    if isinstance(node, ast.AsyncFunctionDef) or yields(node):
        kind = "async" if isinstance(node, ast.AsyncFunctionDef) else "a generator"
        yield found(
            "SP307", file, node, entry.name, f"{node.name}() is {kind}: its body never runs", hint="write it as a plain function", **say
        )
        return
    if entry.group in PLATFORM_GROUPS:
        yield from _returned(plugin, entry, node, scope)


def _returned(plugin: Plugin, entry: DeclaredEntry, node: Any, scope: Any) -> Iterator[Finding]:
    inner = plugin.scope_of(node) or scope
    returns = [part for part in ast.walk(node) if isinstance(part, ast.Return)]
    say: dict[str, Any] = {"kind": "entry_point", "group": entry.group, "value": entry.value}
    for part in returns:
        if part.value is None:
            continue
        wrong = _not_a_name(part.value)
        definition = plugin.definition(part.value, inner) if not wrong else None
        if definition is not None and isinstance(definition[0], ast.ClassDef):
            wrong = f"the class {definition[0].name}"
        if wrong:
            message = f"{node.name}() returns {wrong}; SGLang takes a class name as text, or None"
            yield found("SP308", scope.file, part, entry.name, message, hint='return "package.module:Class"', **say)
            continue
        for name in class_names(part.value, inner):
            yield from _class_is_there(plugin, entry, (node, scope), part, name)
    if node.body and not returns and not any(isinstance(part, ast.Raise) for part in node.body):
        message = f"{node.name}() never returns a class name, so its platform is never active"
        yield found("SP308", scope.file, node, entry.name, message, hint='return "package.module:Class" where the hardware is there', **say)


def _not_a_name(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and not isinstance(value.value, (str, type(None))):
        return repr(value.value)
    if isinstance(value, ast.Constant) and value.value == "":
        return "an empty text"
    kinds = {ast.Tuple: "a tuple", ast.List: "a list", ast.Dict: "a dictionary"}
    return kinds.get(type(value), "")


def class_names(value: ast.expr, scope: Any) -> list[str]:
    """Return the texts that an activation's return value may be, as far as they are constant."""
    if isinstance(value, ast.IfExp):
        return [*class_names(value.body, scope), *class_names(value.orelse, scope)]
    try:
        found_value = fold(value, lambda name: _constant(name, scope))
    except Unfoldable:
        return []
    return [found_value] if isinstance(found_value, str) and found_value else []


def _constant(name: str, scope: Any) -> Any:
    bounds = scope.lookup(name)
    if name == "__name__" and scope.file.module:
        return scope.file.module
    if len(bounds) == 1 and bounds[0].what == "value" and isinstance(bounds[0].node, ast.expr):
        return fold(bounds[0].node, lambda other: _constant(other, bounds[0].scope))
    raise KeyError(name)


def _class_is_there(plugin: Plugin, entry: DeclaredEntry, callback: tuple[Any, Any], part: ast.Return, name: str) -> Iterator[Finding]:
    node, scope = callback
    say: dict[str, Any] = {"kind": "entry_point", "group": entry.group, "value": entry.value}
    dotted = name.replace(":", ".")
    module = name.partition(":")[0] if ":" in name else name.rpartition(".")[0]
    if "." not in dotted:
        message = f"{node.name}() returns {name!r}, which names no module"
        yield found("SP308", scope.file, part, entry.name, message, hint='return "package.module:Class"', **say)
        return
    own = {known.partition(".")[0] for known in plugin.project.modules}
    if dotted.partition(".")[0] not in own or plugin.defined(dotted) is not None:
        return
    place = plugin.locate(dotted)
    if place is None or not place[1]:
        return
    facts, rest = place
    if (
        facts.error is None
        and rest.partition(".")[0] not in facts.scope.names
        and not _has_star(facts)
        and "__getattr__" not in facts.scope.names
    ):
        near = difflib.get_close_matches(rest, facts.scope.names, n=1)
        hint = f"did you mean {facts.file.module}:{near[0]}?" if near else f"define {rest} in {module}"
        message = f"{node.name}() returns {name!r}, and {facts.file.module} has no {rest}"
        yield found("SP401", scope.file, part, entry.name, message, hint=hint, **say)


def unread_groups(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP005: a group that this release does not know yet."""
    for entry in plugin.project.declared.entries:
        reader = _READER.get(entry.group)
        if reader is not None and not release.has_module(reader):
            message = f"the group {entry.group!r} is not read: the plugin does nothing there"
            yield _say(entry, "SP005", message, hint="require a SGLang that reads it", level=Level.WARNING)


def _requirements(plugin: Plugin) -> Iterator[Finding]:
    declared = plugin.project.declared
    for text, line in declared.requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.name.lower() not in {"torch", "sglang"} or (requirement.marker is not None and "extra" in str(requirement.marker)):
            continue
        pins = [part for part in requirement.specifier if part.operator in {"==", "==="} and not part.version.endswith(".*")]
        if pins or requirement.url:
            what = f"{requirement.name}{pins[0]}" if pins else text
            message = f"the requirement {what} makes pip replace the {requirement.name} that the vendor or the user has installed"
            hint = f"require a range, or move {requirement.name} into an extra"
            path = declared.source if not declared.source.endswith(".dist-info") else f"{declared.source}/METADATA"
            yield found("SP802", path, line, requirement.name, message, kind="dist", hint=hint)


def _startup(plugin: Plugin) -> Iterator[Finding]:
    root = plugin.project.root
    for path in sorted({*root.glob("*.pth"), *root.glob("src/*.pth"), *root.glob("*/*.pth")}):
        if path.name.startswith("__editable__") or "distutils-precedence" in path.name or ".venv" in path.parts:
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if line.startswith(("import ", "import\t")):
                message = f"{path.name} runs code in every Python process of the environment"
                shown = path.relative_to(root).as_posix()
                yield found("SP213", shown, number, path.name, message, hint="move it into the plugin's callback")
                break
