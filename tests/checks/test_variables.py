"""Variables: each value with what doctor says about it. The rules are pure, so no child is started."""

from __future__ import annotations

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.checks.rules import variables
from sglang_plug.checks.world import Entry, World
from sglang_plug.core import environ
from sglang_plug.core.policy import policy
from sglang_plug.core.resolution import Resolution
from sglang_plug.probe.environment import Environment
from sglang_plug.probe.inquiry import Decision
from tests.plugins.install import DIFFUSION_PLATFORMS, SRT_PLATFORMS, SRT_PLUGINS


def entry(name: str, group: str, dist: str | None = None) -> Entry:
    row = {
        "name": name,
        "value": f"{name}:activate",
        "group": group,
        "dist": dist or f"{name}-dist",
        "version": "1.0",
        "where": "/site",
        "line": 2,
    }
    return Entry(row)


def world(entries=(), *, chosen: Resolution | None = None, **env: str) -> World:
    facts = {"sglang": {"kind": "absent", "version": None}, "distributions": [], "entry_points": [], "problems": [], "shadowed": []}
    made = World(Environment("python", env, "/", "script"), facts, environ.read(env), "0.5.23", None, ("srt", "diffusion"))
    made.entries = list(entries)
    fallback = {"srt": Resolution("srt", "builtin", "base"), "diffusion": Resolution("diffusion", "builtin", "cpu")}
    made.decisions = {
        runtime: Decision(policy(runtime), chosen if chosen and chosen.runtime == runtime else fallback[runtime]) for runtime in fallback
    }
    return made


def told(made: World) -> dict[str, list]:
    found: dict[str, list] = {}
    for rule in variables.RULES:
        for finding in rule(made):
            found.setdefault(finding.code, []).append(finding)
    return found


PA = entry("pa", SRT_PLATFORMS)
DA = entry("da", DIFFUSION_PLATFORMS)
HK = entry("hk", SRT_PLUGINS)
GB = entry("gb", SRT_PLUGINS)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("nope", "pa"),
        ("PA", "case"),
        ("pa ", "blanks"),
        (" pa", "blanks"),
        (" ", "installed"),
        ("cuda", "built in"),
        ("CPU", "built in"),
        ("npu", "built in"),
        ("da", "diffusion platform"),
        ("pa-dist", "distribution"),
        ("paa", "did you mean 'pa'"),
        ("pa,da", "one entry point"),
        ("pa:activate", "export SGLANG_PLATFORM=pa"),
    ],
)
def test_platform_that_is_not_there(value, says):  # S3.1
    found = told(world([PA, DA], SGLANG_PLATFORM=value))
    assert found["SP101"][0].level is Level.ERROR
    assert says in " ".join(filter(None, (found["SP101"][0].message, found["SP101"][0].cause, found["SP101"][0].hint)))


def test_platform_that_is_there():
    assert not told(world([PA], SGLANG_PLATFORM="pa"))


def test_empty_means_unset():
    assert not told(world([PA], SGLANG_PLATFORM="", SGLANG_PLUGINS="", SGLANG_DIFFUSION_PLATFORM_OVERRIDE=""))


@pytest.mark.parametrize("value", ["D1", "DA", "nope", "pa"])
def test_override_that_is_not_there(value):  # S4.2
    assert "SP102" in told(world([PA, DA], SGLANG_DIFFUSION_PLATFORM_OVERRIDE=value))


@pytest.mark.parametrize("value", ["da", " da ", "CPU ", "cuda", "Musa"])
def test_override_that_is_there(value):  # S4.1
    assert not told(world([PA, DA], SGLANG_DIFFUSION_PLATFORM_OVERRIDE=value))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("HK", "case"),
        ("'hk'", "quotes"),
        ('"hk"', "quotes"),
        ("hk gb", "commas"),
        ("hk;gb", "commas"),
        ("hk:gb", "commas"),
        ("hk-dist", "distribution"),
        ("hk_dist", "distribution"),
        ("hkk", "did you mean 'hk'"),
        ("hk:activate", "write hk"),
        ("hk|gb", "commas"),
        ("all", "unset SGLANG_PLUGINS"),
        ("None", "SGLANG_PLUGINS=,"),
        ("something_else", "install"),
    ],
)
def test_allowlist_that_names_nothing(value, says):
    found = told(world([HK, GB], SGLANG_PLUGINS=value))
    assert says in " ".join(filter(None, (found["SP103"][0].message, found["SP103"][0].cause, found["SP103"][0].hint)))


@pytest.mark.parametrize("value", ["hk", "hk,gb", " hk , gb ", "hk,", ",hk"])
def test_allowlist_that_fits(value):
    assert not told(world([HK, GB], SGLANG_PLUGINS=value))


def test_allowlist_names_are_told_one_by_one():
    found = told(world([HK], SGLANG_PLUGINS="hk,typo,other"))
    assert [f.subject["value"] for f in found["SP103"]] == ["other", "typo"]


@pytest.mark.parametrize("value", [",", " , ", ",,"])
def test_allowlist_of_separators_loads_nothing(value):
    assert "SP104" in told(world([HK], SGLANG_PLUGINS=value))


def test_allowlist_hides_the_platform():  # S3.2
    found = told(world([PA, HK], SGLANG_PLUGINS="hk"))
    assert found["SP105"][0].level is Level.ERROR
    assert "SGLANG_PLATFORM=pa" in str(found["SP105"][0].hint)


def test_allowlist_does_not_hide_a_selected_platform():  # S3.1
    assert "SP105" not in told(world([PA, HK], SGLANG_PLUGINS="hk", SGLANG_PLATFORM="pa"))


def test_allowlist_that_leaves_another_platform_is_a_note():
    chosen = Resolution("srt", "plugin", "pb", "pb.Plat", "pb-dist")
    found = told(world([PA, entry("pb", SRT_PLATFORMS)], SGLANG_PLUGINS="pb", chosen=chosen))
    assert [f.level for f in found["SP105"]] == [Level.INFO]


def test_allowlist_drops_hooks_of_the_selected_package():
    own = entry("pa_hooks", SRT_PLUGINS, "pa-dist")
    chosen = Resolution("srt", "plugin", "pa", "pa.Plat", "pa-dist")
    found = told(world([PA, own, HK], SGLANG_PLUGINS="hk", SGLANG_PLATFORM="pa", chosen=chosen))
    assert "pa_hooks" in found["SP106"][0].message
    assert "SP106" not in told(world([PA, own, HK], SGLANG_PLUGINS="hk,pa_hooks", SGLANG_PLATFORM="pa", chosen=chosen))


def test_old_alias_that_overrides():
    found = told(world([HK, GB], SGL_PLUGINS="hk", SGLANG_PLUGINS="gb"))
    assert found["SP107"][0].level is Level.WARNING
    assert "'hk' counts" in found["SP107"][0].message


def test_old_alias_alone_is_a_note():
    assert [f.level for f in told(world([HK], SGL_PLUGINS="hk"))["SP107"]] == [Level.INFO]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SGLANG_PLUGIN", "SGLANG_PLUGINS"),
        ("SGLANG_PLUGINGS", "SGLANG_PLUGINS"),
        ("SGLANG_PULGINS", "SGLANG_PLUGINS"),
        ("sglang_plugins", "SGLANG_PLUGINS"),
        ("SGLANG_PLATFORMS", "SGLANG_PLATFORM"),
        ("SGLANG_PLATFROM", "SGLANG_PLATFORM"),
        ("SGLANG-PLATFORM", "SGLANG_PLATFORM"),
        ("SGALNG_PLATFORM", "SGLANG_PLATFORM"),
        ("SGLANG_DIFFUSION_PLATFORM", "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"),
        ("SGLANG_DIFFUSION_PLATFORM_OVERIDE", "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"),
        ("SGL_PLUGIN", "SGLANG_PLUGINS"),
        ("SGLANG_MULTIMODAL_GEN_PLATFORM", "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"),
        ("SGLANG_USE_CPU_ENGIN", "SGLANG_USE_CPU_ENGINE"),
    ],
)
def test_misspelt_variables(name, meant):
    found = told(world(**{name: "hk"}))
    assert f"did you mean {meant}?" in found["SP108"][0].message


@pytest.mark.parametrize(
    "name",
    [
        "SGLANG_ROUTER_SERVICE_PORT_80_TCP",
        "SGLANG_PLUGINS_SERVICE_HOST",
        "SGLANG_PLATFORM_PORT",
        "SGLANG_HOST_IP",
        "SGLANG_LOG_LEVEL",
        "SGLANG_PORT",
        "SGLANG_USE_AITER",
        "SGL_PLATFORM_X",
        "PLATFORM",
        "PLUGINS",
        "SGLANG_TORCH_PROFILER_DIR",
        "VLLM_PLUGINS",
        "PATH",
    ],
)
def test_other_variables_are_none_of_ours(name):
    assert "SP108" not in told(world([HK], **{name: "x"}))


def test_no_variable_of_sglang_itself_is_taken_for_a_misspelling():
    from sglang_plug.contract import catalogue

    real = catalogue.load(catalogue.newest()).environment
    assert len(real) > 100
    assert "SP108" not in told(world(**dict.fromkeys(real - set(environ.VARIABLES), "1")))


def test_variable_of_another_engine_that_names_our_plugin():
    assert "SGLANG_PLUGINS" in told(world([HK], VLLM_PLUGINS="hk"))["SP108"][0].message


@pytest.mark.parametrize(
    ("value", "fires"), [("true", True), ("2", True), (" 1", True), ("1", False), ("0", False), ("no", False), ("", False)]
)
def test_the_cpu_engine_takes_one_text(value, fires):
    assert ("SP110" in told(world(SGLANG_USE_CPU_ENGINE=value))) == fires


def test_a_nameless_entry_point_is_no_variables_matter():
    assert not told(world([entry("", SRT_PLATFORMS)]))


@pytest.mark.parametrize(
    ("left", "right", "far"), [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abc", "xyz", 3), ("", "abcd", 3)]
)
def test_distance(left, right, far):
    assert variables.distance(left, right) == far
