"""`sglang-plug completion SHELL`: the completion script, made from the commands themselves."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Annotated, Any, get_args, get_origin

import typer

from sglang_plug.cli.page import Page
from sglang_plug.report.completion import Command, Option, render

app = typer.Typer(rich_markup_mode=None, add_completion=False)


class Shell(StrEnum):
    """Whose language the script is in."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"


#: Options whose values are live: the kind of value, as `sglang-plug __values KIND PREFIX` knows it, or `files`.
OPTION_KINDS = {
    "--allow": "codes",
    "--baseline": "files",
    "--env": "variables",
    "--hook": "targets",
    "--ignore": "codes",
    "--into": "files",
    "--method": "methods",
    "--output": "files",
    "--platform": "platforms",
    "--plugins": "hooks",
    "--python": "files",
    "--record": "files",
    "--select": "codes",
    "--sglang": "releases",
    "--target": "targets",
    "--targets": "targets",
    "--write-baseline": "files",
}
#: The same for a command's positional words; `explain CODE` completes codes.
ARGUMENT_KINDS = {
    "check": "files",
    "contract build": "files",
    "contract diff": "releases",
    "contract show": "releases",
    "contract targets": "targets",
    "doctor": "names",
    "explain": "codes",
    "hooks": "files",
    "serve": "files",
}


@app.command(cls=Page)
def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell to write for.", metavar="SHELL")],
) -> None:
    """Print the completion script of a shell.

    The script completes commands, options and live values: the names of installed plugins (from metadata alone), rule
    codes, SGLang releases and hook targets. It never imports sglang, torch or a plugin.

    Examples:

    \b
      source <(sglang-plug completion bash)   # in ~/.bashrc
      source <(sglang-plug completion zsh)    # in ~/.zshrc, below compinit
      sglang-plug completion fish | source    # in ~/.config/fish/config.fish

    Exit status: 0 printed, 2 wrong usage.
    """
    typer.echo(render(shell, tree()), nl=False)


def tree() -> Command:
    """Return the whole command tree, read off the commands themselves."""
    from sglang_plug.cli.app import COMMANDS
    from sglang_plug.cli.app import app as root

    group: Any = typer.main.get_command(root)
    children = tuple(_describe(group.get_command(None, name), name, entry.help) for name, entry in COMMANDS.items())
    return Command("", "", _options(group), children=children)


def _describe(command: Any, path: str, line: str) -> Command:
    name = path.rpartition(" ")[2]
    children = tuple(
        _describe(child, f"{path} {child_name}", _first_line(child.help))
        for child_name, child in getattr(command, "commands", {}).items()
        if not child.hidden
    )
    words = next((tuple(choices) for p in command.params if p.param_type_name == "argument" and (choices := _choices(p))), ())
    return Command(name, line, _options(command), children, words, ARGUMENT_KINDS.get(path))


def _options(command: Any) -> tuple[Option, ...]:
    options = [
        Option(
            flags=(*param.opts, *param.secondary_opts),
            help=_first_line(param.help),
            takes_value=not (param.is_flag or param.count),
            choices=tuple(_choices(param)),
            kind=next((OPTION_KINDS[flag] for flag in param.opts if flag in OPTION_KINDS), None),
        )
        for param in command.params
        if param.param_type_name == "option" and not param.hidden
    ]
    return (*options, Option(("--help", "-h"), "Show this message and exit."))


def _choices(param: Any) -> list[str]:
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    return [str(member.value) for member in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []


def _first_line(text: str | None) -> str:
    return (text or "").strip().split("\n")[0].strip()
