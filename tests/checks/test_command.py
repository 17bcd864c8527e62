"""The command line: options over pyproject over defaults, exit statuses, one JSON document whatever plugins print, no process left."""

# ruff: noqa: E501 - plugins are written on one line
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from sglang_plug.checks.configuration import configured
from sglang_plug.errors import UsageError
from tests.plugins.install import Site, hook, platform

EXIT = {"clean": 0, "findings": 1, "usage": 2}


def doctor(site: Site, cwd, *args: str, timeout: float = 60, **env: str) -> subprocess.CompletedProcess:
    cwd.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "sglang_plug", "doctor", *args]
    return subprocess.run(command, env=site.env(**env), cwd=cwd, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)


def test_json_is_one_document_whatever_plugins_print(site, tmp_path):
    platform(
        site,
        "pa",
        'import sys, os\nprint("ACME")\ndef activate():\n    os.write(1, b"\\xff\\x00" * 5000)\n    sys.stderr.write("{" * 5000)\n    return "pa.plat.Plat"\n',
    )
    done = doctor(site, tmp_path / "cwd", "--format", "json", "--runtime", "srt")
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    assert {"host", "entry_points", "findings", "summary"} <= document.keys()
    assert done.returncode == EXIT["clean"]  # warnings only
    assert doctor(site, tmp_path / "cwd", "--format", "json", "--runtime", "srt", "--strict").returncode == EXIT["findings"]


def test_text_escapes_strangers_words_and_leaves_markup_alone(site, tmp_path):
    platform(site, "pa", 'def activate():\n    raise RuntimeError("\\x1b[2J\\x1b]0;owned\\x07[bold red]hello[/]")\n')
    done = doctor(site, tmp_path / "cwd", "--runtime", "srt", "--verbose")
    assert done.returncode == EXIT["findings"]
    assert "[bold red]hello[/]" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert "Traceback" in done.stdout


def test_the_answer_goes_to_a_file(site, tmp_path):
    done = doctor(site, tmp_path / "cwd", "--format", "markdown", "--output", "report.md", "--runtime", "srt")
    assert done.returncode == EXIT["clean"]
    assert done.stdout == ""
    assert (tmp_path / "cwd" / "report.md").read_text().startswith("# sglang-plug doctor: 0 errors")


def test_pyproject_gives_defaults_and_the_command_line_wins(site, tmp_path):
    hook(site, "import vendor_rt_missing\n")
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "pyproject.toml").write_text('[tool.sglang-plug]\nignore = ["SP301"]\nruntime = "srt"\n')
    assert doctor(site, tmp_path / "cwd").returncode == EXIT["clean"]
    assert doctor(site, tmp_path / "cwd", "--ignore", "SP001").returncode == EXIT["findings"]


@pytest.mark.parametrize(
    "args",
    [("--select", "XX1"), ("--format", "yaml"), ("--python", "/nowhere/python"), ("--timeout", "0"), ("--bogus",)],
)
def test_usage_errors(site, tmp_path, args):
    done = doctor(site, tmp_path / "cwd", *args)
    assert done.returncode == EXIT["usage"]
    assert not done.stdout
    assert "Traceback" not in done.stderr


def test_a_name_that_is_not_installed(site, tmp_path):
    done = doctor(site, tmp_path / "cwd", "nope")
    assert done.returncode == EXIT["findings"]
    assert "hint:" in done.stderr


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('strict = "yes"', "strict"),
        ("timeout = true", "timeout"),
        ('runtime = "both"', "runtime"),
        ("select = 3", "select"),
        ("timeout = -1", "timeout"),
        ("timeout = nan", "timeout"),
        ("jobs = 0", "jobs"),
        ('ignroe = ["SP301"]', "ignroe"),
        ("[tool]\nsglang-plug = 3", "no table"),
        ("select = [", "cannot be read"),
    ],
)
def test_a_pyproject_that_cannot_be_used(tmp_path, table, says):
    head = "" if table.startswith("[tool]") else "[tool.sglang-plug]\n"
    (tmp_path / "pyproject.toml").write_text(f"{head}{table}\n")
    with pytest.raises(UsageError, match=says):
        configured(tmp_path)


def test_keys_of_other_commands_are_left_alone(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.sglang-plug]\nsglang = ">=0.5.20"\nselect = "SP3"\n[tool.other]\nx = 1\n')
    assert configured(tmp_path).select == ("SP3",)
    assert configured(tmp_path, select=["SP5"]).select == ("SP5",)
    assert configured(tmp_path / "nowhere").runtimes == ("srt", "diffusion")


def test_no_memory_limit(tmp_path):
    assert configured(tmp_path, memory=0).limits.memory is None
    assert configured(tmp_path).limits.memory == 4 << 30


def marked(mark: str) -> list[int]:
    """Processes that carry a mark in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if mark.encode() in file.read():
                        found.append(int(name))
            except OSError:
                continue
    return found


def test_nothing_is_left_of_what_plugins_start(site, tmp_path):
    mark = f"mark-{os.getpid()}"
    child = f"import subprocess, sys, os\ndef register():\n    for flag in (False, True):\n        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(90)', '{mark}'], start_new_session=flag)\n"
    hook(site, child, "leaves")
    hook(site, child + "    os._exit(3)\n", "dies")
    hook(site, child + "    import time, signal\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(90)\n", "hangs")
    done = doctor(site, tmp_path / "cwd", "--runtime", "srt", "--timeout", "2", "--format", "json")
    codes = {finding["code"] for finding in json.loads(done.stdout)["findings"]}
    assert {"SP303", "SP305", "SP325"} <= codes
    assert marked(mark) == []


def test_an_interrupt_leaves_nothing_either(site, tmp_path):
    mark = f"mark2-{os.getpid()}"
    hook(
        site,
        f"import subprocess, sys, time\ndef register():\n    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(90)', '{mark}'])\n    time.sleep(90)\n",
    )
    (tmp_path / "cwd").mkdir()
    command = [sys.executable, "-m", "sglang_plug", "doctor", "--runtime", "srt"]
    running = subprocess.Popen(
        command,
        env=site.env(),
        cwd=tmp_path / "cwd",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores it
    )
    wait_until(lambda: marked(mark))
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=30) == 130, running.stderr.read()
    wait_until(lambda: not marked(mark))
    assert "Traceback" not in running.stderr.read()
    running.stderr.close()


def wait_until(condition, limit: float = 30) -> None:
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
