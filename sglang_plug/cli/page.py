"""How a help page looks: options under the headings of their `rich_help_panel`, in one column, at any width. Owns no option."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Rows = Sequence[tuple[str, str]]

WIDEST_NAME = 30
NARROWEST_PAGE = 30
WHOLE = "\N{NON-BREAKING HYPHEN}"
#: What typer adds about a number's range, which the error says in words, and about what the usage line shows already.
NOISE = re.compile(r"  \[(?:x>=[\d.]+|required)\]$|; x>=[\d.]+(?=\]$)")


class Page(TyperCommand):
    """A command whose help page is grouped and whose usage line names each argument once."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = (param for param in self.get_params(ctx) if param.param_type_name == "argument")
        return [self.options_metavar or "", *map(_usage, arguments)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _adapt(formatter)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write(formatter, _groups(self, ctx))


class GroupPage(TyperGroup):
    """The same for a command of commands, whose lines are never cut."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _adapt(formatter)
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, (command.help or "").strip().split("\n")[0]) for name, command in commands if command and not command.hidden]
        _write(formatter, {"Commands": rows} | _groups(self, ctx))


def _adapt(formatter: Any) -> None:
    """Let a page be as narrow as the terminal (typer stops at 50 columns), and break no word at its hyphen."""
    formatter.width = min(formatter.width, max(shutil.get_terminal_size().columns - 2, NARROWEST_PAGE))
    write, write_text = formatter.write, formatter.write_text
    formatter.write = lambda text: write(text.replace(WHOLE, "-"))
    formatter.write_text = lambda text: write_text(text.replace("-", WHOLE))


def _usage(argument: Any) -> str:
    name = argument.display_name_raw + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _groups(command: Any, ctx: Any) -> dict[str, list[tuple[str, str]]]:
    """Return the rows of a page by heading: arguments, the groups in the order in which they are first met, and the rest."""
    groups: dict[str, list[tuple[str, str]]] = {}
    rest = []
    for param in command.get_params(ctx):
        if (record := param.get_help_record(ctx)) is None:
            continue
        name, text = record[0], NOISE.sub("", record[1]).replace("  [", " [")
        if param.param_type_name == "argument":
            shown = name if param.type_descriptor.is_choice else param.display_name_raw
            groups.setdefault("Arguments", []).append((shown, text))
        elif param.rich_help_panel is None:
            rest.append((name, text))
        else:
            groups.setdefault(param.rich_help_panel, []).append((name, text))
    return groups | {"Other" if groups else "Options": rest}


def _write(formatter: Any, groups: Mapping[str, Rows]) -> None:
    longest = max(len(name) for rows in groups.values() for name, _ in rows)
    column = min(WIDEST_NAME, formatter.width * 2 // 5, longest)
    for title, rows in groups.items():
        with formatter.section(title):
            formatter.write_dl([(name.ljust(column), text.replace("-", WHOLE)) for name, text in rows], col_max=column)
