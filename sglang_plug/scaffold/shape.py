"""The shape of a hook function: its parameters and body, from the target's real signature and the hook's type (S9.1). Text in, text out."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sglang_plug.contract.model import Parameter, Symbol

HookType = Literal["before", "after", "around", "replace"]

WIDTH = 120  # the line length of generated projects
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
        header: the `def`, with its colon, broken into lines as the formatter breaks it.
        summary: the docstring's first sentence.
        body: the statements, one a line, without indentation of the function.
        imports: names of `collections.abc` that the annotations use.
    """

    header: tuple[str, ...]
    summary: str
    body: tuple[str, ...]
    imports: tuple[str, ...]


def shape(symbol: Symbol, kind: HookType, name: str) -> Shape:
    """Return the function `name` that hooks `symbol` as `kind`, and that changes nothing until it is edited."""
    yields, waits = symbol.yields, symbol.is_async and not symbol.makes_context
    parameters = symbol.parameters or ()
    known = symbol.parameters is not None
    if kind == "replace":
        arguments = _whole(symbol) if known else ["*args: Any", "**kwargs: Any"]
        passed = ""
    else:
        arguments, passed = _open(parameters)
    lead = {"after": _free("result", parameters), "around": _free("original", parameters)}.get(kind, "")
    lead_type = _lead_type(kind, waits=waits, yields=yields)
    is_async = waits and kind != "before"
    returns = _return_type(kind, waits=waits, yields=yields)
    lines = _wrapped(
        f"{'async ' if is_async else ''}def {name}(", [*([f"{lead}: {lead_type}"] if lead else []), *arguments], f") -> {returns}:"
    )
    label = symbol.name.rpartition(".")[2]
    body = _body(kind, lead, passed, is_async=waits, yields=yields, label=label)
    used = "\n".join(lines)
    imports = tuple(word for word in ("AsyncIterator", "Awaitable", "Callable", "Iterator") if re.search(rf"\b{word}\b", used))
    return Shape(lines, _SUMMARIES[kind].format(name=label), body, imports)


def _wrapped(start: str, arguments: list[str], end: str) -> tuple[str, ...]:
    """Break a `def` line as the formatter does: whole, else all parameters on a line of their own, else one a line."""
    inside = ", ".join(arguments)
    if len(f"{start}{inside}{end}") <= WIDTH:
        return (f"{start}{inside}{end}",)
    if len(inside) + 4 <= WIDTH:
        return (start, f"    {inside}", end)
    return (start, *(f"    {argument}," for argument in arguments), end)


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


def _open(parameters: tuple[Parameter, ...]) -> tuple[list[str], str]:
    """Parameters that name what every call gives and take the rest as it comes, and the arguments that pass them on.

    A later release that adds an optional parameter finds the hook still fitting.
    """
    first = [p.name for p in parameters if p.kind in {"positional-only", "positional"} and p.required]
    later = [p.name for p in parameters if p.kind == "keyword-only" and p.required]
    rest, options = _free("args", parameters, of=("var-positional",)), _free("kwargs", parameters, of=("var-keyword",))
    arguments = [*(f"{name}: Any" for name in first), f"*{rest}: Any", *(f"{name}: Any" for name in later), f"**{options}: Any"]
    passed = [*first, f"*{rest}", *(f"{name}={name}" for name in later), f"**{options}"]
    return arguments, ", ".join(passed)


def _whole(symbol: Symbol) -> list[str]:
    """The target's own parameters, defaults kept where they are plain values."""
    function = ast.parse(f"def f{symbol.signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    free = len(plain) - len(args.defaults)
    found = [f"{arg.arg}: Any{_default(args.defaults[index - free]) if index >= free else ''}" for index, arg in enumerate(plain)]
    if args.posonlyargs:
        found.insert(len(args.posonlyargs), "/")
    if args.vararg or args.kwonlyargs:
        found.append(f"*{args.vararg.arg}: Any" if args.vararg else "*")
    found += [f"{arg.arg}: Any{_default(default)}" for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg:
        found.append(f"**{args.kwarg.arg}: Any")
    return found


def _default(default: ast.expr | None) -> str:
    """` = value` for a plain value, ` = ...` for any other, nothing for none."""
    if default is None:
        return ""
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return " = ..."
    return f" = {value!r}" if isinstance(value, str | bytes | int | float | bool | tuple | type(None)) else " = ..."


def _lead_type(kind: HookType, *, waits: bool, yields: bool) -> str:
    if kind == "around":
        return "Callable[..., Any]"
    if waits:
        return "AsyncIterator[Any]" if yields else "Awaitable[Any]"
    return "Iterator[Any]" if yields else "Any"


def _return_type(kind: HookType, *, waits: bool, yields: bool) -> str:
    if yields and kind != "before":
        return "AsyncIterator[Any]" if waits else "Iterator[Any]"
    return _RETURNS[kind]


def _free(name: str, parameters: tuple[Parameter, ...], *, of: tuple[str, ...] = ()) -> str:
    """Return `name`, or a variant that no parameter of the target has (parameters of the kinds `of` may share it)."""
    taken = {parameter.name for parameter in parameters if parameter.kind not in of}
    while name in taken:
        name += "_"
    return name
