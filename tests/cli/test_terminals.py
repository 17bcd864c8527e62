"""What odd terminals and odd names meet: columns are cells, nothing is interpreted, no encoding and no pipe ends a command."""

from __future__ import annotations

import contextlib
import fcntl
import io
import itertools
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from sglang_plug.__main__ import main
from sglang_plug.cli.app import run
from sglang_plug.errors import UsageError
from sglang_plug.launch.recording import HookRecord, ProcessRecord, Recording
from sglang_plug.report import rules, terminal
from sglang_plug.report.hooks import table
from sglang_plug.report.text import write
from tests.plugins.install import SRT_PLATFORMS, SRT_PLUGINS, Site

#: Names of hooks, and the cells that each takes on a terminal, counted by hand.
NAMES = {"plain": 5, "한국칩": 6, "中文芯片": 8, "e\u0301te\u0301": 3, "\u1112\u1161\u11ab": 2, "שלום": 4, "🚀go": 4, "\x1b[31mred": 11}
ESCAPED = {"\x1b[31mred": "\\x1b[31mred"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Hooks of many scripts in one distribution, and a platform whose failure speaks Korean and tries to steer the terminal."""
    made = Site(tmp_path_factory.mktemp("terminals") / "site")
    made.add("hooks-훅", {SRT_PLUGINS: dict.fromkeys(NAMES, "kor:register")}, {})
    body = 'def activate():\n    raise RuntimeError("드라이버 없음 \\x1b]0;pwned\\x07\\u202e")\n'
    made.add("kor", {SRT_PLATFORMS: {"한국칩": "kor:activate"}}, {"kor.py": body})
    return made


def tell(site: Site, *words: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "sglang_plug", *words], capture_output=True, env=site.env(**variables), check=False)


@pytest.mark.parametrize(("text", "cells"), [(ESCAPED.get(name, name), cells) for name, cells in NAMES.items()])
def test_a_width_is_counted_in_cells(text: str, cells: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert terminal.width(text) == cells
    assert terminal.padded(text, 12) == text + " " * (12 - cells)
    assert terminal.padded(text, 12, right=True) == " " * (12 - cells) + text


def test_columns_align_by_cells(site: Site):
    done = tell(site, "list", "--runtime", "srt", PYTHONIOENCODING="utf-8")
    rows = [line for line in done.stdout.decode().splitlines() if "kor:register" in line]
    starts = {line.index("kor:register") - len(name) + cells for line in rows for name, cells in shown() if f"  {name} " in line}
    assert len(rows) == len(NAMES)
    assert starts == {2 + max(NAMES.values()) + 2}


def shown() -> list[tuple[str, int]]:
    return [(ESCAPED.get(name, name), cells) for name, cells in NAMES.items()]


def test_a_recording_aligns_by_cells(capsys: pytest.CaptureFixture[str]):
    made = [HookRecord(target, "after", "h", f"p-{target}", None, applied=False, error="x") for target in ("pkg.모듈.함수", "pkg.m.f")]
    write(table(Recording({}, (ProcessRecord("main", 1, "srt", hooks=tuple(made)),), ())))
    wide, narrow = (line for line in capsys.readouterr().out.splitlines() if "  after  " in line)
    if "함수" not in wide:
        wide, narrow = narrow, wide
    assert wide.index("p-") + len("모듈함수") == narrow.index("p-")


def test_a_damaged_recording_steers_no_terminal(capsys: pytest.CaptureFixture[str]):
    hook = HookRecord("m.f", "\x1b[31mafter", "h", "p", None, applied=True)
    write(table(Recording({}, (ProcessRecord("main", 1, "srt", hooks=(hook,)),), ()), everything=True))
    assert "\\x1b[31mafter" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_without_our_signs_is_given_others(site: Site, encoding: str):
    done = tell(site, "resolve", "--runtime", "srt", PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode(encoding).splitlines()
    branches = [line for line in lines if line.startswith(("|- ", "`- "))]
    assert branches[-1].startswith("`- ")
    assert [line for line in branches if line[3:].startswith("activate  \\ud55c\\uad6d\\uce69 ")]
    assert len({line.index("  load  ") for line in branches if "  load  " in line}) == 1


def test_a_doctor_speaks_ascii_and_keeps_strangers_from_the_terminal(site: Site):
    done = tell(site, "doctor", "한국칩", "--verbose", PYTHONIOENCODING="ascii")
    assert done.returncode == 1, done.stderr
    text = done.stdout.decode("ascii")
    assert "\\ub4dc\\ub77c\\uc774\\ubc84" in text
    assert "\\x1b]0;pwned\\x07\\u202e" in text
    assert "\x1b" not in text + done.stderr.decode()


def test_colour_is_forced_and_refused_as_asked(site: Site):
    forced = {"FORCE_COLOR": "1", "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    assert b"\x1b[" in tell(site, "list", NO_COLOR="", **forced).stdout
    assert b"\x1b[" not in tell(site, "list", NO_COLOR="", **forced | {"TERM": "dumb"}).stdout
    assert b"\x1b[" not in tell(site, "list", PYTHONIOENCODING="utf-8").stdout


def on_a_terminal(site: Site, columns: int, *words: str, program: tuple[str, ...] = ("-m", "sglang_plug"), **variables: str) -> str:
    """Return what a command (or another program of Python's) writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in site.env(TERM="xterm", **variables).items() if name not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen([sys.executable, *program, *words], stdout=theirs, stderr=theirs, stdin=theirs, env=env)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the terminal's other end is closed: the command has ended
        while chunk := os.read(ours, 65536):
            seen += chunk
    process.wait()
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "words",
    [
        ("resolve", "--runtime", "srt"),
        ("doctor", "한국칩"),
        ("list",),
        ("check", "."),
        ("contract", "diff", "0.5.21", "0.5.22"),
        ("serve", "--platform", "nowhere", "--port", "1"),
        ("explain", "SP999"),
    ],
)
def test_no_colour_is_neither_bold_nor_dim(site: Site, words: tuple[str, ...]):
    assert "\x1b" in on_a_terminal(site, 80, *words, NO_COLOR="")
    assert "\x1b" not in on_a_terminal(site, 80, *words, NO_COLOR="1")


def test_a_finding_goes_on_below_its_words(site: Site):
    shown = on_a_terminal(site, 46, "doctor", "한국칩", NO_COLOR="1").splitlines()
    after = {line[:12]: following for line, following in itertools.pairwise(shown) if terminal.width(line) > 34}
    assert after["    platform"].startswith("    ")
    assert after["  FAILED   p"].startswith(" " * 11)
    assert after["    cause: R"].startswith(" " * 11)


def test_a_command_to_copy_is_one_line(site: Site):
    line = "    hint: sglang-plug contract targets 'sglang.srt.managers.scheduler.Scheduler.*' lists what can be hooked"
    assert len(line) > 70
    program = f"from sglang_plug.report.text import Span, write; write([[Span({line!r})], [Span({line.replace('sglang-plug', 'see')!r})]])"
    copied, broken, *_ = on_a_terminal(site, 70, program=("-c", program)).splitlines()
    assert copied == line
    assert len(broken) <= 70


def test_a_tree_goes_on_below_its_last_column(site: Site):
    shown = on_a_terminal(site, 70, "resolve", "--runtime", "srt").splitlines()
    first = next(index for index, line in enumerate(shown) if line.startswith("├─ selector"))
    column = shown[first].index("SGLANG_PLATFORM is not")
    assert shown[first + 1].startswith("│".ljust(column) + "set, so")
    assert max(map(terminal.width, shown[first : first + 2])) <= 70


@pytest.mark.parametrize(
    ("words", "status"),
    [(("contract", "show"), 0), (("list",), 0), (("--version",), 0), (("--help",), 0), (("explain", "SP999"), 2)],
)
def test_a_reader_who_leaves_changes_nothing(site: Site, words: tuple[str, ...], status: int):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "sglang_plug", *words], stdout=writer, stderr=subprocess.PIPE, env=site.env(), text=True, check=False
    )
    os.close(writer)
    assert done.returncode == status
    assert "Broken" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_of_both_streams_who_leaves_changes_nothing(site: Site):
    command = f'set -o pipefail; "{sys.executable}" -m sglang_plug resolve --strict 2>&1 | true'
    done = subprocess.run(["bash", "-c", command], env=site.env(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert not done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("words", [["list"], ["contract", "show"]])
def test_a_full_disk_is_said(site: Site, words: list[str]):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sglang_plug", *words], stdout=full, stderr=subprocess.PIPE, env=site.env(), text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the answer cannot be written\n  cause: No space left on device\n  hint: ")


def test_a_closed_stdout_is_no_defect(site: Site):
    done = subprocess.run(["bash", "-c", f'"{sys.executable}" -m sglang_plug list >&-'], env=site.env(), capture_output=True, check=False)
    assert b"Traceback" not in done.stderr


def test_a_defect_of_ours_is_told_without_steering_the_terminal(monkeypatch, tmp_path, capsys):
    def fall() -> str:
        raise RuntimeError("\x1b]0;pwned\x07 한국 \udcff")

    monkeypatch.setattr("sglang_plug.report.rules.listing", fall)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run(["explain"]) == 3
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert "\\x1b]0;pwned\\x07 한국" in told
    (log,) = tmp_path.iterdir()
    assert "한국 \\udcff" in log.read_text(encoding="utf-8")


def test_every_page_of_help_is_shown_on_a_narrow_ascii_terminal(site: Site):
    for words in (["--help"], ["doctor", "--help"]):
        done = tell(site, *words, COLUMNS="40", TERM="dumb", PYTHONIOENCODING="ascii")
        assert done.returncode == 0, done.stderr
        assert b"doctor" in done.stdout


@pytest.mark.parametrize(
    ("word", "hint"), [("SP999", "`sglang-plug explain` lists all rules"), ("does-not-laod", "`sglang-plug explain does-not-load`")]
)
def test_another_number_is_another_rule_and_no_slip(word, hint):
    with pytest.raises(UsageError) as told:
        rules.find(word)
    assert hint in (told.value.hint or "")
    assert ("did you mean" in (told.value.hint or "")) is (word != "SP999")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_defect(site: Site, closed: str):
    """Nor does the next file take its number: `serve` would send the engine's words there."""
    command = f'"{sys.executable}" -m sglang_plug list --runtime diffusion {closed}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=site.env(), check=False)
    assert done.returncode == 0
    assert "defect" not in done.stderr
    assert ("no plugin" in done.stdout) is (closed == "2>&-")


def test_what_is_left_out_of_a_printed_command_is_said(site: Site):
    done = tell(site, "serve", "--engine", "standin", "--print-command", "--record", "run")
    assert done.returncode == 0
    assert b"--record is left out" in done.stderr


def test_an_interruption_before_the_command_runs_is_one(monkeypatch: pytest.MonkeyPatch):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "settle", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
