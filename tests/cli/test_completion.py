"""The shipped completion scripts are the tool's own, and work in the real shells, on an environment that must not be imported."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tree_sitter_pwsh
from tree_sitter import Language, Parser

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
compset() {{ PREFIX=${{PREFIX#*=}}; }}
compadd() {{ local -a rest; while [[ $1 == -* && $1 != -- ]]; do [[ $1 == -S ]] && shift; shift; done; [[ $1 == -- ]] && shift
  for word in "$@"; do [[ $word == "$PREFIX"* ]] && print -r -- $word; done; }}
source {script}
words=({words}); CURRENT=${{#words}}; PREFIX=$words[-1]
_sglang_plug
"""
#: Names that a distribution may give its entry points; a shell that expands them runs a command.
HOSTILE = ("my chip", "$(touch pwned)", "`touch pwned`", "semi;touch pwned", "${x:-$(touch pwned)}", "star*", "한국칩", "it's")
#: The same, by a person at the keys: a prompt that can be waited for, and a command that prints what it was given.
TYPED = {
    "bash": "PS1='#''>'; source {script}; {override}",
    "zsh": "PROMPT='#''>'; autoload -U compinit; compinit -u -D; source {script}; {override}",
    "fish": "function fish_prompt; echo -n '#''>'; end; source {script}; function sglang-plug; printf '<%s>' $argv; echo '<end''>'; end",
}
OVERRIDE = """sglang-plug() { if [[ $1 == __values ]]; then command sglang-plug "$@"; else printf '<%s>' "$@"; echo '<end''>'; fi; }"""
START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"], "fish": ["fish", "--no-config", "-i"]}
FISH = "source {script}; complete -C {line} | string split -f1 \\t"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Two plugins whose import ends the process, beside a `sglang` and a `torch` that do the same."""
    poison = "import os\nos._exit(9)\n"
    made = Site(tmp_path_factory.mktemp("completion") / "site")
    files = {"acme.py": poison, "sglang/__init__.py": poison, "torch/__init__.py": poison}
    made.add("acme-dist", {SRT_PLATFORMS: {"acme": "acme:activate"}, SRT_PLUGINS: {"acme_hooks": "acme:register"}}, files)
    made.add("names", {SRT_PLATFORMS: dict.fromkeys(HOSTILE, "acme:activate")}, {})
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
        ("sglang-plug serve --platform ", ["acme", *HOSTILE]),
        ("sglang-plug resolve --platform ac", ["acme"]),
        ("sglang-plug resolve --env SGLANG_PLUG", ["SGLANG_PLUGINS="]),
        ("sglang-plug resolve --timeout ", []),
        ("sglang-plug check --select SP102,SP80", [f"SP102,{rule.code}" for rule in RULES if rule.code.startswith("SP80")]),
        ("sglang-plug explain does-not", [rule.slug for rule in RULES if rule.slug.startswith("does-not")]),
        ("sglang-plug doctor -- --ver", []),
        ("sglang-plug doctor -- ac", ["acme", "acme-dist", "acme_hooks"]),
        ("sglang-plug serve --plugins ", ["acme_hooks", "tracing"]),
        ("sglang-plug serve --plugins tracing,", ["tracing,acme_hooks"]),
        ("sglang-plug doctor ac", ["acme", "acme-dist", "acme_hooks"]),
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
        shown = [shlex.split(word)[0] for word in offered] if shell == "bash" else offered  # bash inserts what is offered as it is
        assert sorted(shown) == sorted(expected)
    assert not list(site.root.rglob("pwned"))


def press(shell: str, line: str, tail: str, site: Site) -> list[str]:
    """Type `line` and the tab key into an interactive shell, wait for `tail`, and return what the command is then given."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    env = {**site.env(), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(site.root), "TERM": "xterm"}
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(site.root)
        os.execvpe(START[shell][0], START[shell], env)
    seen = b""

    def send(keys: str, awaited: str) -> None:
        nonlocal seen
        start, deadline = len(seen), time.monotonic() + 20
        os.write(terminal, keys.encode())
        while awaited.encode() not in seen[start:]:
            assert time.monotonic() < deadline, seen
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 65536)

    try:
        send(TYPED[shell].format(script=data_dir("completions") / FILES[shell], override=OVERRIDE) + "\n", "#>")
        send(line, line[-2:])
        send("\t", tail)
        send("\n", "<end>")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    return re.findall("<(.*?)>", seen.decode().rpartition("\n")[0].rpartition("\n")[2] or seen.decode().splitlines()[-1])[:-1]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "tail", "given"),
    [
        ("sglang-plug resolve --platform=ac", "me", ["resolve", "--platform=acme"]),
        ("sglang-plug resolve --platform=semi", "pwned", ["resolve", "--platform=semi;touch pwned"]),
        ("sglang-plug doctor 'my", "chip", ["doctor", "my chip"]),
    ],
)
def test_what_a_shell_inserts_is_given_to_the_command_as_it_is(shell: str, line: str, tail: str, given: list[str], site: Site):
    assert press(shell, line, tail, site) == given
    assert not list(site.root.rglob("pwned"))


def test_the_powershell_script_is_powershell():
    parser = Parser(Language(tree_sitter_pwsh.language()))
    script = parser.parse((data_dir("completions") / FILES["powershell"]).read_bytes())
    assert not script.root_node.has_error
    assert parser.parse(b"foreach ($x in { }").root_node.has_error


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
