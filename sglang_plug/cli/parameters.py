"""Reads plain option values (texts, numbers, choices, paths) without pydantic, whose import costs more than many a command. Owns no option.

typer builds a pydantic adapter for every parameter it reads. Types other than the plain ones keep that.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

import typer


def lighten(command: Any) -> Any:
    """Return the command, its plain parameters (`--help` among them) read by this module."""
    for parameter in command.params:
        _lighten_parameter(parameter)
    make_help = command.get_help_option
    command.get_help_option = lambda ctx: _lighten_parameter(make_help(ctx))
    for inner in getattr(command, "commands", {}).values():
        lighten(inner)
    return command


def _lighten_parameter(parameter: Any) -> Any:
    descriptor = getattr(parameter, "type_descriptor", None)
    annotation = getattr(descriptor, "annotation", None)
    if hasattr(parameter, "get_runtime_param") and is_plain(annotation) and not _looks_at_files(descriptor):
        reader = PlainReader(annotation)
        parameter.get_runtime_param = lambda: reader
    return parameter


def _looks_at_files(descriptor: Any) -> bool:
    """Tell whether a parameter wants more of a path than its text."""
    info = getattr(descriptor, "parameter_info", None)
    wishes = ("exists", "writable", "resolve_path", "allow_dash", "path_type")
    return any(getattr(info, name, None) for name in wishes) or not (getattr(info, "file_okay", True) and getattr(info, "dir_okay", True))


def is_plain(annotation: Any) -> bool:
    """Tell whether values of this type are read here: str, int, float, bool, Path, an Enum of texts, or a list of one of them."""
    if get_origin(annotation) is list:
        (inner,) = get_args(annotation)
        return get_origin(inner) is None and is_plain(inner)
    if not isinstance(annotation, type):
        return False
    return annotation in {str, int, float, bool, Path} or issubclass(annotation, Enum)


class PlainReader:
    """Turns the texts of the command line into values of one plain type."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a parameter.

        Raises:
            typer.BadParameter: the text is not of that type, or out of the parameter's range.
        """
        if value is None:
            return [] if param.multiple or param.nargs == -1 else None
        if get_origin(self.annotation) is list:
            (inner,) = get_args(self.annotation)
            return [_read(inner, item, param, ctx) for item in value]
        return _read(self.annotation, value, param, ctx)


def _read(kind: Any, value: Any, param: Any, ctx: Any) -> Any:
    if isinstance(value, kind):
        return value
    if issubclass(kind, Enum):
        return _choose(kind, value, param, ctx)
    try:
        found = _truth(value) if kind is bool else kind(value)
    except ValueError as exc:
        name = {int: "whole number", float: "number", bool: "yes or no"}.get(kind, kind.__name__)
        raise typer.BadParameter(f"{value!r} is not a {name}.", ctx=ctx, param=param) from exc
    info = param.type_descriptor.parameter_info
    if kind in {int, float} and not ((info.min is None or found >= info.min) and (info.max is None or found <= info.max)):
        limits = " and ".join(f"{word} {limit:g}" for word, limit in (("at least", info.min), ("at most", info.max)) if limit is not None)
        raise typer.BadParameter(f"{value!r} is not {limits}.", ctx=ctx, param=param)
    return found


def _choose(kind: type[Enum], value: Any, param: Any, ctx: Any) -> Enum:
    for member in kind:
        if str(value).lower() == str(member.value).lower():
            return member
    import difflib

    words = [str(member.value) for member in kind]
    near = [word for word in words if value and word.startswith(str(value))] or difflib.get_close_matches(str(value), words, n=1)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, words))}.{meant}", ctx=ctx, param=param)


def _truth(value: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if value.lower() not in words:
        raise ValueError(value)
    return words[value.lower()]
