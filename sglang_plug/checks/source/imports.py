"""Rules over imports of SGLang's inside: modules and names that a release does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks.source.found import found
from sglang_plug.checks.source.patches import Written
from sglang_plug.contract.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.facts import Call, FileFacts, Import, Use
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.contract.catalogue import Release


def missing_imports(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP701, SP702: `from sglang.x import name` and `import sglang.x` that fail on a release."""
    for facts in plugin.facts:
        for item in facts.imports:
            if _is_host(item.dotted) and not _guarded(plugin, item, release):
                yield from _judge_import(facts, item, release)
        yield from _dynamic_imports(plugin, facts, release)


def _is_host(dotted: str) -> bool:
    return dotted == "sglang" or dotted.startswith("sglang.")


def _guarded(plugin: Plugin, item: Import | Call, release: Release) -> bool:
    return plugin.caught(item.guards, item.scope, "catches_imports") or not plugin.runs(item.guards, item.scope, release)


def _judge_import(facts: FileFacts, item: Import, release: Release) -> Iterator[Finding]:
    module = item.dotted.rpartition(".")[0] if item.is_from else item.dotted
    if not release.has_module(module):
        symbol = release.find(module)
        if symbol is not None and symbol.kind not in {Kind.FUNCTION, Kind.CLASS, Kind.ATTRIBUTE}:
            return  # reached through something that cannot be looked into
        yield found("SP702", facts.file, item.node, module, f"the module {module} is not there", near=module)
    elif item.is_from and release.find(item.dotted) is None:
        yield found("SP701", facts.file, item.alias or item.node, item.dotted, f"{module} has no {item.name}", near=item.dotted)


def _dynamic_imports(plugin: Plugin, facts: FileFacts, release: Release) -> Iterator[Finding]:
    for call in facts.calls:
        name = call.name.rpartition(".")[2]
        if name not in {"import_module", "__import__"} or not call.node.args or _guarded(plugin, call, release):
            continue
        for module in plugin.values(call.node.args[0], call.scope, release)[:1]:
            if isinstance(module, str) and _is_host(module) and not release.has_module(module):
                message = f"the module {module} is not there"
                yield found("SP702", facts.file, call.node, module, message, near=module)


def missing_attributes(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP703: `module.name` and `Class.member` of imported things that a release does not have."""
    written = Written(plugin, release)
    for facts in plugin.facts:
        for use in facts.uses:
            if plugin.caught(use.guards, use.scope, "catches_attributes") or not plugin.runs(use.guards, use.scope, release):
                continue
            yield from _judge_use(facts, use, written, release)


def _judge_use(facts: FileFacts, use: Use, written: Written, release: Release) -> Iterator[Finding]:
    parts = use.dotted.split(".")
    for length in range(2, len(parts) + 1):
        name = ".".join(parts[:length])
        if written.before(name, use):
            return
        owner, symbol = release.find(".".join(parts[: length - 1])), release.find(name)
        if owner is None or owner.kind not in {Kind.MODULE, Kind.CLASS} or owner.varies:
            return
        if symbol is None:
            if owner.kind is Kind.MODULE and (release.lookup.module(owner.origin) is None or _imports(facts, name)):
                return  # the import is the finding
            what = "class" if owner.kind is Kind.CLASS else "module"
            message = f"the {what} {owner.origin} has no {parts[length - 1]}"
            yield found("SP703", facts.file, use.node, name, message, near=f"{owner.origin}.{parts[length - 1]}")
            return


def _imports(facts: FileFacts, module: str) -> bool:
    return any(item.dotted == module or item.dotted.startswith(f"{module}.") for item in facts.imports)


RULES = (missing_imports, missing_attributes)
