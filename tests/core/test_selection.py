"""The chain as a pure function: who is asked, in which order, and the trail it leaves (S3, S4)."""

from __future__ import annotations

from typing import Any

import pytest

from sglang_plug.core import environ
from sglang_plug.core.entrypoints import Candidate
from sglang_plug.core.policy import DIFFUSION, SRT, Policy, policy
from sglang_plug.core.resolution import Resolution
from sglang_plug.core.selection import Activation, Choice, Detection, ErrorFacts, plugins_to_load, select

BOTH = pytest.mark.parametrize("rules", [SRT, DIFFUSION], ids=["srt", "diffusion"])


def candidate(name: str, dist: str = "d") -> Candidate:
    return Candidate(name, f"{dist}:activate", "group", dist)


def walk(
    rules: Policy, env: dict[str, str], does: dict[Candidate, Any], present: tuple[str, ...] = ()
) -> tuple[Resolution, list[str], list[str]]:
    """Return the answer, who was activated and what was probed, in order."""
    activated: list[str] = []
    probed: list[str] = []

    def activate(asked: Candidate) -> Activation:
        activated.append(asked.dist or "")
        answer = does[asked]
        return answer if isinstance(answer, Activation) else Activation(answer)

    def detect(name: str) -> Detection:
        probed.append(name)
        return Detection(name in present or (rules is DIFFUSION and name == "cpu"), "as told")

    return select(rules, environ.read(env), does, activate=activate, detect=detect), activated, probed


def trail(found: Resolution) -> list[tuple[str, str, str]]:
    return [(step.rule, step.subject, step.verdict) for step in found.steps]


@BOTH
def test_nothing_installed_probes_in_order(rules: Policy):
    found, _, probed = walk(rules, {}, {}, ("rocm",))
    order = [entry.name for entry in rules.builtins]
    assert probed == order[: order.index("rocm") + 1]
    assert (found.outcome, found.name, found.qualname) == ("builtin", "rocm", rules.builtin("rocm").qualname)
    assert trail(found) == [
        ("selector", rules.selector, "unset"),
        *[("detect", name, "absent") for name in order[: order.index("rocm")]],
        ("detect", "rocm", "present"),
        ("fallback", "rocm", "chosen"),
    ]


def test_srt_ends_at_the_base_class():
    found, _, probed = walk(SRT, {}, {})
    assert (found.outcome, found.name, found.qualname) == ("builtin", "base", "sglang.srt.platforms.interface.SRTPlatform")
    assert probed == ["cpu", "cuda", "rocm", "xpu"]


@BOTH
def test_one_active_plugin_stops_before_hardware(rules: Policy):
    found, activated, probed = walk(rules, {}, {candidate("a", "da"): None, candidate("b", "db"): "b.plat.P"}, ("cuda",))
    assert (found.outcome, found.name, found.qualname, found.dist) == ("plugin", "b", "b.plat.P", "db")
    assert (activated, probed) == (["da", "db"], [])
    assert trail(found) == [
        ("selector", rules.selector, "unset"),
        ("activate", "a", "inactive"),
        ("activate", "b", "active"),
        ("class", "b.plat.P", "chosen"),
    ]


@BOTH
def test_a_selection_asks_only_the_selected(rules: Policy):
    found, activated, probed = walk(
        rules, {rules.selector or "": "b", "SGLANG_PLUGINS": "x"}, {candidate("a", "da"): "a.P", candidate("b", "db"): "b.P"}
    )
    assert (found.name, activated, probed) == ("b", ["db"], [])
    assert ("selector", "a", "skipped") in trail(found)


@BOTH
def test_a_failing_selection_carries_the_root_cause(rules: Policy):
    error = Activation(error=ErrorFacts("ImportError", "cannot", cause="OSError: libx.so.3", phase="load"))
    found, _, _ = walk(rules, {rules.selector or "": "a"}, {candidate("a"): error})
    assert found.outcome == "error"
    assert found.error is not None
    assert (found.error.type, found.error.message, found.error.cause) == ("ImportError", "cannot", "OSError: libx.so.3")
    assert trail(found)[-1] == ("activate", "a", "failed")


def test_a_callback_that_raises_is_passed_over_by_srt_and_ends_diffusion():
    does = {candidate("a", "da"): Activation(error=ErrorFacts("OSError", "hw")), candidate("b", "db"): "b.P"}
    found, _, _ = walk(SRT, {}, does)
    assert (found.outcome, found.name) == ("plugin", "b")
    assert ("activate", "a", "failed") in trail(found)
    found, activated, _ = walk(DIFFUSION, {}, does)
    assert (found.outcome, activated) == ("error", ["da"])


@BOTH
def test_a_process_that_ends_ends_the_walk(rules: Policy):
    found, _, probed = walk(rules, {}, {candidate("a"): Activation(error=ErrorFacts("SystemExit", "7"), fatal=True)})
    assert (found.outcome, probed) == ("error", [])


@BOTH
def test_several_active_ask_for_the_selector(rules: Policy):
    found, _, _ = walk(rules, {}, {candidate("a", "da"): "a.P", candidate("b", "db"): "b.P"})
    assert found.error is not None
    assert found.error.message == f"Multiple platform plugins activated: 'a', 'b'. Set {rules.selector} to select one."
    assert found.error.hint == f"export {rules.selector}=a"


@BOTH
def test_a_typo_gets_a_suggestion(rules: Policy):
    found, activated, _ = walk(rules, {rules.selector or "": "kunln"}, {candidate("kunlun"): "k.P"})
    assert found.error is not None
    assert "available: 'kunlun'" in found.error.message
    assert "export " + str(rules.selector) + "=kunlun" in (found.error.hint or "")
    assert activated == []


def test_the_allowlist_filters_srt_only():
    does = {candidate("a"): "a.P"}
    found, activated, _ = walk(SRT, {"SGLANG_PLUGINS": "b"}, does)
    assert (found.name, activated) == ("base", [])
    assert ("allowlist", "a", "skipped") in trail(found)
    assert walk(DIFFUSION, {"SGLANG_PLUGINS": "b"}, does)[0].name == "a"


def test_a_built_in_alias_enumerates_nothing():
    def explode() -> Any:
        raise AssertionError("nobody may look")
        yield

    found = select(DIFFUSION, environ.read({"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "Cuda "}), explode(), activate=explode, detect=explode)  # type: ignore[arg-type]
    assert (found.outcome, found.name) == ("builtin", "cuda")


def test_before_diffusion_had_plugins_they_are_not_asked():
    found, activated, _ = walk(policy("diffusion", "0.5.20"), {}, {candidate("a"): "a.P"}, ("cpu",))
    assert (found.name, activated) == ("cpu", [])
    found, _, _ = walk(policy("diffusion", "0.5.20"), {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "a"}, {candidate("a"): "a.P"})
    assert found.error is not None
    assert found.error.message == "Unsupported SGLANG_DIFFUSION_PLATFORM_OVERRIDE='a'"
    found, _, _ = walk(policy("diffusion", "0.5.12"), {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "cuda"}, {}, ("cpu",))
    assert found.name == "cpu"  # nobody reads the variable yet


@pytest.mark.parametrize(("rules", "order"), [(SRT, ["load a", "load b", "call a", "call b"]), (DIFFUSION, ["call a", "call b"])])
def test_srt_imports_all_before_it_calls_any(rules: Policy, order: list[str]):
    seen: list[str] = []

    def activate(asked: Candidate) -> Activation:
        seen.append(f"call {asked.name}")
        return Activation()

    select(
        rules,
        environ.read({}),
        [candidate("a"), candidate("b")],
        activate=activate,
        detect=lambda name: Detection(True, ""),
        load=lambda asked: seen.append(f"load {asked.name}"),
    )
    assert seen == order


@pytest.mark.parametrize("qualname", ["", "a b", "1a.B", "a..B", "a.B:", "a:b:c", "a.B-C"])
def test_a_name_that_cannot_be_one_is_an_error_before_any_import(qualname: str):
    found, _, _ = walk(SRT, {}, {candidate("a"): qualname})
    if qualname == "a.B:":
        assert found.outcome == "plugin"  # the resolver takes a colon with nothing behind it
    else:
        assert found.error is not None
        assert (found.error.type, found.error.message) == ("ValueError", f"invalid format: {qualname!r}")


# -- hook plugins


def choices(
    rules: Policy, env: dict[str, str], general: list[Candidate], platforms: list[Candidate], chosen: str | None = None
) -> list[Any]:
    resolution = Resolution(rules.runtime, "plugin" if chosen else "builtin", "x", "x.P", chosen)
    made: tuple[Choice, ...] = plugins_to_load(rules, environ.read(env), general, platforms, resolution)
    return [(choice.candidate.name, choice.candidate.dist, choice.verdict, choice.required) for choice in made]


def test_srt_skips_platform_packages_that_are_not_selected():
    general = [candidate("p", "da"), candidate("q", "db"), candidate("r", "dc")]
    platforms = [candidate("a", "da"), candidate("b", "db")]
    assert choices(SRT, {"SGLANG_PLATFORM": "a"}, general, platforms) == [
        ("p", "da", "load", False),
        ("q", "db", "skipped", False),
        ("r", "dc", "load", False),
    ]
    assert {verdict for *_, verdict, _ in choices(SRT, {}, general, platforms)} == {"load"}


def test_diffusion_requires_the_selected_package_and_skips_the_other_platforms():
    general = [candidate("p", "da"), candidate("q", "db"), candidate("r", "dc")]
    platforms = [candidate("a", "da"), candidate("b", "db")]
    assert choices(DIFFUSION, {}, general, platforms, "da") == [
        ("p", "da", "load", True),
        ("q", "db", "skipped", False),
        ("r", "dc", "load", False),
    ]
    assert choices(DIFFUSION, {"SGLANG_PLUGINS": "r"}, general, platforms, "da")[0] == ("p", "da", "skipped", True)


def test_equal_names_of_plugins():
    general = [candidate("p", "da"), candidate("x", "db"), candidate("p", "dc")]
    assert [row[2] for row in choices(SRT, {}, general, [])] == ["shadowed", "load", "load"]
    assert [row[2] for row in choices(DIFFUSION, {}, general, [])] == ["refused", "load", "refused"]
    assert [row[2] for row in choices(DIFFUSION, {}, general, [candidate("a", "dc")])] == ["load", "load", "skipped"]
