"""What a user reads before a launch: the screen, the findings, and how they are set. The narrator writes to a real stream."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from sglang_plug.checks.model import Finding, Level
from sglang_plug.core.entrypoints import SRT_PLUGINS
from sglang_plug.core.resolution import Failure, Resolution
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.plan import Plan
from sglang_plug.launch.preflight import Preflight, Request, examine, skip
from sglang_plug.probe.environment import Environment
from sglang_plug.report.launch import Narrator
from tests.plugins.install import DIFFUSION_PLATFORM, DIFFUSION_PLATFORMS, PLATFORM, SRT_PLATFORMS, Site, hook, platform

PLAN = Plan("sglang", "0.5.23", "srt", Environment("p", {}, "/"), ("sglang", "serve"), {}, EngineArguments())


def shown(capsys: pytest.CaptureFixture[str], flight: Preflight) -> list[str]:
    Narrator().screen(flight, (), None)
    return capsys.readouterr().err.splitlines()


def test_plugins_that_are_installed_are_shown_where_no_platform_is_decided(capsys):
    row = {"group": SRT_PLUGINS, "name": "hk", "value": "hk:r", "dist": "hk-dist", "version": "1.0"}
    survey = SimpleNamespace(facts={"entry_points": [row, {**row, "group": "another", "name": "no"}]})
    broken = Resolution("srt", "error", error=Failure("RuntimeError", "not found"))
    lines = shown(capsys, Preflight(PLAN, broken, survey=survey))  # type: ignore[arg-type]
    assert "plugins    open     hk (hk-dist 1.0): not decided, for no platform is" in lines
    survey.facts["entry_points"] = []
    assert "plugins    none installed" in shown(capsys, Preflight(PLAN, broken, survey=survey))  # type: ignore[arg-type]


def test_the_fingerprint_is_shown_where_it_is_known(capsys):
    assert any("abc123" in line and "--expect-fingerprint" in line for line in shown(capsys, Preflight(PLAN, fingerprint="abc123")))
    assert not any("fingerprint" in line for line in shown(capsys, Preflight(PLAN)))


def test_the_command_of_the_standin_can_be_copied(capsys):
    assert "command    sglang serve" in shown(capsys, Preflight(PLAN))
    plan = replace(PLAN, engine="standin", changes={"PYTHONPATH": "/the stand-in:/b", "SGLANG_PLATFORM": "x"})
    assert "command    PYTHONPATH='/the stand-in:/b' sglang serve" in shown(capsys, Preflight(plan))


def test_every_line_of_a_cause_stands_under_the_first(capsys):
    Narrator().finding(Finding("SP050", Level.ERROR, {}, "it failed", "outer\ninner \x1b[31m", "do it"))
    assert capsys.readouterr().err.splitlines() == ["error SP050: it failed", "  cause: outer", "         inner \\x1b[31m", "  hint: do it"]


def around(site: Site, **env: str) -> Environment:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "SGL_"))}
    return Environment(sys.executable, {**clean, "PYTHONPATH": str(site.root), **env}, str(site.root))


def findings(site: Site, **env: str) -> dict[str, list[Finding]]:
    environment = around(site, **env)
    found: dict[str, list[Finding]] = {}
    for finding in examine(Request(environment, ("--port", "0"), "standin")).findings:
        found.setdefault(finding.code, []).append(finding)
    return found


@pytest.mark.parametrize(
    ("variable", "env", "level"),
    [
        ("SGLANG_PLATFROM", {}, Level.ERROR),  # the platform was to be selected by it
        ("SGLANG_PLATFROM", {"SGLANG_PLATFORM": "pa"}, Level.WARNING),  # another variable selects one
        ("SGLANG_PLUGIN", {}, Level.WARNING),
    ],
)
def test_a_misspelt_selector_forbids_the_start(tmp_path, variable, env, level):
    site = Site(tmp_path / "site")
    platform(site)
    (told,) = findings(site, **{variable: "p$a"}, **env)["SP108"]
    assert told.level is level
    assert told.subject["name"] == variable
    assert "unset " + variable in (told.hint or "")
    assert "'p$a'" in (told.hint or "")  # quoted for a shell
    assert ("--allow SP108" in (told.hint or "")) is (level is Level.ERROR)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('    device_type = "mydev"\n', True),
        ('    device_type: str = "mydev"\n', True),
        ('    device_type = "cpu"\n', False),
        ("    device_type = str(1)\n", False),
        ("    pass\n", False),
        ("    pass\n\nclass Broken(:\n", False),
    ],
)
def test_a_device_of_its_own_is_told_before_the_start(tmp_path, body, told):
    site = Site(tmp_path / "site")
    platform(site, plat=f"from sglang.srt.platforms.interface import SRTPlatform\nclass Plat(SRTPlatform):\n{body}")
    found = findings(site).get("SP063", [])
    assert [(finding.level, finding.subject["name"]) for finding in found] == ([(Level.WARNING, "pa.plat.Plat")] if told else [])


def test_a_trap_that_the_source_tells_is_a_finding(tmp_path):
    site = Site(tmp_path / "site")
    body = "from sglang.srt.plugins.hook_registry import HookRegistry, HookType\ndef before(*args): return None\ndef register():\n"
    hook(site, body + "    HookRegistry.register('sglang.srt.managers.scheduler.run_scheduler_process', before, HookType.BEFORE)\n")
    assert [told.level for told in findings(site)["SP060"]] == [Level.WARNING]


@pytest.mark.parametrize(
    ("tokens", "runtime", "served", "hint"),
    [
        ((), "auto", "diffusion", None),
        (("--model-path", "some/name"), "auto", "diffusion", None),
        (("--model-path", "."), "auto", "srt", "serve with --runtime diffusion"),  # a model here, and not one of diffusion
        (("--model-type", "llm"), "auto", "srt", "serve with --runtime diffusion"),
        ((), "srt", "srt", "serve with --runtime diffusion"),
    ],
)
def test_a_platform_of_diffusion_alone(tmp_path, monkeypatch, tokens, runtime, served, hint):
    site = Site(tmp_path / "site")
    platform(site, group=DIFFUSION_PLATFORMS, plat=DIFFUSION_PLATFORM)
    monkeypatch.chdir(tmp_path)
    request = Request(around(site), ("--port", "0", *tokens), "standin", runtime, "pa")
    flight = examine(request)
    assert flight.plan.runtime == skip(request).plan.runtime == served
    assert [(told.hint, "diffusion runtime only" in (told.cause or "")) for told in flight.findings if told.code == "SP050"] == (
        [] if hint is None else [(hint, True)]
    )


def test_a_platform_that_raises_is_told_once_with_the_place(tmp_path):
    site = Site(tmp_path / "site")
    platform(site, activate="def activate():\n    raise OSError('driver gone')\n")
    (told,) = findings(site, SGLANG_PLATFORM="pa")["SP050"]
    assert told.message == "platform plugin 'pa' fails: OSError: driver gone"
    assert (told.cause or "").endswith("pa/__init__.py:2")
    assert "sglang-plug doctor" in (told.hint or "")


@pytest.mark.parametrize(("group", "level"), [(DIFFUSION_PLATFORMS, Level.ERROR), (SRT_PLATFORMS, Level.WARNING)])
def test_a_platform_that_is_not_marked_as_one_is_told_before_the_start(tmp_path, group, level):
    site = Site(tmp_path / "site")
    text = DIFFUSION_PLATFORM if group == DIFFUSION_PLATFORMS else PLATFORM
    platform(site, group=group, plat=text.replace("PlatformEnum.OOT", "PlatformEnum.CPU"))
    runtime = "diffusion" if group == DIFFUSION_PLATFORMS else "srt"
    flight = examine(Request(around(site), ("--port", "0"), "standin", runtime, "pa"))
    assert [told.level for told in flight.findings if told.code == "SP404"] == [level]
