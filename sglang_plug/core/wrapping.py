"""How hooks wrap one function. Owns call order and argument passing (S9.1, S9.4); knows no target and patches nothing.

The first registered hook is innermost. Runs of BEFORE and AFTER between two AROUND or REPLACE are fused into one wrapper: a call
through six such hooks costs one extra frame instead of six. Tuples are added rather than unpacked: that alone is a tenth of a call.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from sglang_plug.core.hooktypes import HookType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sglang_plug.core.hooktypes import Hook

    Function = Callable[..., Any]


def chain(original: Any, hooks: Iterable[Hook]) -> Any:
    """Return `original` with `hooks` around it: replacements first, then the others in order, each around the last."""
    ordered = sorted(hooks, key=lambda hook: hook.type is not HookType.REPLACE)
    wrapped = original
    run: list[Hook] = []
    for hook in ordered:
        if hook.type in (HookType.BEFORE, HookType.AFTER):
            run.append(hook)
            continue
        wrapped = _fuse(wrapped, run)
        run = []
        if hook.type is HookType.AROUND:
            wrapped = _around(wrapped, hook.function)
        elif isinstance(hook.function, type):
            wrapped = hook.function  # a class takes the place itself: isinstance and issubclass keep their meaning
        else:
            wrapped = _replace(wrapped, hook.function)
    return _fuse(wrapped, run)


def _fuse(inner: Any, run: list[Hook]) -> Any:
    if not run:
        return inner
    if len(run) == 1:
        return _before(inner, run[0].function) if run[0].type is HookType.BEFORE else _after(inner, run[0].function)
    return _mixed(inner, run)


def _finish(wrapper: Function, inner: Any) -> Function:
    functools.update_wrapper(wrapper, inner)
    wrapper.__wrapped__ = inner  # type: ignore[attr-defined]
    return wrapper


def _replace(inner: Any, hook: Function) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return hook(*args, **kwargs) if kwargs else hook(*args)

    return _finish(wrapper, inner)


def _around(inner: Any, hook: Function) -> Function:
    first = (inner,)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return hook(*first + args, **kwargs) if kwargs else hook(*first + args)

    return _finish(wrapper, inner)


def _before(inner: Any, hook: Function) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            changed = hook(*args, **kwargs)
            if changed is None:
                return inner(*args, **kwargs)
        else:
            changed = hook(*args)
            if changed is None:
                return inner(*args)
        args, kwargs = changed
        return inner(*args, **kwargs)

    return _finish(wrapper, inner)


def _after(inner: Any, hook: Function) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            result = inner(*args, **kwargs)
            changed = hook(*(result,) + args, **kwargs)  # noqa: RUF005 -- the speed named above
        else:
            result = inner(*args)
            changed = hook(*(result,) + args)  # noqa: RUF005
        return result if changed is None else changed

    return _finish(wrapper, inner)


def _mixed(inner: Any, run: list[Hook]) -> Function:
    """Fuse BEFORE and AFTER hooks, each of which sees the arguments as the hooks outside of it left them."""
    outermost_first = run[::-1]
    befores = tuple(hook.function for hook in outermost_first if hook.type is HookType.BEFORE)
    depth = 0
    afters: list[tuple[Function, int]] = []
    for hook in outermost_first:
        if hook.type is HookType.BEFORE:
            depth += 1
        else:
            afters.append((hook.function, depth))
    afters.reverse()

    def rewritten(position: int, args: Any, kwargs: Any, changed: Any) -> Any:
        """Go on from BEFORE number `position`, which answered `changed`; arguments differ by depth from here on."""
        seen = [(args, kwargs)] * (position + 1)
        args, kwargs = _arguments(changed)
        seen.append((args, kwargs))
        for before in befores[position + 1 :]:
            changed = before(*args, **kwargs)
            if changed is not None:
                args, kwargs = _arguments(changed)
            seen.append((args, kwargs))
        result = inner(*args, **kwargs)
        for after, level in afters:
            args, kwargs = seen[level]
            new = after(result, *args, **kwargs)
            if new is not None:
                result = new
        return result

    wrapper = _unrolled(len(befores), len(afters))(inner, rewritten, *befores, *(function for function, _ in afters))
    return _finish(wrapper, inner)


@functools.cache
def _unrolled(befores: int, afters: int) -> Function:
    """Return a maker of wrappers for so many hooks, written out without loops: they would cost a fifth of the call.

    The wrapper leaves to `rewritten` as soon as a BEFORE hook answers; until then all hooks see the same arguments.
    """
    names = [*(f"before{index}" for index in range(befores)), *(f"after{index}" for index in range(afters))]
    body = [f"def make({', '.join(['inner', 'rewritten', *names])}):", "    def wrapper(*args, **kwargs):", "        if kwargs:"]
    for indent, keywords in ((12, ", **kwargs"), (8, "")):
        lines: list[str] = []
        for index in range(befores):
            lines += [f"changed = before{index}(*args{keywords})", "if changed is not None:"]
            lines += [f"    return rewritten({index}, args, kwargs, changed)"]
        lines += [f"result = inner(*args{keywords})", "given = (result,) + args"]
        for index in range(afters):
            lines += [f"changed = after{index}(*given{keywords})", "if changed is not None:", "    result = changed"]
            lines += ["    given = (result,) + args"]
        body += [" " * indent + line for line in (*lines, "return result")]
    body.append("    return wrapper")
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile("\n".join(body), f"<a call through {befores} BEFORE and {afters} AFTER hooks>", "exec"), namespace)  # noqa: S102 -- our own text
    made: Function = namespace["make"]
    return made


def _arguments(changed: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a BEFORE hook's answer as the next function would receive it.

    Raises:
        TypeError, ValueError: it is not `(args, kwargs)`.
    """
    args, kwargs = changed
    return _received(*args, **kwargs)


def _received(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs
