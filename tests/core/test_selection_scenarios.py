"""Every executed scenario of platform selection, from metadata on disk to the platform object, against what real SGLang answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from sglang_plug.core import environ
from tests.core.worlds import SELECTORS, calls, outcome, plugin, running
from tests.plugins.install import DIFFUSION_PLATFORMS, SRT_PLATFORMS, Site

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GROUPS = {"srt": SRT_PLATFORMS, "diffusion": DIFFUSION_PLATFORMS}
NOT_FOUND = "RuntimeError: SGLANG_PLATFORM={!r} not found in discovered platform plugins (available: 'demo')"
UNSUPPORTED = (
    "ValueError: Unsupported SGLANG_DIFFUSION_PLATFORM_OVERRIDE={!r}; entry point not found in group "
    "'sglang.multimodal_gen.platforms' (available: 'demo')."
)
UNAVAILABLE = "RuntimeError: Platform plugin 'demo' is installed but activate() returned None (hardware not available on this machine?)."
MUST_SET = "TypeError: External diffusion platform p.plat.{} must set _enum = fake_engine.PlatformEnum.OOT"


@dataclass(frozen=True)
class Scenario:
    """What is installed, asked for and expected.

    Attributes:
        name: as the measured scenario is called.
        expected: the platform, or the beginning of `Type: message`.
        answers: what each entry point's callback does; two of one name are two distributions.
        called: the callbacks that ran; None where no plugin may even be imported.
        selector, plugins: the variables.
        present: devices of the machine.
    """

    name: str
    expected: str
    answers: tuple[tuple[str, str], ...] = (("demo", "return 'p.plat.A'"),)
    called: tuple[str, ...] | None = ("demo",)
    selector: str = ""
    plugins: str | None = None
    present: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


def answers(*values: str, names: tuple[str, ...] = ("demo", "b")) -> tuple[tuple[str, str], ...]:
    return tuple(zip(names, values, strict=False))


A, NONE, RAISE = "return 'p.plat.A'", "return None", "raise OSError('hw')"

SRT_SCENARIOS = (
    Scenario("auto active", "A"),
    Scenario("selected ok", "A", selector="demo"),
    Scenario("selected unknown", NOT_FOUND.format("nope"), selector="nope", called=None),
    Scenario("selected builtin name cuda", NOT_FOUND.format("cuda"), selector="cuda", called=None, present=("cuda",)),
    Scenario("selected with surrounding space", NOT_FOUND.format(" demo"), selector=" demo", called=None),
    Scenario("selected different case", NOT_FOUND.format("DEMO"), selector="DEMO", called=None),
    Scenario("selected returns None", UNAVAILABLE, answers(NONE), selector="demo"),
    Scenario("selected raises", "OSError: hw", answers(RAISE), selector="demo"),
    Scenario("auto: raises -> fallback", "Platform", answers(RAISE)),
    Scenario("auto: raises + other ok", "A", answers(RAISE, A), ("demo", "b")),
    Scenario(
        "auto: two active",
        "RuntimeError: Multiple platform plugins activated: 'demo', 'b'. Set SGLANG_PLATFORM to select one.",
        answers(A, A),
        ("demo", "b"),
    ),
    Scenario("auto: None", "Platform", answers(NONE)),
    Scenario("auto: None with a device", "Cuda", answers(NONE), present=("cuda", "xpu")),
    Scenario("auto: empty string", "ValueError: invalid format: ''", answers("return ''")),
    Scenario("auto: spaces around", "ValueError: invalid format: ' p.plat.A'", answers("return ' p.plat.A'")),
    Scenario("auto: returns class object", "TypeError: expected string or bytes-like object, got 'type'", answers("return object")),
    Scenario("auto: colon qualname", "A", answers("return 'p.plat:A'")),
    Scenario("auto: not a platform class", "TypeError: Expected a", answers("return 'p.plat.NotPlat'")),
    Scenario("auto: _enum not OOT", "NoEnum", answers("return 'p.plat.NoEnum'")),
    Scenario("auto: ctor needs arg", "TypeError: NeedsArg.__init__() missing 1 required", answers("return 'p.plat.NeedsArg'")),
    # The releases raise AttributeError for the next four, which `from … import current_platform` turns into nonsense.
    Scenario("auto: missing class", "TypeError: module 'p.plat' has no attribute 'Missing'", answers("return 'p.plat.Missing'")),
    Scenario("auto: missing module", "TypeError: module 'p' has no attribute 'nomod'", answers("return 'p.nomod.A'")),
    Scenario("auto: import fails inside", "ModuleNotFoundError: No module named 'no_such_module_xyz'", answers("return 'p.broken.A'")),
    Scenario("auto: import fails inside (colon)", "ModuleNotFoundError: No module named 'no_such_mod", answers("return 'p.broken:A'")),
    Scenario("SGLANG_PLUGINS filters auto platform", "Platform", plugins="other", called=None),
    Scenario("SGLANG_PLUGINS ignored when SGLANG_PLATFORM set", "A", selector="demo", plugins="other"),
    Scenario("SGLANG_PLUGINS only commas", "Platform", plugins=",", called=None),
    Scenario("SGLANG_PLUGINS empty string", "A", plugins=""),
    Scenario("SGLANG_PLUGINS with spaces", "A", plugins=" x , demo "),
    Scenario("duplicate name (auto)", "NoEnum", answers(A, "return 'p.plat.NoEnum'", names=("demo", "demo")), ("demo",)),
    Scenario("duplicate name (selected)", "NoEnum", answers(A, "return 'p.plat.NoEnum'", names=("demo", "demo")), ("demo",), "demo"),
    Scenario("cpu engine", "Cpu", answers(NONE), present=("cpu", "cuda")),
    Scenario("SGL_ alias wins", NOT_FOUND.format("x"), selector="demo", called=None, env={"SGL_PLATFORM": "x"}),
    Scenario("empty SGL_ alias wins", "A", selector="nope", env={"SGL_PLATFORM": ""}),
)

DIFFUSION_SCENARIOS = (
    Scenario("auto one active", "A"),
    Scenario("selected ok (other not imported)", "A", answers(A, RAISE), selector="demo"),
    Scenario("selected builtin cuda: no plugin import", "Cuda", selector="cuda", called=None),
    Scenario("selected builtin, other case and spaces", "Cuda", selector=" CUDA ", called=None),
    Scenario("selected unknown", UNSUPPORTED.format("nope"), selector="nope", called=None),
    Scenario("xpu stays automatic-only", UNSUPPORTED.format("xpu"), selector="xpu", called=None),
    Scenario("selected with surrounding space", "A", selector=" demo "),
    Scenario("selector of spaces is none", "A", selector="  "),
    Scenario("selected different case", UNSUPPORTED.format("DEMO"), selector="DEMO", called=None),
    Scenario("selected returns None", UNAVAILABLE, answers(NONE), selector="demo"),
    Scenario("selected raises", "OSError: hw", answers(RAISE), selector="demo"),
    Scenario("auto raises -> abort", "OSError: hw", answers(RAISE)),
    Scenario(
        "auto two active",
        "RuntimeError: Multiple platform plugins activated: 'demo', 'b'. Set SGLANG_DIFFUSION_PLATFORM_OVERRIDE to select one.",
        answers(A, A),
        ("demo", "b"),
    ),
    Scenario("auto None -> builtin", "Cpu", answers(NONE)),
    Scenario("built-ins in order", "Rocm", answers(NONE), present=("cuda", "rocm", "npu")),
    Scenario("auto empty string", "TypeError: Diffusion platform plugin 'demo' must return a non-empty", answers("return ''")),
    Scenario("auto spaces around qualname", "A", answers("return ' p.plat.A '")),
    Scenario("auto returns class object", "TypeError: Diffusion platform plugin 'demo' must return a non-empty", answers("return object")),
    Scenario("auto colon qualname", "A", answers("return 'p.plat:A'")),
    Scenario("auto not a platform", "TypeError: Expected a Platform subclass: p.plat.NotPlat", answers("return 'p.plat.NotPlat'")),
    Scenario("auto _enum UNSPECIFIED", MUST_SET.format("NoEnum"), answers("return 'p.plat.NoEnum'")),
    Scenario(
        "auto missing device_name",
        "TypeError: External diffusion platform p.plat.NoName must define a non-empty device_name",
        answers("return 'p.plat.NoName'"),
    ),
    Scenario(
        "auto missing device_type",
        "TypeError: External diffusion platform p.plat.NoType must define a non-empty device_type",
        answers("return 'p.plat.NoType'"),
    ),
    Scenario("auto ctor needs arg", "TypeError: NeedsArg.__init__() missing 1 required", answers("return 'p.plat.NeedsArg'")),
    Scenario("auto missing class", "TypeError: module 'p.plat' has no attribute 'Missing'", answers("return 'p.plat.Missing'")),
    Scenario("auto import fails inside", "ModuleNotFoundError: No module named 'no_such_module_xyz'", answers("return 'p.broken.A'")),
    Scenario("auto import fails inside (colon)", "ModuleNotFoundError: No module named 'no_such_m", answers("return 'p.broken:A'")),
    Scenario(
        "auto plugin returns builtin",
        "TypeError: External diffusion platform fake_engine.Cuda must set",
        answers("return 'fake_engine.Cuda'"),
    ),
    Scenario(
        "auto reserved name",
        "RuntimeError: Diffusion platform entry points cannot use built-in names: 'cuda'",
        answers(A, names=("cuda",)),
        None,
    ),
    Scenario(
        "auto reserved name other case",
        "RuntimeError: Diffusion platform entry points cannot use built-in names: 'CUDA'",
        answers(A, names=("CUDA",)),
        None,
    ),
    Scenario("reserved name ep + builtin override", "Cuda", answers(A, names=("cuda",)), None, "cuda"),
    Scenario("unrelated reserved name ep + explicit other", "A", answers(A, A, names=("cuda", "demo")), ("demo",), "demo"),
    Scenario("selected name differs only in case from reserved", "Cuda", answers(A, names=("Cuda",)), None, "Cuda"),
    Scenario(
        "duplicate name auto",
        "RuntimeError: Diffusion platform entry-point names must be unique: 'demo'",
        answers(A, A, names=("demo", "demo")),
        None,
    ),
    Scenario(
        "duplicate name, selected that name",
        "RuntimeError: Diffusion platform entry-point names must be unique: 'demo'",
        answers(A, A, names=("demo", "demo")),
        None,
        "demo",
    ),
    Scenario("duplicate of unrelated name, explicit other", "A", answers(A, A, A, names=("x", "x", "demo")), ("demo",), "demo"),
    Scenario("SGLANG_PLUGINS does not filter diffusion platforms", "A", plugins="other"),
    Scenario("SGLANG_PLATFORM ignored", "A", env={"SGLANG_PLATFORM": "nope"}),
)

ALL = [("srt", scenario) for scenario in SRT_SCENARIOS] + [("diffusion", scenario) for scenario in DIFFUSION_SCENARIOS]


@pytest.mark.parametrize(("runtime", "scenario"), ALL, ids=[f"{runtime}-{scenario.name}" for runtime, scenario in ALL])
def test_scenario(runtime: str, scenario: Scenario, tmp_path: Path):
    env = {SELECTORS[runtime]: scenario.selector, **scenario.env}
    if scenario.plugins is not None:
        env[environ.PLUGINS] = scenario.plugins
    sites = []
    for index, (name, body) in enumerate(scenario.answers):
        sites.append(Site(tmp_path / f"site{index}"))  # a folder each: their order on the path is the order of enumeration
        module = f"p{index or ''}"
        callback = f"def activate():\n    calls.append({name!r})\n    {body}"
        plugin(sites[-1], f"dist-{index}", module, {GROUPS[runtime]: {name: f"{module}:activate"}}, callback)
    with running(runtime, sites, env, scenario.present) as made:
        found = outcome(lambda: type(made.platform).__name__)
        seen = calls()
    assert found.startswith(scenario.expected)
    if scenario.called is None:
        assert seen == []
    else:
        assert [call for call in seen if not call.startswith("import")] == list(scenario.called)
    if ":" not in found:
        assert made.resolution is not None
        assert made.resolution.steps[-1].verdict == "chosen"
        assert (made.resolution.dist is not None) == (made.resolution.outcome == "plugin")
