"""The shape of a hook function: its parameters and body, from the target's real signature and the hook's type (S9.1). Text in, text out."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sglang_plug.contract.model import Parameter, Symbol

HookType = Literal["before", "after", "around", "replace"]

_RETURNS = {
    "before": "tuple[tuple[Any, ...], dict[str, Any]] | None",
    "after": "Any",
    "around": "Any",
    "replace": "Any",
}


@dataclass(frozen=True)
class Shape:
    """A hook function in text.

    Attributes:
        header: the `def` line, with its colon.
        summary: the docstring's first sentence.
        body: the statements, one a line, without indentation of the function.
        abstract: names of `collections.abc` and `typing` that the annotations use.
    """

    header: str
    summary: str
    body: tuple[str, ...]
    abstract: tuple[str, ...]


def shape(symbol: Symbol, kind: HookType, name: str) -> Shape:
    """Return the function `name` that hooks `symbol` as `kind`, and that changes nothing until it is edited."""
    yields = symbol.is_generator and not any("contextmanager" in decorator for decorator in symbol.decorators)
    parameters = symbol.parameters or ()
    known = symbol.parameters is not None
    if kind == "replace":
        arguments = _whole(symbol) if known else "*args: Any, **kwargs: Any"
        passed = ""
    else:
        arguments, passed = _open(parameters)
    lead = {"after": _free("result", parameters), "around": _free("original", parameters)}.get(kind, "")
    lead_type = _lead_type(symbol, kind, yields=yields)
    whole = ", ".join(filter(None, [f"{lead}: {lead_type}" if lead else "", arguments]))
    is_async = symbol.is_async and kind != "before"
    returns = _return_type(symbol, kind, yields=yields)
    header = f"{'async ' if is_async else ''}def {name}({whole}) -> {returns}:"
    body = _body(kind, lead, passed, is_async=symbol.is_async, yields=yields, label=symbol.name.rpartition(".")[2])
    text = f"{header}"
    abstract = tuple(word for word in ("AsyncIterator", "Awaitable", "Callable", "Iterator") if word in text)
    return Shape(header, _SUMMARIES[kind].format(name=symbol.name.rpartition(".")[2]), body, abstract)


_SUMMARIES = {
    "before": "See the arguments of `{name}` before it runs, and change them where needed.",
    "after": "See what `{name}` returned, and change it where needed.",
    "around": "Run around `{name}`.",
    "replace": "Stand in for `{name}`.",
}


def _body(kind: HookType, lead: str, passed: str, *, is_async: bool, yields: bool, label: str) -> tuple[str, ...]:
    if kind == "before":
        return (
            f"# To change the arguments, return them: `return ({passed_tuple(passed)}), {passed_dict(passed)}`.",
            "return None",
        )
    if kind == "replace":
        return (f'raise NotImplementedError("write here what {label} does instead")',)
    if kind == "after":
        return _after(lead, is_async=is_async, yields=yields)
    call = f"{lead}({passed})"
    if yields and is_async:
        return (f"async for item in {call}:", "    yield item")
    if yields:
        return (f"yield from {call}",)
    return (f"result = {'await ' if is_async else ''}{call}", "return result")


def _after(lead: str, *, is_async: bool, yields: bool) -> tuple[str, ...]:
    if yields and is_async:
        return (f"async for item in {lead}:", "    yield item")
    if yields:
        return (f"yield from {lead}",)
    if is_async:
        return ("# The call returned a coroutine; whoever made the call awaits this one instead.", f"value = await {lead}", "return value")
    return ("# None keeps the result; anything else takes its place.", "return None")


def passed_tuple(passed: str) -> str:
    """The positional part of a call's arguments, as the inside of a tuple."""
    parts = [part for part in passed.split(", ") if part and "=" not in part and not part.startswith("**")]
    return ", ".join(parts) + ("," if len(parts) == 1 else "")


def passed_dict(passed: str) -> str:
    """The keyword part of a call's arguments, as a dict."""
    named = [part.partition("=")[0] for part in passed.split(", ") if "=" in part]
    return "kwargs" if not named else "{" + ", ".join([*(f'"{name}": {name}' for name in named), "**kwargs"]) + "}"


def _open(parameters: tuple[Parameter, ...]) -> tuple[str, str]:
    """Parameters that name what every call gives and take the rest as it comes, and the arguments that pass them on.

    A later release that adds an optional parameter finds the hook still fitting.
    """
    first = [p.name for p in parameters if p.kind in {"positional-only", "positional"} and p.required]
    later = [p.name for p in parameters if p.kind == "keyword-only" and p.required]
    rest, options = _free("args", parameters, of=("var-positional",)), _free("kwargs", parameters, of=("var-keyword",))
    arguments = [*(f"{name}: Any" for name in first), f"*{rest}: Any", *(f"{name}: Any" for name in later), f"**{options}: Any"]
    passed = [*first, f"*{rest}", *(f"{name}={name}" for name in later), f"**{options}"]
    return ", ".join(arguments), ", ".join(passed)


def _whole(symbol: Symbol) -> str:
    """The target's own parameters, defaults kept where they are plain values."""
    function = ast.parse(f"def f{symbol.signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    args = function.args
    for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, [args.vararg, args.kwarg])]:
        arg.annotation = ast.Name("Any")
    args.defaults = [_plain(default) for default in args.defaults]
    args.kw_defaults = [None if default is None else _plain(default) for default in args.kw_defaults]
    return ast.unparse(ast.fix_missing_locations(args))


def _plain(default: ast.expr) -> ast.expr:
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return ast.Constant(...)
    return default if isinstance(value, str | bytes | int | float | bool | tuple | type(None)) else ast.Constant(...)


def _lead_type(symbol: Symbol, kind: HookType, *, yields: bool) -> str:
    if kind == "around":
        return "Callable[..., Any]"
    if symbol.is_async:
        return "AsyncIterator[Any]" if yields else "Awaitable[Any]"
    return "Iterator[Any]" if yields else "Any"


def _return_type(symbol: Symbol, kind: HookType, *, yields: bool) -> str:
    if yields and kind != "before":
        return "AsyncIterator[Any]" if symbol.is_async else "Iterator[Any]"
    return _RETURNS[kind]


def _free(name: str, parameters: tuple[Parameter, ...], *, of: tuple[str, ...] = ()) -> str:
    """Return `name`, or a variant that no parameter of the target has (parameters of the kinds `of` may share it)."""
    taken = {parameter.name for parameter in parameters if parameter.kind not in of}
    while name in taken:
        name += "_"
    return name
