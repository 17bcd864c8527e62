"""Rules over hook targets: whether each is there on a release, is the kind of thing that can be hooked, and is ever called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from sglang_plug.checks.model import Level
from sglang_plug.checks.source.found import found
from sglang_plug.contract import peculiarities
from sglang_plug.contract.constants import is_constant
from sglang_plug.contract.hookable import misspelt
from sglang_plug.contract.model import CALLABLE, Kind, Presence
from sglang_plug.contract.signatures import yields
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.registrations import Registration
    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import Symbol

GOES_ON = "SGLang logs that and goes on without the hook"
_LOSING = {
    "lru_cache": "cache_clear, cache_info",
    "cache": "cache_clear, cache_info",
    "jit": "the launch syntax kernel[grid]",
    "autotune": "kernel[grid]",
}


def judge_target(hook: Registration, release: Release) -> Iterator[Finding]:
    """SP501, SP503–SP511, SP517, SP526, SP531: one hook's target; SP532 where the call does not get so far."""
    if hook.mistake is not None:
        message, cause, hint = hook.mistake
        yield _say(hook, "SP532", (hook.target or hook.target_text).replace(":", "."), message, cause=cause, hint=hint)
        return
    if hook.target is None:
        yield _say(hook, "SP706", hook.target_text, f"this hook's target cannot be read from the source: {hook.target_text}")
        return
    if problem := misspelt(hook.target, release):
        yield _say(hook, "SP503", hook.target, f"the target {hook.target!r} is not read as you mean it", cause=problem[0], hint=problem[1])
        return
    if not hook.target.replace(":", ".").startswith("sglang."):
        return
    symbol = release.find(hook.target)
    if symbol is None or symbol.kind is Kind.FIELD:
        if not hook.guarded:
            yield _missing(hook, hook.target, symbol, release)
        return
    if symbol.presence is not Presence.SURE or symbol.kind is Kind.UNKNOWN:
        return
    yield from _wrong_registry(hook, symbol)
    dead = list(_never_called(hook, symbol, release))
    yield from dead
    if not dead or dead[0].level is not Level.ERROR:
        yield from _kind(hook, symbol, release)


def _say(hook: Registration, code: str, name: str, message: str, **more: object) -> Finding:
    return found(code, hook.facts.file, hook.node, name, message, kind="hook", runtime=hook.runtime, **more)  # type: ignore[arg-type]


def _missing(hook: Registration, target: str, symbol: Symbol | None, release: Release) -> Finding:
    dotted = target.replace(":", ".")
    owner = dotted.rpartition(".")[0]
    if symbol is not None:
        cause = "it is an annotated field: instances have it, the class does not"
    elif release.find(owner) is None:
        first_gone = owner
        while "." in first_gone and release.find(first_gone.rpartition(".")[0]) is None:
            first_gone = first_gone.rpartition(".")[0]
        cause = f"{first_gone} is not there"
    else:
        cause = f"{owner} has no {dotted.rpartition('.')[2]}"
    message = f"the hook's target {dotted} is not there; {GOES_ON}"
    return _say(hook, "SP501", dotted, message, cause=cause, near=dotted, hint="see `sglang-plug contract targets` for what can be hooked")


def _wrong_registry(hook: Registration, symbol: Symbol) -> Iterator[Finding]:
    of_diffusion = symbol.origin.startswith("sglang.multimodal_gen.")
    if of_diffusion and hook.runtime == "srt":
        cause = "diffusion workers apply the hooks of their own registry alone"
        hint = "import HookRegistry from sglang.multimodal_gen.runtime.platforms.plugins, in a plugin of sglang.multimodal_gen.plugins"
        yield _say(hook, "SP517", symbol.name, "a hook on the diffusion runtime is registered with SRT's registry", cause=cause, hint=hint)
    elif hook.runtime == "diffusion" and symbol.origin.startswith("sglang.srt.") and not _is_shared(symbol):
        cause = "SRT processes apply the hooks of their own registry alone"
        hint = "import HookRegistry from sglang.srt.plugins.hook_registry, in a plugin of sglang.srt.plugins"
        yield _say(hook, "SP517", symbol.name, "a hook on SRT is registered with the diffusion runtime's registry", cause=cause, hint=hint)


def _is_shared(symbol: Symbol) -> bool:
    """True for SRT modules that the diffusion runtime runs too."""
    return symbol.origin.startswith(
        ("sglang.srt.layers.", "sglang.srt.utils", "sglang.srt.environ", "sglang.srt.distributed.", "sglang.srt.model_loader")
    )


def _kind(hook: Registration, symbol: Symbol, release: Release) -> Iterator[Finding]:
    name = symbol.name
    if symbol.kind is Kind.PROPERTY:
        hint = "replace the class, or hook the function that the property calls"
        yield _say(hook, "SP506", name, f"{name} is a property: hooked, it becomes a method, which is always true", hint=hint)
    elif is_constant(release, symbol):
        hint = "set it in the plugin's callback instead"
        cause = f"it is assigned {symbol.value}"
        yield _say(hook, "SP507", name, f"{name} is a value: hooked, it becomes a function", cause=cause, hint=hint)
    elif symbol.kind is Kind.MODULE:
        yield _say(hook, "SP507", name, f"{name} is a module: it cannot be hooked", hint="hook a function or class in it")
    elif symbol.kind is Kind.EXTERNAL:
        owner = release.find(name.rpartition(".")[0])
        if owner is not None and owner.kind is Kind.MODULE:  # an inherited method is patched on the named class alone
            cause = f"it is {symbol.origin}; SGLang patches every module of the process that holds the same object"
            yield _say(
                hook, "SP510", name, f"{name} is defined outside SGLang", cause=cause, hint="hook the function of SGLang that calls it"
            )
    elif symbol.kind is Kind.CLASS:
        if hook.type not in {"REPLACE", None}:
            yield _say(
                hook,
                "SP511",
                name,
                f"{name} is a class: it can be hooked with REPLACE alone",
                hint=f"hook {name}.__init__, or replace the class",
            )
    elif symbol.kind in CALLABLE:
        yield from _callable_kind(hook, symbol)


def _callable_kind(hook: Registration, symbol: Symbol) -> Iterator[Finding]:
    name = symbol.name
    if symbol.inherited and symbol.kind in {Kind.CLASSMETHOD, Kind.STATICMETHOD}:
        hint = f"hook {symbol.origin}"
        message = f"{name} is inherited as {a(symbol.kind.value)}: hooked there, it becomes a plain function"
        yield _say(hook, "SP508", name, message, cause=f"it is defined as {symbol.origin}", hint=hint)
    if hook.type != "REPLACE":
        for decorator in symbol.decorators:
            lost = _LOSING.get(decorator.removesuffix("(…)").rpartition(".")[2])
            if lost:
                level = Level.INFO if "cache" in lost else Level.WARNING
                yield _say(
                    hook, "SP509", name, f"{name} loses {lost} when it is hooked", cause=f"it is decorated with @{decorator}", level=level
                )
    awaits, iterates = _kind_of(hook)
    if hook.type == "AFTER" and symbol.is_async and not symbol.is_generator and not awaits:
        hint = "use AROUND with `async def hook(original, *args, **kwargs)` and await original(…)"
        yield _say(hook, "SP504", name, f"{name} is async: an AFTER hook gets the coroutine, not the result", hint=hint, level=Level.ERROR)
    if hook.type == "AFTER" and symbol.yields and not iterates:
        kind = "an async generator" if symbol.is_async else "a generator"
        hint = "use AROUND and yield from original(…)" if not symbol.is_async else "use AROUND with `async for` over original(…)"
        yield _say(hook, "SP505", name, f"{name} is {kind}: an AFTER hook gets the generator, not its values", hint=hint)


def _kind_of(hook: Registration) -> tuple[bool, bool]:
    """Whether the hook is a coroutine function, which can await what it gets, and whether it is a generator, which can run through it."""
    node = hook.hook
    iterates = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and yields(node)
    return isinstance(node, ast.AsyncFunctionDef) and not iterates, iterates


def _never_called(hook: Registration, symbol: Symbol, release: Release) -> Iterator[Finding]:
    for note in peculiarities.of(release, symbol.name, replaces=hook.type == "REPLACE"):
        if note.level == "dead":
            code = "SP531" if note.trap == "struct" else "SP526"
            hint = f"hook {note.instead}" if note.instead else None
            cause = f"SGLang {release.version} {note.text}"
            yield _say(hook, code, symbol.name, f"a hook on {symbol.name} is applied and never called", cause=cause, hint=hint)
            return
        if note.trap == "no-plugins":
            message = f"a hook on {symbol.name} does not run: its process loads no plugins"
            yield _say(hook, "SP526", symbol.name, message, cause=f"SGLang {release.version} {note.text}", level=Level.WARNING)
