"""A launch as a value, and written down for others: every form is read back by the program it is for."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from sglang_plug import standin
from sglang_plug.launch import plan as plans
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.processes import expected
from sglang_plug.probe.environment import Environment
from sglang_plug.report import deployment

NASTY = ("--served-model-name", 'it\'s "quoted" $HOME %n \\ back', "--port", "31000")


def make(*tokens: str, engine: str = "sglang", env: dict[str, str] | None = None, **options) -> plans.Plan:
    environment = Environment("/opt/venv/bin/python", env or {}, "/srv")
    return plans.make(environment, tokens, engine=engine, release="0.5.23" if engine == "sglang" else None, **options)


def test_the_engines_arguments_are_untouched():
    tokens = ("--model-path", "m", "--tp-size=2", "--json", '{"a": 1}', "-x", "--", "rest")
    assert make(*tokens).argv[-len(tokens) :] == tokens


def test_selector_and_allowlist_beat_an_alias():
    plan = make(platform="acme", plugins="a,b", env={"SGL_PLATFORM": "old", "SGLANG_PLUGINS": "x"})
    assert plan.environment.env == {"SGLANG_PLATFORM": "acme", "SGLANG_PLUGINS": "a,b"}
    assert plan.changes == {"SGLANG_PLATFORM": "acme", "SGLANG_PLUGINS": "a,b", "SGL_PLATFORM": None}


def test_each_runtime_has_its_selector(tmp_path):
    (tmp_path / "model_index.json").write_text('{"_class_name": "P"}')
    plan = make("--model-path", str(tmp_path), platform="acme")
    assert plan.runtime == "diffusion"
    assert plan.environment.env == {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "acme"}


@pytest.mark.parametrize(
    ("tokens", "options", "runtime", "tail"),
    [
        ((), {}, "srt", ()),
        ((), {"runtime": "diffusion"}, "diffusion", ("--model-type", "diffusion")),
        ((), {"runtime": "srt"}, "srt", ("--model-type", "llm")),
        (("--model-type", "diffusion"), {}, "diffusion", ("--model-type", "diffusion")),
        (("--model-type", "diffusion"), {"runtime": "diffusion"}, "diffusion", ("--model-type", "diffusion")),
    ],
)
def test_the_runtime_is_said_once(tokens, options, runtime, tail):
    plan = make(*tokens, **options)
    assert plan.runtime == runtime
    assert plan.argv[4:] == tail


def test_sglangs_own_command_is_taken_where_it_is(tmp_path):
    python = tmp_path / "python"
    assert plans.program(str(python), "sglang") == (str(python), "-m", "sglang.cli.main", "serve")
    (tmp_path / "sglang").write_text("#!/bin/sh\n")
    (tmp_path / "sglang").chmod(0o755)
    assert plans.program(str(python), "sglang") == (str(tmp_path / "sglang"), "serve")
    assert plans.program(str(python), "standin") == (str(python), str(standin.COMMAND), "serve")


def test_the_stand_in_imports_nothing_from_the_working_directory(tmp_path):
    """As SGLang's own command: the preflight counts on it."""
    for name in ("json", "sglang"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('from the working directory')")
    command = [*plans.program(sys.executable, "standin")[:-1], "version"]
    done = subprocess.run(command, cwd=tmp_path, env=standin.environment(), capture_output=True, text=True, check=False)
    assert done.stdout.startswith("sglang version: ")


def test_a_shell_reads_back_what_was_meant(tmp_path):
    """The text is run by a real shell, with a program that shows its arguments in the engine's place."""
    show = tmp_path / "sglang"
    show.write_text(f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([sys.argv[1:], dict(os.environ)]))\n")
    show.chmod(0o755)
    environment = Environment(str(tmp_path / "python"), {"SGL_PLATFORM": "old"}, "/srv")
    plan = plans.make(environment, NASTY, engine="sglang", release="0.5.23", platform='a "b" $c')
    env = {"PATH": os.environ["PATH"], "SGL_PLATFORM": "old"}
    done = subprocess.run(["bash", "-c", deployment.render(plan, "shell")], env=env, capture_output=True, text=True, check=True)
    argv, seen = json.loads(done.stdout)
    assert argv == ["serve", *NASTY]
    assert seen["SGLANG_PLATFORM"] == 'a "b" $c'
    assert "SGL_PLATFORM" not in seen


def test_json():
    facts = json.loads(deployment.render(make(*NASTY, platform="acme"), "json"))
    assert facts["schema"] == 1
    assert facts["argv"][-4:] == list(NASTY)
    assert facts["env"] == {"SGLANG_PLATFORM": "acme"}
    assert facts["url"] == "http://127.0.0.1:31000"


def test_dockerfile():
    lines = deployment.render(make(*NASTY, platform='a"$b'), "dockerfile").splitlines()
    assert "FROM lmsysorg/sglang:v0.5.23" in lines
    assert 'ENV SGLANG_PLATFORM="a\\"\\$b"' in lines
    command = next(line for line in lines if line.startswith("CMD "))
    assert json.loads(command.removeprefix("CMD "))[-4:] == list(NASTY)
    assert "EXPOSE 31000" in lines
    assert any("--host 0.0.0.0" in line for line in lines)
    assert "--host 0.0.0.0" not in deployment.render(make("--host", "0.0.0.0"), "dockerfile")


def test_where_plugins_are_found_matters_on_this_machine_only():
    plan = make(env={"PYTHONPATH": "/plugins"})
    for form in ("shell", "json", "systemd"):
        assert "/plugins" in deployment.render(plan, form), form
    for form in ("dockerfile", "kubernetes"):
        assert "/plugins" not in deployment.render(plan, form), form


def test_a_line_break_in_a_variable_goes_through_env_in_a_dockerfile():
    lines = deployment.render(make("-x", "1\n2", env={"SGLANG_A": "1\n2", "SGLANG_B": "3"}), "dockerfile").splitlines()
    assert json.loads(next(line for line in lines if line.startswith("CMD ")).removeprefix("CMD ")) == [
        "env", "SGLANG_A=1\n2", "python", "-m", "sglang.cli.main", "serve", "-x", "1\n2",
    ]  # fmt: skip
    assert [line for line in lines if line.startswith("ENV")] == ['ENV SGLANG_B="3"']


def test_systemd_unit_escapes_what_systemd_expands():
    lines = deployment.render(make(*NASTY, platform="50%"), "systemd").splitlines()
    assert 'Environment="SGLANG_PLATFORM=50%%"' in lines
    start = next(line for line in lines if line.startswith("ExecStart="))
    assert "$$HOME %%n" in start
    words = shlex.split(start.removeprefix("ExecStart=").replace("$$", "$").replace("%%", "%"))  # systemd quotes as C does
    assert words[-3] == NASTY[1]
    assert "WorkingDirectory=/srv" in lines


def test_kubernetes_is_yaml_that_holds_the_command():
    yaml = pytest.importorskip("yaml")
    deployed = yaml.safe_load(deployment.render(make(*NASTY, platform="acme"), "kubernetes"))
    container = deployed["spec"]["template"]["spec"]["containers"][0]
    assert [word.replace("$$", "$") for word in container["command"][-4:]] == list(NASTY)
    assert "$$HOME" in container["command"][-3]
    assert container["env"] == [{"name": "SGLANG_PLATFORM", "value": "acme"}]
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": 31000}
    assert yaml.safe_load(deployment.render(make(), "kubernetes"))["spec"]["template"]["spec"]["containers"][0]["env"] == []


def kinds(text: str, release: str | None = "0.5.23", runtime: str = "srt") -> dict[str, tuple[int, bool]]:
    plan = plans.Plan("sglang", release, runtime, Environment("p", {}, "/"), (), {}, EngineArguments(tuple(text.split())))
    return {row.title: (row.count, row.hooks) for row in expected(plan)}


def test_processes_and_where_plugins_are_loaded():
    """As measured on the releases."""
    assert kinds("") == {"main": (1, True), "scheduler": (1, True), "detokenizer": (1, True)}
    assert kinds("", "0.5.21") == {"main": (1, True), "scheduler": (1, True), "detokenizer": (1, False)}
    assert kinds("--tp 2 --dp 2")["scheduler"] == (4, True)
    assert kinds("--dp 2", "0.5.21")["data-parallel controller"] == (1, False)
    assert kinds("--dp 2", "0.5.22")["data-parallel controller"] == (1, True)
    assert kinds("--tokenizer-worker-num 3")["tokenizer worker"] == (3, False)
    assert kinds("--use-ray")["scheduler"] == (1, False)
    assert kinds("--num-gpus 2", runtime="diffusion") == {"main": (1, True), "diffusion worker": (2, True)}
    assert kinds("", "0.5.20", runtime="diffusion")["main"] == (1, False)
