"""Rules over offline scripts and unreadable files: an engine started at module level is started again by every child that it spawns."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level
from sglang_plug.checks.source.found import found
from sglang_plug.checks.source.judging import Test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.facts import Call, FileFacts
    from sglang_plug.checks.source.plugin import Plugin

_ENGINES = {
    "sglang.Engine": "srt",
    "sglang.srt.entrypoints.engine.Engine": "srt",
    "sglang.Runtime": "srt",
    "sglang.multimodal_gen.DiffGenerator.from_pretrained": "diffusion",
    "sglang.multimodal_gen.DiffGenerator.from_server_args": "diffusion",
    "sglang.multimodal_gen.runtime.entrypoints.diffusion_generator.DiffGenerator.from_pretrained": "diffusion",
}
_SAFE = (
    "sglang.multimodal_gen.envs",
    "sglang.multimodal_gen.runtime.platforms",
    "sglang.multimodal_gen.DiffGenerator",
    "sglang.multimodal_gen",
)


def judge_scripts(plugin: Plugin) -> Iterator[Finding]:
    """SP704, SP705, SP707."""
    for facts in (*plugin.facts, *_imported_too(plugin)):
        if facts.error is not None:
            line = getattr(facts.error, "lineno", None)
            verb = "read" if facts.file.problem else "parsed"
            message = f"{facts.file.shown} cannot be {verb}: {getattr(facts.error, 'msg', None) or facts.error}"
            level = Level.INFO if facts.file.is_large else None
            yield found("SP707", facts.file, line, facts.file.shown, message, level=level)
            continue
        if facts.file.is_test:
            continue
        started = [(call, runtime) for call in facts.calls if (runtime := _starts(call))]
        for call, _ in started:
            if call.scope.function is None and not call.scope.is_class and not _under_main(call):
                message = f"{call.name}() runs at module level: every child process of the engine runs it again"
                yield found("SP704", facts.file, call.node, call.name, message, hint="put it under `if __name__ == '__main__':`")
                break
        is_script = facts.main_guard or facts.file.module is None or any(call.scope.function is None for call, _ in started)
        if is_script and any(runtime == "diffusion" for _, runtime in started):
            yield from _early(facts)


def _imported_too(plugin: Plugin) -> Iterator[FileFacts]:
    """Files that say nothing of SGLang and cannot be parsed, in the packages that entry points lead to; templates lie in no package."""
    tops = {entry.value.strip().partition(":")[0].partition(".")[0] for entry in plugin.project.declared.entries}
    for name, file in plugin.project.modules.items():
        parents = name.split(".")[:-1]
        if name in plugin.by_module or file.is_test or name.partition(".")[0] not in tops:
            continue
        if all(".".join(parents[: length + 1]) in plugin.project.modules for length in range(len(parents))):
            facts = plugin.module(name)
            if facts is not None and facts.error is not None:
                yield facts


def _starts(call: Call) -> str | None:
    dotted = call.scope.dotted(call.node.func)
    return _ENGINES.get(dotted) if dotted else None


def _under_main(call: Call) -> bool:
    return any(isinstance(guard, Test) and "__name__" in ast.dump(guard.test) for guard in call.guards)


def _early(facts: FileFacts) -> Iterator[Finding]:
    for item in facts.imports:
        if item.scope.parent is not None or not item.dotted.startswith("sglang.multimodal_gen"):
            continue
        if any(isinstance(guard, Test) and "__name__" in ast.dump(guard.test) for guard in item.guards):
            continue
        if item.dotted in _SAFE or item.dotted.startswith(tuple(f"{name}." for name in _SAFE[:2])):
            continue
        message = f"{item.dotted} is imported at module level, so every spawned worker imports it before its hooks are applied"
        hint = "import it under the __main__ guard; DiffGenerator, envs and the platform package are safe above it"
        yield found("SP705", facts.file, item.node, item.dotted, message, hint=hint)
