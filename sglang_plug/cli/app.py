"""The command table and the outermost frame: loads a command's module only when it is called, turns errors into words and exit codes."""

from __future__ import annotations

import importlib
import sys
import tempfile
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer.core import TyperCommand

from sglang_plug import __version__
from sglang_plug.cli.page import GroupPage
from sglang_plug.cli.parameters import lighten
from sglang_plug.errors import SglangPlugError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_UNEXPECTED = 3
EXIT_INTERRUPTED = 130


class Entry(NamedTuple):
    """One command: the module that holds `app`, a typer app, and its line in `--help`."""

    module: str
    help: str


COMMANDS: dict[str, Entry] = {
    "new-platform": Entry("new_platform", "Scaffold a hardware platform plugin."),
    "new-hook": Entry("new_hook", "Scaffold a hook plugin, or add a hook to a package."),
    "doctor": Entry("doctor", "Find what is wrong with the installed plugins, and why."),
    "resolve": Entry("resolve", "Show which platform will be used here, and the way to it."),
    "serve": Entry("serve", "Check first, then launch SGLang (or the stand-in engine)."),
    "hooks": Entry("hooks", "Show which recorded hooks fired, where and how often."),
    "check": Entry("check", "Lint a plugin's source against SGLang releases, without installing any."),
    "contract": Entry("contract", "Show what each SGLang release expects of a plugin."),
    "list": Entry("list", "List the plugins of this environment, from metadata alone."),
    "explain": Entry("explain", "Print the page of a rule."),
    "completion": Entry("completion", "Print the completion script of a shell."),
}


class LazyGroup(GroupPage):
    """A group whose commands are imported only when they run, so that `--help` and completion stay fast."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True  # names and lines are enough: nothing is imported
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        if self._listing:
            return TyperCommand(cmd_name, help=entry.help, short_help=entry.help)
        module = importlib.import_module(f"sglang_plug.cli.{entry.module}")
        command = lighten(typer.main.get_command(module.app))
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=2)
            raise UsageError(
                f"no such command: {args[0]}",
                hint=f"did you mean {' or '.join(f'`sglang-plug {name}`' for name in near)}?" if near else "see `sglang-plug --help`",
            )
        return super().resolve_command(ctx, args)


HELP = """The toolchain for people who extend SGLang from outside its tree.

Scaffold platform and hook plugins, see which one SGLang will use and why, find out what is wrong with them, and serve.

Examples:

\b
  sglang-plug new-platform my-chip
  sglang-plug doctor
  sglang-plug serve --platform my_chip

Exit status: 0 clean, 1 findings or a user's error, 2 wrong usage, 3 a defect of sglang-plug (with a log file), 130 interrupted.
"""

app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    name="sglang-plug",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=HELP,
)


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        typer.echo(f"sglang-plug {__version__}")
        raise typer.Exit


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit status: 0 clean, 1 findings or a user's error, 2 usage, 3 unexpected, 130 interrupted."""
    command = lighten(typer.main.get_command(app))
    try:
        status = command.main(args=list(argv), prog_name="sglang-plug", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # what cannot be written is told now, not as Python ends
    except SglangPlugError as exc:
        from sglang_plug.report.text import print_error

        print_error(exc)
        return exc.exit_code
    except typer.Exit as exc:
        return exc.exit_code
    except typer.Abort:
        return EXIT_INTERRUPTED
    except typer.TyperException as exc:
        _say(exc, argv)
        return exc.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as exc:  # noqa: BLE001 - the last frame: a defect of ours becomes a log file, never a traceback
        return _unexpected(exc)
    return status if isinstance(status, int) else 0


def _say(exc: Any, argv: Sequence[str]) -> None:
    """Tell a usage error of typer's as one of ours is told: what is wrong, what was meant, where the help is."""
    if type(exc).__name__ == "NoArgsIsHelpError":
        exc.show()
        return
    from sglang_plug.report.text import print_error

    message, _, meant = " ".join(exc.format_message().split()).partition(" Did you mean ")
    if near := getattr(exc, "possibilities", None):
        message, meant = exc.message, f"{' or '.join(near)}?"
    command = (
        exc.ctx.command_path if getattr(exc, "ctx", None) else " ".join(["sglang-plug", *(word for word in argv[:1] if word in COMMANDS)])
    )
    see = f"`{command} --help`"
    print_error(
        UsageError(message[:1].lower() + message[1:].rstrip("."), hint=f"did you mean {meant} See {see}" if meant else f"see {see}")
    )


def _unexpected(exc: BaseException) -> int:
    from sglang_plug.report.escape import visible

    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", errors="backslashreplace", prefix="sglang-plug-", suffix=".log", delete=False
    ) as log:
        log.write("".join(traceback.format_exception(exc)))
    said = f"error: unexpected {type(exc).__name__}: {visible(str(exc))}\n"
    sys.stderr.write(f"{said}hint: this is a defect of sglang-plug; please report it with {log.name}\n")
    return EXIT_UNEXPECTED
