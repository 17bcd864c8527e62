"""Rules over what a platform's callback costs and touches: heavy imports and device calls, which every process of SGLang repeats."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

from sglang_plug.checks.model import Level
from sglang_plug.checks.source.activation import PACKAGES
from sglang_plug.checks.source.declarations import PLATFORM_GROUPS, class_names
from sglang_plug.checks.source.found import found
from sglang_plug.checks.source.guards import not_ruled_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.declared import DeclaredEntry
    from sglang_plug.checks.source.facts import Call, FileFacts, Import
    from sglang_plug.checks.source.plugin import Plugin
    from sglang_plug.checks.source.scopes import Scope
    from sglang_plug.contract.catalogue import Release

# What SGLang has imported before it asks for a platform (sglang/srt/platforms/__init__.py and sglang/srt/utils/common.py; for the
# diffusion runtime sglang/multimodal_gen/runtime/platforms/__init__.py and what its package imports). torch imports a vendor's torch_…
# by itself, through the entry-point group torch.backends.
_LOADED = {"srt": frozenset({"torch", "triton"}), "diffusion": frozenset({"torch", "triton", "torchvision", "transformers"})}
_VENDORS = frozenset({"torch_npu", "torch_mlu", "torch_musa", "torch_gcu", "torch_sdaa", "torch_rbln", "intel_extension_for_pytorch"})
_HEAVY = frozenset(
    {"torch", "triton", "transformers", "torchvision", "torchaudio", "torch_xla", "habana_frameworks", "tensorflow", "jax", "paddle",
     "vllm", "diffusers", "flashinfer", "flash_attn", "deepspeed", "accelerate", "datasets", "ray", "pandas", "scipy", "sklearn",
     "matplotlib", "cupy", "onnxruntime", "tensorrt", "openvino", "mindspore"}
) | _VENDORS  # fmt: skip
_ASKS = frozenset({"is_available", "device_count"})
_STARTS = frozenset(
    {"init", "current_device", "set_device", "get_device_name", "get_device_properties", "get_device_capability", "synchronize",
     "mem_get_info", "current_stream", "default_stream", "Stream", "Event"}
)  # fmt: skip
_MAKERS = frozenset({"zeros", "ones", "empty", "tensor", "full", "rand", "randn", "arange", "zeros_like", "ones_like"})
_HOSTS = ("cpu", "meta")
_NOT_DEVICES = frozenset({"cpu", "backends", "distributed", "nn", "utils", "library", "jit", "fx", "autograd", "profiler"})
_CHEAP = "look for the driver's file or ask its management library"


class _Place(NamedTuple):
    """A body that runs while the platform is selected: a module's, or a function's."""

    facts: FileFacts
    node: ast.AST | None
    words: str
    selects: bool  # it runs for the callback, not for the platform class


def judge_startup(plugin: Plugin, release: Release) -> Iterator[Finding]:
    """SP328, SP331."""
    for entry in plugin.project.declared.entries:
        runtime = PLATFORM_GROUPS.get(entry.group)
        if runtime is None or not release.has_module(PACKAGES[runtime]):
            continue
        told: set[str] = set()
        for place in _places(plugin, entry, release):
            if place.selects:
                yield from _heavy(place, entry, runtime, release, told)
            yield from _devices(place, entry, runtime, release, told)


def _places(plugin: Plugin, entry: DeclaredEntry, release: Release) -> Iterator[_Place]:
    module, _, attribute = (part.strip() for part in entry.value.partition(":"))
    facts = plugin.module(module)
    if facts is None or facts.error is not None:
        return
    seen: set[str] = set()
    yield from _modules(plugin, facts, release, seen, selects=True)
    definition = plugin.defined(f"{module}.{attribute}")
    if definition is None or not isinstance(definition[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    yield from _functions(plugin, definition, release, seen)
    inner = plugin.scope_of(definition[0])
    for part in ast.walk(definition[0]):
        if isinstance(part, ast.Return) and part.value is not None and inner is not None:
            for name in class_names(part.value, inner):
                place = plugin.locate(name.replace(":", "."))
                if place is not None:
                    yield from _modules(plugin, place[0], release, seen, selects=False)


def _modules(plugin: Plugin, facts: FileFacts, release: Release, seen: set[str], *, selects: bool) -> Iterator[_Place]:
    """A module, the packages that it lies in, and all of the project that these import at their top."""
    todo = [(facts, "")]
    name = facts.file.module or ""
    while name := name.rpartition(".")[0]:
        above = plugin.module(name)
        todo += [(above, "")] if above is not None else []
    what = "the callback's module" if selects else "the platform class's module"
    while todo:
        current, through = todo.pop(0)
        key = current.file.module or current.file.shown
        if key in seen or current.error is not None:
            continue
        seen.add(key)
        yield _Place(current, None, f"{key}, which {what} imports," if through else key, selects)
        for item in current.imports:
            if item.scope.parent is None and not_ruled_out(item.guards, release):
                place = plugin.locate(item.dotted)
                todo += [(place[0], key)] if place is not None else []


def _functions(plugin: Plugin, definition: tuple[Any, Scope], release: Release, seen: set[str]) -> Iterator[_Place]:
    """The callback's body and those of the project's functions that it calls, and the modules that these import."""
    node, scope = definition
    facts = plugin.module(scope.file.module or "")
    key = f"{scope.file.shown}:{node.lineno}"
    if facts is None or key in seen:
        return
    seen.add(key)
    yield _Place(facts, node, f"{node.name}()", selects=True)
    for item in facts.imports:
        place = plugin.locate(item.dotted) if item.scope.node is node and not_ruled_out(item.guards, release) else None
        if place is not None:
            yield from _modules(plugin, place[0], release, seen, selects=True)
    for call in facts.calls:
        if call.scope.node is node and not_ruled_out(call.guards, release):
            found_there = plugin.definition(call.node.func, call.scope)
            if found_there is not None and isinstance(found_there[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from _functions(plugin, found_there, release, seen)


def _inside(item: Import | Call, place: _Place) -> bool:
    return item.scope.node is place.node and (place.node is not None or item.scope.function is None)


def _heavy(place: _Place, entry: DeclaredEntry, runtime: str, release: Release, told: set[str]) -> Iterator[Finding]:
    for item in place.facts.imports:
        library = item.dotted.partition(".")[0]
        if library not in _HEAVY or library in told or not _inside(item, place) or not not_ruled_out(item.guards, release):
            continue
        told.add(library)
        level, message, cause = None, f"{place.words} imports {library} while SGLang selects its platform: every process pays for it", None
        if library in _LOADED[runtime] or library in _VENDORS:
            level = Level.INFO
            message = f"{place.words} imports {library} before the platform class is needed"
            cause = "SGLang has imported it by then; whatever else loads the callback waits seconds for it"
        hint = f"{_CHEAP}; the platform class's module may import {library}"
        say: dict[str, Any] = {"kind": "entry_point", "group": entry.group, "value": entry.value, "runtime": runtime}
        yield found("SP331", place.facts.file, item.node, entry.name, message, cause=cause, hint=hint, level=level, library=library, **say)


def _devices(place: _Place, entry: DeclaredEntry, runtime: str, release: Release, told: set[str]) -> Iterator[Finding]:
    for call in place.facts.calls:
        if not _inside(call, place) or not not_ruled_out(call.guards, release):
            continue
        kind = _touches(call)
        if kind is None or f"{kind}{call.name}" in told or (kind == "asks" and not place.selects):
            continue
        told.add(f"{kind}{call.name}")
        say: dict[str, Any] = {"kind": "entry_point", "group": entry.group, "value": entry.value, "runtime": runtime}
        hint = f"{_CHEAP}; use the device from init_backend() on"
        if kind == "starts":
            message = f"{place.words} calls {call.name}() while SGLang selects its platform: every process gets a device context"
            yield found("SP328", place.facts.file, call.node, entry.name, message, hint=hint, **say)
        else:
            message = f"{place.words} asks the device through torch: {call.name}()"
            cause = "it starts the driver in every process, and children forked afterwards cannot use the device; SGLang asks so too"
            yield found("SP328", place.facts.file, call.node, entry.name, message, cause=cause, hint=hint, level=Level.INFO, **say)


def _touches(call: Call) -> str | None:
    """`asks` where a call of torch looks for the device, `starts` where it begins to use it, else None."""
    dotted = call.scope.dotted(call.node.func) or ""
    parts = dotted.split(".")
    if parts[0] != "torch" and parts[0] not in _VENDORS:
        return None
    if parts[0] == "torch" and len(parts) == 2 and parts[1] in _MAKERS:
        device = next((word.value for word in call.node.keywords if word.arg == "device"), None)
        text = device.value if isinstance(device, ast.Constant) else None
        return "starts" if isinstance(text, str) and not text.startswith(_HOSTS) else None
    if len(parts) != 3 or parts[1] in _NOT_DEVICES:
        return None
    return "starts" if parts[2] in _STARTS else "asks" if parts[2] in _ASKS else None
