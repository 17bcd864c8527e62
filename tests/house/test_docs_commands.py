"""Every command line that a page shows is one that the tool takes: names, options and values."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from sglang_plug.cli.app import COMMANDS
from sglang_plug.cli.app import app as root
from sglang_plug.errors import SglangPlugError

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES.remove(ROOT / "docs/reference/commands.md")  # the help pages themselves, tried by their own tests
FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """Return the lines of `text` that start with our command, each as one line, in blocks and in running text."""
    blocks = [
        re.sub(r"\\\n\s*", "", body)
        for kind, body in FENCE.findall(text)
        if kind in {"bash", "sh", "console", "yaml", "dockerfile", "toml", "text", ""}
    ]
    lines = [line for block in blocks for line in block.splitlines()]
    found = [
        match[1] for line in lines if (match := re.match(r"^\s*(?:- )?(?:run: |\$ |RUN |ENTRYPOINT )?(?:\w+=\S* )*(sglang-plug .*)$", line))
    ]
    running = re.findall(r"`(?:\w+=\S* )*(sglang-plug [^`]+)`", FENCE.sub("", text))
    return [" ".join(line.split()) for line in found + running]


LINES = [(str(page.relative_to(ROOT)), line) for page in PAGES for line in dict.fromkeys(commands(page.read_text()))]


def parse(words: list[str]) -> None:
    """Read a command line as the tool would, up to the work.

    Raises:
        typer.TyperException: what a user would be told.
    """
    group: Any = typer.main.get_command(root)
    command = group
    while hasattr(command, "list_commands") and words and not words[0].startswith("-"):
        command = command.get_command(None, words[0])
        assert command is not None, f"there is no command {words[0]}"
        words = words[1:]
    command.make_context("sglang-plug", words, resilient_parsing=not words and hasattr(command, "list_commands"))


def test_pages_show_commands():
    assert len(LINES) > 80
    assert {line.split()[1] for _, line in LINES} >= set(COMMANDS)


@pytest.mark.parametrize(("page", "line"), LINES)
def test_a_command_line_is_taken(page: str, line: str):
    words = shlex.split(line, comments=True)[1:]
    ends = [index for index, word in enumerate(words) if word in {"|", ">", "&&", ";", "||", "2>", ">>", "&"}]
    words = words[: ends[0]] if ends else words
    if "-h" in words or "--help" in words or "--version" in words:
        return
    try:
        parse(words)
    except (typer.TyperException, SglangPlugError) as exc:
        if type(exc).__name__ != "MissingParameter" and "…" not in line:  # a text may speak of `sglang-plug completion`
            pytest.fail(f"{page}: {line}: {getattr(exc, 'message', exc)}")
