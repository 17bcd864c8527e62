"""Rules over what runs while SGLang selects its platform: the callback, its module, the class's module, and all that they import."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.checks.model import Level
from sglang_plug.checks.rules.callbacks import SAFE
from sglang_plug.checks.source.declarations import PLATFORM_GROUPS, class_names
from sglang_plug.checks.source.found import found
from sglang_plug.checks.source.guards import Tried, not_ruled_out, reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.declared import DeclaredEntry
    from sglang_plug.checks.source.facts import FileFacts, Import
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.contract.catalogue import Release

PACKAGES = {"srt": "sglang.srt.platforms", "diffusion": "sglang.multimodal_gen.runtime.platforms"}


_CLASS_MODULE = "the platform class's module"


class _Selection(NamedTuple):
    """One platform entry point whose selection is examined."""

    plugin: Plugin
    release: Release
    entry: DeclaredEntry
    runtime: str


def judge_activation(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP310–SP312, SP330: imports that close a circle while the platform is being selected."""
    for entry in plugin.project.declared.entries:
        runtime = PLATFORM_GROUPS.get(entry.group)
        if runtime is None or not resolves_on_import(release, runtime):
            continue
        module, _, attribute = entry.value.partition(":")
        facts = plugin.module(module.strip())
        if facts is None or facts.error is not None:
            continue
        definition = plugin.defined(f"{module.strip()}.{attribute.strip()}")
        seen: set[str] = set()
        selection = _Selection(plugin, release, entry, runtime)
        yield from _order(selection, facts, attribute.strip())
        yield from _graph(selection, facts, seen, "the callback's module")
        if definition is not None and isinstance(definition[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _body(selection, definition)
            inner = plugin.scope_of(definition[0])
            for part in ast.walk(definition[0]):
                if isinstance(part, ast.Return) and part.value is not None and inner is not None:
                    for name in class_names(part.value, inner):
                        place = plugin.locate(name.replace(":", "."))
                        if place is not None:
                            yield from _graph(selection, place[0], seen, _CLASS_MODULE)


def _order(selection: _Selection, facts: FileFacts, callback: str) -> Iterator[Finding]:
    """SP312: what the module imports above its callback brings SGLang, which then asks the half-built module for the callback."""
    plugin, release, entry, runtime = selection
    bounds = facts.scope.names.get(callback.partition(".")[0], [])
    first = min((getattr(bound.node, "lineno", 0) for bound in bounds), default=0)
    above = [
        item for item in facts.imports if item.scope.parent is None and item.node.lineno < first and not_ruled_out(item.guards, release)
    ]
    for item in above if runtime == "srt" else []:
        brought = item.dotted if item.dotted.partition(".")[0] == "sglang" else _brings(plugin, item, release, set())
        if brought is None:
            continue
        if brought != "sglang" and _runs(item, release) and selects(release, _module_of(brought, release), runtime):
            continue  # that closes a circle in whatever order: SP310
        way = "" if brought == item.dotted else f", which imports {brought},"
        module = facts.file.module
        message = f"{module} imports {item.dotted}{way} above its callback; a program that imports {module} before sglang falls back"
        say: dict[str, Any] = {"kind": "entry_point", "group": entry.group, "value": entry.value, "runtime": runtime}
        yield found("SP312", facts.file, item.node, entry.name, message,
                    cause="`import sglang` then asks the half-built module for its callback",
                    hint="put the callback into a module of its own that imports nothing of SGLang", **say)  # fmt: skip
        return


def _module_of(dotted: str, release: Release) -> str:
    return dotted if release.has_module(dotted) else dotted.rpartition(".")[0]


def _brings(plugin: Plugin, item: Import, release: Release, seen: set[str]) -> str | None:
    """What of SGLang an import of the project's own leads to, or None."""
    place = plugin.locate(item.dotted)
    key = place[0].file.shown if place is not None else ""
    if place is None or key in seen:
        return None
    seen.add(key)
    for inner in place[0].imports:
        if inner.scope.parent is None and not_ruled_out(inner.guards, release):
            brought = inner.dotted if inner.dotted.partition(".")[0] == "sglang" else _brings(plugin, inner, release, seen)
            if brought is not None:
                return brought
    return None


def resolves_on_import(release: Release, runtime: str) -> bool:
    """True where importing the runtime's inside selects the platform, so that a selection must not import it."""
    if runtime == "diffusion":
        return release.has_module("sglang.multimodal_gen.runtime.platforms.plugins")
    return _reads_current(release, "sglang.srt.utils.common", "srt")


def _reads_current(release: Release, module: str, runtime: str) -> bool:
    """True where a module's own body imports `current_platform`, and so selects the platform."""
    names = release.lookup.module(module)
    row = names.get("current_platform") if names else None
    return row is not None and row.code.startswith("i") and row.text == f"{PACKAGES[runtime]}.current_platform"


def selects(release: Release, module: str, runtime: str) -> str | None:
    """Return the module of SGLang through which importing `module` reads the current platform, or None."""
    cache: dict[tuple[str, str, str], str | None] = _CACHE
    key = (release.version, module, runtime)
    if key not in cache:
        cache[key] = None  # a circle of imports ends here
        cache[key] = _search(release, module, runtime)
    return cache[key]


_CACHE: dict[tuple[str, str, str], str | None] = {}


def _search(release: Release, module: str, runtime: str) -> str | None:
    seen, todo = {module}, [module]
    while todo:
        current = todo.pop()
        if _reads_current(release, current, runtime):
            return current
        for other in _imports_of(release, current):
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return None


def _imports_of(release: Release, module: str) -> Iterator[str]:
    """What a module of SGLang imports when it is imported itself, its packages included."""
    parent = module.rpartition(".")[0]
    if parent and parent != "sglang":
        yield parent
    names = release.lookup.module(module)
    for row in names.rows.values() if names else ():
        imports = row.code[0] == "i" and "z" not in row.code and "." not in row.name
        if row.text.startswith("sglang.") and (imports or row.name.startswith("*")):
            yield row.text if release.has_module(row.text) else row.text.rpartition(".")[0]


def _graph(selection: _Selection, facts: FileFacts, seen: set[str], what: str) -> Iterator[Finding]:
    """The module-level imports of a module, of its packages, and of all that these import in the project."""
    plugin, release, _, _ = selection
    todo = [facts]
    name = facts.file.module or ""
    while name:
        name = name.rpartition(".")[0]
        above = plugin.module(name) if name else None
        if above is not None:
            todo.append(above)
    while todo:
        current = todo.pop()
        key = current.file.module or current.file.shown
        if key in seen or current.error is not None:
            continue
        seen.add(key)
        for item in current.imports:
            if item.scope.parent is not None or not _runs(item, release):
                continue
            if item.dotted.startswith("sglang."):
                where = what if current is facts else f"{key}, which {what} imports,"
                yield from _unsafe(selection, current, item, where, early=what != _CLASS_MODULE)
            else:
                place = plugin.locate(item.dotted)
                if place is not None:
                    todo.append(place[0])


def _runs(item: Import, release: Release) -> bool:
    return reached(item.guards, release) and not any(isinstance(guard, Tried) and guard.catches_imports for guard in item.guards)


def _body(selection: _Selection, definition: Any) -> Iterator[Finding]:
    plugin, release, _, _ = selection
    node, scope = definition
    facts = next((facts for facts in plugin.facts if facts.scope is scope.module), None)
    inner = plugin.scope_of(node)
    if facts is None:
        return
    for item in facts.imports:
        if item.scope is inner and item.dotted.startswith("sglang.") and _runs(item, release):
            yield from _unsafe(selection, facts, item, f"{node.name}()")


def _unsafe(selection: _Selection, facts: FileFacts, item: Import, what: str, *, early: bool = True) -> Iterator[Finding]:
    _, release, entry, runtime = selection
    say: dict[str, Any] = {"kind": "entry_point", "group": entry.group, "value": entry.value, "runtime": runtime}
    if item.dotted == f"{PACKAGES[runtime]}.current_platform":
        message = f"{what} reads current_platform, which it is to decide"
        yield found("SP311", facts.file, item.node, entry.name, message, hint="read it in init_backend() or in a hook", **say)
        return
    module = item.dotted if not item.is_from or release.has_module(item.dotted) else item.dotted.rpartition(".")[0]
    through = selects(release, module, runtime) if release.has_module(module) else None
    if through is None:
        if early and runtime == "srt" and release.has_module(module) and not module.startswith(SAFE):
            message = f"{what} imports {module} while the platform is activated, in every process and before SGLang is ready"
            yield found("SP330", facts.file, item.node, entry.name, message, hint="move the import into init_backend()", **say)
        return
    way = "" if through == module else f", which imports {through}"
    message = f"{what} imports {module} while SGLang is selecting its platform"
    cause = f"{module}{way} reads current_platform at its top: the import closes a circle"
    safe = f"{PACKAGES[runtime]}.interface" + (", sglang.srt.platforms.device_mixin, sglang.srt.environ" if runtime == "srt" else "")
    level = Level.ERROR if runtime == "srt" else Level.WARNING
    yield found(
        "SP310",
        facts.file,
        item.node,
        entry.name,
        message,
        cause=cause,
        hint=f"import it in init_backend(); safe here: {safe}",
        level=level,
        **say,
    )
