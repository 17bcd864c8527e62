"""The shipped completion scripts are the tool's own, and work in the real shells, on an environment that must not be imported."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sglang_plug.checks.table import RULES
from sglang_plug.cli.completion import tree
from sglang_plug.data import data_dir
from sglang_plug.report.completion import render
from tests.plugins.install import DIFFUSION_PLUGINS, SRT_PLATFORMS, SRT_PLUGINS, Site

FILES = {"bash": "sglang-plug.bash", "zsh": "_sglang-plug", "fish": "sglang-plug.fish", "powershell": "sglang-plug.ps1"}

#: How each shell is asked: candidates for a command line that ends at the cursor, one a line.
BASH = """source {script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
compopt() {{ :; }}
_sglang_plug; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ :; }}
_files() {{ print FILES; }}
compadd() {{ local -a rest; while [[ $1 == -* && $1 != -- ]]; do [[ $1 == -S ]] && shift; shift; done; [[ $1 == -- ]] && shift
  for word in "$@"; do [[ $word == "$PREFIX"* ]] && print -r -- $word; done; }}
source {script}
words=({words}); CURRENT=${{#words}}; PREFIX=$words[-1]
_sglang_plug
"""
FISH = "source {script}; complete -C {line} | string split -f1 \\t"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two plugins whose import ends the process, beside a `sglang` and a `torch` that do the same."""
    poison = "import os\nos._exit(9)\n"
    made = Site(tmp_path_factory.mktemp("completion") / "site")
    files = {"acme.py": poison, "sglang/__init__.py": poison, "torch/__init__.py": poison}
    made.add("acme-dist", {SRT_PLATFORMS: {"acme": "acme:activate"}, SRT_PLUGINS: {"acme_hooks": "acme:register"}}, files)
    made.add("tracing", {DIFFUSION_PLUGINS: {"tracing": "acme:register"}}, {})
    return made


def ask(shell: str, line: str, site: Site) -> list[str]:
    """Return what `shell` offers at the end of `line`."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = data_dir("completions") / FILES[shell]
    words = " ".join(shlex.quote(word) for word in line.split(" "))
    code = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell].format(script=script, words=words, line=shlex.quote(line))
    done = subprocess.run(
        [shell, *(["--no-config"] if shell == "fish" else ["-f"] if shell == "zsh" else ["--norc"]), "-c", code],
        capture_output=True,
        text=True,
        env={**site.env(), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(site.root)},
        check=False,
    )
    assert not done.stderr.strip(), done.stderr
    return sorted(filter(None, done.stdout.split("\n")))


@pytest.mark.parametrize("shell", FILES)
def test_the_shipped_script_is_what_the_commands_give(shell: str):
    assert (data_dir("completions") / FILES[shell]).read_text() == render(shell, tree()), f"run: sglang-plug completion {shell}"


SHELLS = ("bash", "zsh", "fish")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sglang-plug do", ["doctor"]),
        ("sglang-plug contract di", ["diff"]),
        ("sglang-plug resolve --ver", ["--verify"]),
        ("sglang-plug resolve --runtime ", ["all", "diffusion", "srt"]),
        ("sglang-plug serve --platform ", ["acme"]),
        ("sglang-plug serve --plugins ", ["acme_hooks", "tracing"]),
        ("sglang-plug serve --plugins tracing,", ["tracing,acme_hooks"]),
        ("sglang-plug doctor ac", ["acme", "acme_hooks"]),
        ("sglang-plug completion ", ["bash", "fish", "powershell", "zsh"]),
        ("sglang-plug resolve --sglang 0.5.2", ["0.5.20", "0.5.21", "0.5.22", "0.5.23"]),
        ("sglang-plug explain SP1", [rule.code for rule in RULES if rule.code.startswith("SP1")]),
        (
            "sglang-plug new-hook --target sglang.srt.managers.scheduler.Scheduler.run_batch",
            ["sglang.srt.managers.scheduler.Scheduler.run_batch"],
        ),
        ("sglang-plug new-hook --target sglang.srt.managers.tp_worker.Tp", ["sglang.srt.managers.tp_worker.TpModelWorker"] * 2),
    ],
)
def test_a_shell_offers(shell: str, line: str, expected: list[str], site: Site):
    offered = [word.rstrip(".") if "tp_worker" in line else word for word in ask(shell, line, site)]
    if "Scheduler.run_batch" in line or "tp_worker" in line:
        assert set(expected) <= set(offered)
    else:
        assert offered == sorted(expected)


@pytest.mark.parametrize("kind", ["platforms", "hooks", "names", "codes", "releases", "targets", "methods", "nonsense", ""])
def test_values_are_silent_and_safe(kind: str, site: Site):
    hostile = Site(site.root.parent / "hostile")
    hostile.add("evil", f"[{SRT_PLATFORMS}]\n\x1b]0;pwned\x07 = acme:activate\nno equals sign here\n", {})
    done = subprocess.run(
        [sys.executable, "-m", "sglang_plug", "__values", kind],
        capture_output=True,
        text=True,
        env={**site.env(), "PYTHONPATH": f"{site.root}:{hostile.root}"},
        check=False,
    )
    assert done.returncode == 0
    assert not done.stderr
    assert all(line.isprintable() for line in done.stdout.splitlines())
