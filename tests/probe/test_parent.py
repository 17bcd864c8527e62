"""The tool's end: a child that cannot start, ends, or speaks nonsense is explained."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from sglang_plug.errors import ProbeError, UsageError
from sglang_plug.probe import headstart
from sglang_plug.probe.environment import Environment, find_python, variables_for
from sglang_plug.probe.parent import Probe, ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.plugins.install import Site


def test_an_interpreter_that_is_not_there(here: Callable[..., Environment]) -> None:
    with pytest.raises(ProbeError) as caught:
        Probe(replace(here(), python="/nowhere/python"))
    assert caught.value.subject == "/nowhere/python"


def test_a_start_file_that_exits_is_shown(here: Callable[..., Environment], site: Site) -> None:
    site.write({"sitecustomize.py": "import os, sys\nsys.stderr.write('licence expired\\n')\nsys.stderr.flush()\nos._exit(5)\n"})
    with Probe(here()) as probe, pytest.raises(ProbeError) as caught:
        probe.require({"op": "environment"})
    assert "exit 5" in caught.value.message
    assert caught.value.cause == "licence expired"


def test_a_start_file_that_hangs_ends_in_time(here: Callable[..., Environment], site: Site) -> None:
    site.write({"sitecustomize.py": "import time\ntime.sleep(600)\n"})
    with Probe(here()) as probe:
        reply = probe.ask({"op": "environment"}, timeout=1.0)
    assert reply.ended == "timeout"


def test_a_start_file_that_prints_does_not_spoil_the_answer(here: Callable[..., Environment], site: Site) -> None:
    site.write({"sitecustomize.py": "print('hello' * 100000)\n"})
    assert ask(here(), {"op": "environment"}).value["interpreter"]["cwd"] == here().cwd


def test_an_operation_that_does_not_exist_is_our_defect(here: Callable[..., Environment]) -> None:
    with Probe(here()) as probe, pytest.raises(ProbeError) as caught:
        probe.ask({"op": "nonsense"})
    assert "KeyError" in (caught.value.cause or "")


@pytest.mark.parametrize("launch", ["script", "module"])
def test_the_launch_style_decides_what_is_first_on_the_path(here: Callable[..., Environment], launch: str) -> None:
    environment = replace(here(), launch=launch)  # type: ignore[arg-type]
    path = ask(environment, {"op": "environment"}).value["interpreter"]["path"]
    assert path[0] == (environment.cwd if launch == "module" else os.path.dirname(sys.executable))
    assert not any("sglang_plug/probe" in entry for entry in path)


def test_a_safe_path_has_neither(here: Callable[..., Environment], site: Site) -> None:
    path = ask(here(PYTHONSAFEPATH="1"), {"op": "environment"}).value["interpreter"]["path"]
    assert path[0] == str(site.root)


def test_a_module_of_the_stranger_does_not_shadow_ours(here: Callable[..., Environment], site: Site) -> None:
    site.write({"metadata.py": "1/0", "isolation.py": "1/0", "service.py": "1/0", "child.py": "1/0", "inside.py": "1/0"})
    assert ask(here(), {"op": "environment"}).ended == "ok"


def test_the_waiting_child_is_taken_once_and_only_by_its_own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    headstart.begin(["resolve", "--format", "json"])
    (waiting,) = headstart._waiting
    with headstart.take(Environment.here()) as taken:
        assert taken is waiting
        assert taken.require(headstart.FIRST)["interpreter"]["executable"]
        assert taken.require({"op": "locate", "qualname": "nowhere.Plat"})["verdict"] == "missing_module"  # and not the first answer again
    headstart.begin(["resolve"])
    monkeypatch.setenv("SGLANG_PLATFORM", "other")
    (waiting,) = headstart._waiting
    with headstart.take(Environment.here()) as fresh:
        assert fresh is not waiting
    assert waiting._process.poll() is not None


@pytest.mark.parametrize(
    "argv",
    [["resolve", "--platform", "x"], ["resolve", "--env=A=1"], ["resolve", "--help"], ["doctor"], [], ["resolve", "--python", "/no"]],
)
def test_no_head_start_where_the_environment_is_in_doubt(argv: list[str]) -> None:
    headstart.begin(argv)
    assert headstart._waiting == []


def test_an_interpreter_is_named_by_path_folder_or_command(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    assert find_python(str(tmp_path)) == str(tmp_path / "bin" / "python")
    assert os.path.isabs(find_python("python3"))
    with pytest.raises(UsageError) as caught:
        find_python("/nowhere/python")
    assert caught.value.hint


def test_a_what_if_beats_the_aliases_inside_sglang() -> None:
    assert variables_for(platform="pa", plugins="a,b", env=["X=1=2", "GONE", "EMPTY="], runtimes=("srt",)) == {
        "SGL_PLATFORM": None,
        "SGLANG_PLATFORM": "pa",
        "SGL_PLUGINS": None,
        "SGLANG_PLUGINS": "a,b",
        "X": "1=2",
        "GONE": None,
        "EMPTY": "",
    }


@pytest.mark.parametrize(("platform", "env"), [(None, ["=x"]), (None, ["A B=x"]), ("pa", ["SGLANG_PLATFORM=pb"]), (None, ["X=1", "X=2"])])
def test_a_what_if_that_says_nothing_or_two_things_is_refused(platform: str | None, env: list[str]) -> None:
    with pytest.raises(UsageError):
        variables_for(platform=platform, env=env)


def test_a_what_if_may_set_the_alias_that_it_removed() -> None:
    assert variables_for(platform="pa", env=["SGL_PLATFORM=pb"], runtimes=("srt",))["SGL_PLATFORM"] == "pb"
