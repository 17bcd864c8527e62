"""A generated hook function fits its target: as it comes, the target behaves under it as without it."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import types
from typing import Any

import pytest

from sglang_plug.contract import catalogue
from sglang_plug.contract.model import CALLABLE, Kind, Symbol
from sglang_plug.core.hooks import HookRegistry, HookType
from sglang_plug.scaffold.shape import WIDTH, shape

KINDS = ("before", "after", "around")


class Target:
    """One method of every kind, as SGLang has them."""

    def plain(self, batch, tensors=None, *, key, flag=True):
        return ("plain", batch, tensors, key, flag)

    def bare(self):
        return "bare"

    def positional(self, a, b, /, c=3):
        return (a, b, c)

    def many(self, *items, **named):
        return (items, named)

    def clashing(self, original, result, args=None, **kwargs):
        return (original, result, args, kwargs)

    @classmethod
    def of_class(cls, x):
        return (cls.__name__, x)

    @staticmethod
    def static(x, y=2):
        return (x, y)

    async def coroutine(self, x):
        return ("coroutine", x)

    def generator(self, n):
        yield from range(n)

    async def stream(self, n, start=0):
        for i in range(start, n):
            yield i

    @contextlib.contextmanager
    def context(self, x):
        yield x

    @contextlib.asynccontextmanager
    async def async_context(self, x):
        yield x


CALLS = {
    "plain": (((1,), {"key": 2}), ((1, 5), {"key": 2, "flag": False}), ((), {"batch": 1, "key": 3})),
    "bare": (((), {}),),
    "positional": (((1, 2), {}), ((1, 2, 9), {})),
    "many": (((), {}), ((1, 2), {"z": 3})),
    "clashing": (((1, 2), {}), ((1, 2, 3), {"more": 4}), ((), {"original": 1, "result": 2})),
    "of_class": (((1,), {}),),
    "static": (((1,), {}), ((1, 3), {})),
    "coroutine": (((1,), {}),),
    "generator": (((3,), {}),),
    "stream": (((3,), {}), ((4,), {"start": 2})),
    "context": (((7,), {}),),
    "async_context": (((7,), {}),),
}


def symbol(name: str) -> Symbol:
    """Describe a method of `Target` as the catalogue does."""
    raw = vars(Target)[name]
    function = getattr(raw, "__func__", raw)
    inner = inspect.unwrap(function)
    kind = {classmethod: Kind.CLASSMETHOD, staticmethod: Kind.STATICMETHOD}.get(type(raw), Kind.METHOD)
    return Symbol(
        f"pkg.Target.{name}",
        kind,
        f"pkg.Target.{name}",
        signature=str(inspect.signature(inner)),
        is_async=inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner),
        is_generator=inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner),
        decorators=() if inner is function else ("contextlib.asynccontextmanager" if "async" in name else "contextlib.contextmanager",),
    )


def made(target: Symbol, kind: str) -> Any:
    """Return the generated function, compiled."""
    found = shape(target, kind, "hook")
    source = "\n".join([*found.header, f'    """{found.summary}"""', *(f"    {line}" for line in found.body)])
    module = types.ModuleType("made")
    header = "from __future__ import annotations\n"
    exec(compile(header + source, "made", "exec"), vars(module))
    return module.hook


def settled(value: Any) -> Any:
    """Return what a call comes to: awaited, drained, or entered."""
    if inspect.iscoroutine(value):
        return asyncio.run(value)
    if inspect.isasyncgen(value):

        async def drain() -> list[Any]:
            return [item async for item in value]

        return asyncio.run(drain())
    if inspect.isgenerator(value):
        return list(value)
    if isinstance(value, contextlib.AbstractAsyncContextManager):

        async def enter() -> tuple[str, Any]:
            async with value as entered:
                return ("entered", entered)

        return asyncio.run(enter())
    if isinstance(value, contextlib.AbstractContextManager):
        with value as entered:
            return ("entered", entered)
    return value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_a_fresh_hook_changes_nothing(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = type("Target", (Target,), dict(vars(Target)))
    monkeypatch.setitem(globals(), "Hooked", own)
    plain = [settled(getattr(own(), name)(*args, **kwargs)) for args, kwargs in CALLS[name]]
    registry = HookRegistry()
    registry.register(f"{__name__}.Hooked.{name}", made(symbol(name), kind), HookType(kind))
    registry.apply()
    assert not registry.failures
    hooked = [settled(getattr(own(), name)(*args, **kwargs)) for args, kwargs in CALLS[name]]
    registry.revert()
    assert hooked == plain


@pytest.mark.parametrize("name", CALLS)
def test_a_replacement_takes_the_same_calls(name: str) -> None:
    function = made(symbol(name), "replace")
    first = () if name == "static" else (Target(),)
    for args, kwargs in CALLS[name]:
        inspect.signature(function).bind(*first, *args, **kwargs)
        with pytest.raises(NotImplementedError, match=name):
            settled(function(*first, *args, **kwargs))


@pytest.mark.parametrize("name", CALLS)
def test_the_arguments_may_be_returned_as_the_comment_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A BEFORE hook's comment shows the statement that hands the arguments on; taken by its word, it changes nothing."""
    found = shape(symbol(name), "before", "hook")
    advice = found.body[0].partition("`")[2].partition("`")[0]
    monkeypatch.setattr(f"{__name__}.shape", lambda *_: type(found)(found.header, found.summary, (advice,), ()))
    own = type("Target", (Target,), dict(vars(Target)))
    monkeypatch.setitem(globals(), "Hooked", own)
    plain = [settled(getattr(own(), name)(*args, **kwargs)) for args, kwargs in CALLS[name]]
    registry = HookRegistry()
    registry.register(f"{__name__}.Hooked.{name}", made(symbol(name), "before"), HookType.BEFORE)
    registry.apply()
    hooked = [settled(getattr(own(), name)(*args, **kwargs)) for args, kwargs in CALLS[name]]
    registry.revert()
    assert hooked == plain


def test_every_sort_of_target_in_sglang_gets_a_function_that_compiles() -> None:
    release = catalogue.load("0.5.23")
    seen: set[tuple[Any, ...]] = set()
    for module in release.modules:
        if not module.startswith(("sglang.srt.managers.", "sglang.multimodal_gen.runtime.managers.", "sglang.srt.model_executor.")):
            continue
        for name, _ in release.walk(modules=(module,)):
            found = release.find(name)
            if found is None or found.kind not in CALLABLE or found.parameters is None:
                continue
            sort = (found.kind, found.is_async, found.is_generator, tuple((p.kind, p.required) for p in found.parameters))
            if sort in seen:
                continue
            seen.add(sort)
            for kind in (*KINDS, "replace"):
                text = shape(found, kind, "hook")
                ast.parse("\n".join([*text.header, *(f"    {line}" for line in text.body)]))
                assert all(len(line) <= WIDTH for line in text.header)
    assert len(seen) > 100
