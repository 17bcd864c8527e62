"""Every help page keeps its promises: a purpose, three examples that are valid as written, exit statuses, 80 columns."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from sglang_plug.cli.app import COMMANDS, run
from sglang_plug.cli.app import app as root
from tests.plugins.install import Site, platform

#: Examples that start an engine or ask for a release from outside: they are parsed here, and the like of them run by tests of their own.
PARSED_ONLY = {"sglang-plug serve --platform", "sglang-plug serve --record", "sglang-plug contract build"}


def commands() -> dict[str, Any]:
    """Return every command that can be typed, by its words."""
    group: Any = typer.main.get_command(root)
    found = {}
    for name in COMMANDS:
        command = group.get_command(None, name)
        inner = getattr(command, "commands", None)
        found |= {f"{name} {word}": child for word, child in inner.items()} if inner else {name: command}
    return found


ALL = commands()


def examples(command: Any) -> list[str]:
    """Return the command lines in the Examples part of a help page."""
    lines = (command.help or "").replace("\b", "").partition("Examples:")[2].splitlines()
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [line.strip() for line in joined.splitlines() if "sglang-plug " in line]


@pytest.mark.parametrize("name", ALL)
def test_every_option_stands_under_a_heading(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*name.split(), "--help"]) == 0
    page = capsys.readouterr().out
    parts = {part.partition(":\n")[0]: part for part in page.split("\n\n")}
    for option in ALL[name].params:
        if option.param_type_name == "option":
            shown = ", ".join(sorted(option.opts, key=len))
            assert re.search(rf"^  {shown}(?![\w-])", parts[option.rich_help_panel], re.MULTILINE)


@pytest.mark.parametrize("name", ["", *ALL])
@pytest.mark.parametrize("columns", [40, 200])
def test_a_page_is_as_wide_as_the_terminal(name: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run([*name.split(), "--help"]) == 0
    page = capsys.readouterr().out
    shown = re.sub(r"  Examples:\n\n(?:    .*\n)+", "", page)
    breakable = [line for line in shown.splitlines() if not re.match(r"  \S.*[<|]\w", line)]  # an option's choices are one word
    assert max(map(len, breakable)) <= min(columns, 80)
    broken = re.findall(r"\w-\n\s*\w+", page)
    assert not [word for word in broken if len(re.sub(r"\s", "", word)) < columns // 4], "a word is broken at its hyphen"


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("doctor", "sglang-plug doctor [OPTIONS] [NAME...]"),
        ("check", "sglang-plug check [OPTIONS] [PATH]"),
        ("hooks", "sglang-plug hooks [OPTIONS] DIR"),
        ("contract diff", "sglang-plug contract diff [OPTIONS] OLD NEW"),
        ("serve", "sglang-plug serve [OPTIONS] [[--] ENGINE ARGUMENTS...]"),
    ],
)
def test_a_usage_line_says_each_argument_once(name: str, usage: str, capsys: pytest.CaptureFixture[str]):
    assert run([*name.split(), "--help"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"Usage: {usage}"


EXAMPLES = [(name, line) for name, command in ALL.items() for line in examples(command)]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the examples speak of: plugins to check, an environment with nothing in it, and a recording."""
    folder = tmp_path_factory.mktemp("workplace")
    for name in ("my-plugin", "my-chip"):
        subprocess.run([sys.executable, "-m", "sglang_plug", "new-platform", name, "--yes"], cwd=folder, check=True, capture_output=True)
    (folder / "my-plugin").rename(folder / "my_plugin")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "venv"], cwd=folder, check=True)
    (folder / "run").mkdir()
    (folder / "run" / "launch.json").write_text(json.dumps({"schema": 1, "engine": "standin", "processes": []}))
    process = {"schema": 1, "runtime": "srt", "role": "main", "rank": {}, "pid": 1, "parent": 0, "argv": [], "sglang": "0.5.23"}
    process |= {"platform": None, "clock": 1, "time": 1.0, "plugins_failed": [], "hooks": []}
    (folder / "run" / "main-1-srt.json").write_text(json.dumps(process))
    return folder


@pytest.mark.parametrize("name", ALL)
def test_a_page_has_purpose_examples_and_statuses(name: str):
    text = ALL[name].help or ""
    assert text.strip().split("\n")[0].endswith("."), "the first line is a sentence"
    assert len(examples(ALL[name])) >= 3
    assert re.search(r"Exit status: [^.]*\b2 wrong usage", text)


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_an_example_is_valid_as_written(name: str, line: str):
    words = shlex.split(re.split(r" \| |\)", line)[0].removeprefix("source <("))[1:]
    depth = len(name.split())
    assert words[:depth] == name.split(), "an example shows the command that it stands under"
    ALL[name].make_context(name, words[depth:])  # raises what a user would be told


@pytest.mark.parametrize(("name", "line"), [(n, line) for n, line in EXAMPLES if not line.startswith(tuple(PARSED_ONLY))])
def test_an_example_runs_as_written(name: str, line: str, workplace: Path, tmp_path: Path):
    shell = next((word for word in ("zsh", "fish") if f"completion {word}" in line), "bash")
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    site = Site(tmp_path / "site")
    platform(site, "mydev")
    done = subprocess.run(
        [shell, "-c", f"autoload -U compinit; compinit -u -D; {line}" if shell == "zsh" else line],
        cwd=tmp_path if name == "new-platform" else workplace,  # which makes a folder that is there already in the other place
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=site.env(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}", HOME=str(workplace)),
        check=False,
    )
    assert done.returncode in ({0, 1} if name in {"check", "doctor"} else {0}), done.stderr
    assert not re.search("^error:|Traceback", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.parametrize("name", ["", *ALL])
def test_a_page_fits_80_columns_and_bears_no_colour_through_a_pipe(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    assert run([*name.split(), "--help"]) == 0
    page = capsys.readouterr().out
    assert "\x1b" not in page
    assert max(map(len, page.splitlines())) <= 80
    assert "..." not in page.partition("Commands:")[2], "the line of a command is cut"
    for line in (ALL[name].help or "").partition("Examples:")[2].partition("Exit")[0].splitlines() if name in ALL else ():
        assert line.strip("\b ") in page, "an example is shown as it is written, so that it can be copied"


def test_a_mistyped_command_is_answered_with_the_nearest():
    done = subprocess.run([sys.executable, "-m", "sglang_plug", "docter"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "sglang-plug doctor" in done.stderr


SCHEDULR = "sglang.srt.managers.schedulr.*"


@pytest.mark.parametrize(
    ("line", "wrong", "meant"),
    [
        (
            "list --format jsno",
            "error: invalid value for '--format' / '-f': 'jsno' is not one of 'text', 'json'\n",
            "hint: did you mean 'json'? See",
        ),
        ("resolve --env", "error: option '--env' requires an argument\n", "see `sglang-plug resolve --help`"),
        ("doctor --python /proc", "it is a folder, and no environment: there is no /proc/bin/python", "--python /opt/venv/bin/python"),
        ("serve --platform nowhere --engine standin --port 1", "error SP050", "not started: SP050\n"),
        ("doctor --fromat json", "error: no such option: --fromat\n", "hint: did you mean --format? See `sglang-plug doctor --help`"),
        ("resolve --runtime sr", "--runtime", "'srt'?"),
        ("list --runtime=dif", "--runtime", "'diffusion'?"),
        ("completion bahs", "bahs", "'bash'?"),
        (
            "completion",
            "error: missing argument 'SHELL'. Choose from: bash, zsh, fish, powershell\n",
            "see `sglang-plug completion --help`",
        ),
        ("contract shwo", "shwo", "'show'?"),
        ("contract diff 0.5.21", "'NEW'", "see `sglang-plug contract diff --help`"),
        ("contract show --method get_devic", "get_devic", "get_device"),
        ("doctor --timeout -1", "'-1' is not at least 0.1", "see `sglang-plug doctor --help`"),
        ("contract targets sglang.srt.managers.scheduler.logger", "an attribute cannot be hooked", "hook what uses it"),
        (f"contract targets {SCHEDULR}", "nothing that can be hooked matches", "look at sglang.srt.managers.scheduler.* or "),
        (f"contract diff 0.5.21 0.5.23 --targets {SCHEDULR}", "in SGLang 0.5.21 or 0.5.23", "look at sglang.srt.managers.scheduler.* or "),
        ("contract show newset", "newset", "sglang-plug contract releases"),
        ("explain callbak-raises", "callbak-raises", "sglang-plug explain callback-raises"),
        ("doctor --select SP30Z", "SP30Z", "SP30"),
        ("doctor --ignore callback-raise", "callback-raise", "callback-raises"),
        ("serve --platfrom mydev --port 1", "--platfrom", "--platform?"),
        ("serve --runtme=srt", "--runtme", "--runtime?"),
        ("serve --allow SPXX", "SPXX", "sglang-plug explain"),
        ("hooks /nowhere", "/nowhere", "sglang-plug serve --record"),
        ("new-hook x --target sglang.srt.managers.scheduler.Schedulr.run_batch", "Schedulr", "scheduler.Scheduler.run_batch"),
    ],
)
def test_a_slip_is_named_and_answered_with_what_was_meant(line: str, wrong: str, meant: str, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(line.split()) in {1, 2}
    told = capsys.readouterr().err
    assert wrong in told
    assert meant in told


@pytest.mark.parametrize("line", ["-- --platfrom x", "--load-format dummy", "--num-engines 2", "--allow-auto-truncate", "--plugin-dir x"])
def test_what_is_the_engines_passes_as_it_is(line: str, capsys: pytest.CaptureFixture[str]):
    assert run(["serve", "--engine", "standin", "--print-command", "--format", "json", *line.split()]) == 0
    assert json.loads(capsys.readouterr().out)["argv"][-len(line.removeprefix("-- ").split()) :] == line.removeprefix("-- ").split()


@pytest.mark.parametrize(
    "line",
    ["show 0.5.99", "show --method get_device 0.5.99", "diff 0.5.23 0.5.99", "diff 0.5.99 0.5.23", "targets run_batch --sglang 0.5.99"],
)
def test_a_named_release_that_is_not_known_is_refused(line: str, capsys: pytest.CaptureFixture[str]):
    assert run(["contract", *line.split()]) == 1
    out, err = capsys.readouterr()
    assert not out
    assert "not in the catalogue" in err
    assert "near: 0.5." in err
    assert "sglang-plug contract build 0.5.99" in err


def test_a_build_of_a_known_release_is_answered_by_it_and_says_so(capsys: pytest.CaptureFixture[str]):
    assert run(["contract", "show", "0.5.22+cu129", "--runtime", "srt"]) == 0
    assert "note: 0.5.22+cu129 is not in the catalogue; this is 0.5.22" in capsys.readouterr().err


def test_a_release_before_plugins_is_told_as_such(capsys: pytest.CaptureFixture[str]):
    assert run(["contract", "show", "0.5.9"]) == 1
    err = capsys.readouterr().err
    assert "SGLang 0.5.9 has no plugin system" in err
    assert "build" not in err


def test_a_comparison_backwards_says_so(capsys: pytest.CaptureFixture[str]):
    assert run(["contract", "diff", "0.5.23", "0.5.22", "--runtime", "srt"]) == 0
    assert "0.5.23 is newer than 0.5.22" in capsys.readouterr().err
    assert run(["contract", "diff", "0.5.22", "0.5.23", "--runtime", "srt"]) == 0
    assert not capsys.readouterr().err


def test_targets_that_are_left_out_are_counted(capsys: pytest.CaptureFixture[str]):
    assert run(["contract", "targets", "run_batch", "--limit", "1"]) == 0
    shown = capsys.readouterr().out.splitlines()[-1]
    assert shown.startswith("1 of ")
    assert "--limit" in shown


def test_a_mistyped_option_is_answered_with_the_nearest():
    done = subprocess.run([sys.executable, "-m", "sglang_plug", "resolve", "--pyton", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--python" in done.stderr
