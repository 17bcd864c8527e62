"""`resolve` beside the real host on real installations: platform, error and the hook plugins that run, scenario by scenario."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.core.policy import policy
from sglang_plug.probe.decision import Survey, survey
from sglang_plug.probe.environment import Environment
from sglang_plug.probe.verification import same_error
from tests.plugins import install
from tests.plugins.install import DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]

ENGINES = {"0.5.23": "real_sglang", "0.5.21": "real_sglang_0521", "0.5.17": "real_sglang_0517"}  # release -> fixture
GROUPS = {"srt": (SRT_PLATFORMS, SRT_PLUGINS), "diffusion": (DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS)}
CLASSES = {"srt": install.PLATFORM, "diffusion": install.DIFFUSION_PLATFORM}
SELECTOR = {"srt": "SGLANG_PLATFORM", "diffusion": "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"}

# What a platform's module says, by behaviour; NAME is its own name.
BEHAVIOURS = {
    "active": 'def activate(): return "NAME.plat.Plat"',
    "colon": 'def activate(): return "NAME.plat:Plat"',
    "spaces": 'def activate(): return " NAME.plat.Plat "',
    "absent": "def activate(): return None",
    "raises": 'def activate(): raise OSError("libacme.so.3")',
    "attribute": "import math\ndef activate(): return math.nope",
    "unloadable": "import vendor_rt_missing\ndef activate(): return None",
    "syntax": "def activate(:",
    "exits": "def activate(): raise SystemExit(3)",
    "dies": "import os\ndef activate(): os._exit(4)",
    "tuple": 'def activate(): return (True, "NAME.plat.Plat")',
    "true": "def activate(): return True",
    "type": "def activate(): return int",
    "empty": 'def activate(): return ""',
    "coroutine": 'async def activate(): return "NAME.plat.Plat"',
    "argument": 'def activate(config): return "NAME.plat.Plat"',
    "nowhere": 'def activate(): return "NAME.plat.Nope"',
    "nomodule": 'def activate(): return "NAME.nomod.Plat"',
    "nomodule_colon": 'def activate(): return "NAME.nomod:Plat"',
    "needs": 'def activate(): return "NAME.needs.Plat"',
    "needs_colon": 'def activate(): return "NAME.needs:Plat"',
    "flat": 'def activate(): return "NAME_flat.Plat"',
    "broken": 'def activate(): return "NAME.broken.Plat"',
    "lost": 'def activate(): return "NAME.lost.Plat"',
    "lost_colon": 'def activate(): return "NAME.lost:Plat"',
    "function": 'def activate(): return "NAME.activate"',
    "interface": 'from sglang.srt.platforms.interface import SRTPlatform\ndef activate(): return "NAME.plat.Plat"',
    "circular": 'def activate():\n    from sglang.srt.utils import get_bool_env_var\n    return "NAME.plat.Plat"',
    "environ": 'def activate():\n    from sglang.srt.environ import envs\n    return "NAME.plat.Plat"',
    "toplevel": 'import sglang\ndef activate(): return "NAME.plat.Plat"',
    "nocallable": "activate = 3",
    "bytes": 'def activate(): return b"NAME.plat.Plat"',
    "newline": 'def activate(): return "NAME.plat.Plat\\n"',
    "newline_colon": 'def activate(): return "NAME.plat:Plat\\n"',
    "liar": 'class Liar(str):\n    def __str__(self): return "os.X"\ndef activate(): return Liar("NAME.plat.Plat")',
    "gone": 'def activate(): return "NAME.gone.Plat"',
    "gone_colon": 'def activate(): return "NAME.gone:Plat"',
    "deep": 'def activate(): return "NAME.deep.Plat"',
    "guarded": 'def activate(): return "NAME.guarded.Plat"',
    "baseless": 'def activate(): return "NAME.baseless.Plat"',
    "keyboard": "def activate(): raise KeyboardInterrupt",
}


@dataclass(frozen=True)
class Scenario:
    """One installation and its variables.

    `platforms` are (name, behaviour) or (name, behaviour, distribution); `hooks` are (name, distribution).
    """

    runtime: str
    platforms: tuple[tuple[str, ...], ...] = ()
    hooks: tuple[tuple[str, str], ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    raw: str = ""

    @property
    def label(self) -> str:
        parts = [*(":".join(row) for row in self.platforms), *(f"hook-{name}" for name, _ in self.hooks)]
        parts += [f"{name.removeprefix('SGLANG_')}={value}" for name, value in self.env.items()]
        return f"{self.runtime}[{' '.join(parts) or 'nothing'}{' broken-file' if self.raw else ''}]"


def scenarios() -> list[Scenario]:
    """Return the matrix."""
    made = []
    for runtime in ("srt", "diffusion"):
        selector = SELECTOR[runtime]
        made += [Scenario(runtime)]
        made += [Scenario(runtime, (("pa", name),)) for name in BEHAVIOURS]
        made += [Scenario(runtime, (("pa", name), ("pb", "dies")), env={selector: "pa"}) for name in BEHAVIOURS if name != "dies"]
        made += [
            Scenario(runtime, (("pa", one), ("pb", two))) for one, two in (("active", "active"), ("raises", "active"), ("absent", "absent"))
        ]
        made += [
            Scenario(runtime, (("pa", "active"),), env={selector: value}) for value in ("PA", "pa ", " ", "nope", "cpu", "CPU ", "xpu", "")
        ]
        made += [
            Scenario(runtime, (("pa", "active"),), env={"SGLANG_PLUGINS": value}) for value in ("", ",", "pa", "other", "PA", " pa , x")
        ]
        made += [Scenario(runtime, (("pa", "active"), ("pa", "absent", "pz-dist")), env=env) for env in ({}, {selector: "pa"})]
        made += [Scenario(runtime, (("cpu", "active"),), env=env) for env in ({}, {selector: "cpu"}, {selector: "CPU"})]
        hooks = (("pa_hooks", "pa-dist"), ("pb_hooks", "pb-dist"), ("free", "free-dist"))
        both = (("pa", "active"), ("pb", "absent"))
        made += [
            Scenario(runtime, both, hooks, env)
            for env in ({}, {selector: "pa"}, {"SGLANG_PLUGINS": "pa,free"}, {selector: "pa", "SGLANG_PLUGINS": "free"})
        ]
        made += [
            Scenario(runtime, (("va", "active"), ("vb", "absent", "va-dist")), (("v_hooks", "va-dist"),), env)
            for env in ({}, {selector: "va"})
        ]
        made += [Scenario(runtime, (), (("same", "d1-dist"), ("same", "d2-dist")))]
    made += [
        Scenario("srt", (("pa", "active"),), env={"SGL_PLATFORM": "zz"}),
        Scenario("srt", (("pa", "active"), ("pb", "active")), env={"SGLANG_PLATFORM": "pb", "SGL_PLATFORM": "pa"}),
        Scenario("srt", (), (("ga", "ga-dist"), ("gb", "gb-dist")), {"SGLANG_PLUGINS": "gb", "SGL_PLUGINS": "ga"}),
        Scenario("srt", env={"SGLANG_USE_CPU_ENGINE": "1"}),
        Scenario("srt", env={"SGLANG_USE_CPU_ENGINE": "true"}),
        Scenario("srt", (("pa", "raises"),), env={"SGLANG_USE_CPU_ENGINE": "1"}),
        Scenario("srt", (("pa", "active"),), raw="[x]\nno equals sign\n"),
        Scenario("diffusion", (("pa", "active"),), raw="[x]\nno equals sign\n"),
        Scenario("diffusion", (("pa", "active"),), env={"SGLANG_PLATFORM": "nope"}),
    ]
    return made


def lay(scenario: Scenario, root: Path) -> Site:
    """Install a scenario."""
    site = Site(root)
    root.mkdir(parents=True)
    platforms, hooks = GROUPS[scenario.runtime]
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for name, behaviour, *dist in scenario.platforms:
        owner = dist[0] if dist else f"{name}-dist"
        module = name if not dist else f"{name}_{owner.replace('-', '_')}"
        body = BEHAVIOURS[behaviour].replace("NAME", module) + "\n"
        site.write({f"{module}/__init__.py": body, f"{module}/plat.py": CLASSES[scenario.runtime], f"{module}/broken.py": "class Plat(:\n"})
        needs = "import vendor_rt_missing\nclass Plat: pass\n"
        site.write({f"{module}/needs.py": needs, f"{module}_flat.py": needs, f"{module}/lost.py": "from .nowhere import Plat\n"})
        site.write(
            {f"{module}/gone.py": "from .plat import Gone\nfrom .plat import Plat\n", f"{module}/deep.py": "from .gone import Plat\n"}
        )
        site.write({f"{module}/baseless.py": "class Plat: pass\n"})
        tried = "try:\n    from .gone import Plat\nexcept ImportError:\n    pass\n"
        site.write({f"{module}/guarded.py": tried + textwrap.dedent(CLASSES[scenario.runtime])})
        rows.setdefault(owner, {}).setdefault(platforms, {})[name] = f"{module}:activate"
    for name, owner in scenario.hooks:
        module = f"hooks_{name}_{owner.replace('-', '_')}"
        site.write({f"{module}.py": "def register(): pass\n"})
        rows.setdefault(owner, {}).setdefault(hooks, {})[name] = f"{module}:register"
    for owner, groups in rows.items():
        site.add(owner, groups)
    if scenario.raw:
        site.add("broken-dist", scenario.raw)
    return site


@dataclass(frozen=True)
class Host:
    """A real host of one release, which is asked once per scenario."""

    release: str
    python: Path
    ask: Callable[[dict[str, Any]], dict[str, Any]]

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Those that the engine has the packages for."""
        return ("srt",) if self.release == "0.5.17" else ("srt", "diffusion")


def start(python: Path, clean: Path) -> subprocess.Popen[str]:
    """Start the process that runs the real host, once per line that it is told."""
    script = Path(__file__).with_name("host_zygote.py")
    env = Site(clean).env(PYTHONPATH="", PYTHONWARNINGS="ignore")
    return subprocess.Popen(
        [str(python), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env
    )


@pytest.fixture(scope="module")
def hosts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Host]]:
    """Return the real host of a release; each is started once, when it is first asked for."""
    running: dict[str, tuple[subprocess.Popen[str], Path]] = {}

    def host(release: str) -> Host:
        if release not in running:
            engine: Path = request.getfixturevalue(ENGINES[release])
            running[release] = (start(engine, tmp_path_factory.mktemp("clean")), engine)
        process, python = running[release]

        def ask(scenario: dict[str, Any]) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(scenario) + "\n")
            process.stdin.flush()
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            return answer

        return Host(release, python, ask)

    yield host
    for process, _ in running.values():
        process.communicate(timeout=30)
        assert process.returncode == 0


def ours(found: Survey, runtime: str) -> dict[str, Any]:
    """Our answer in the zygote's shape."""
    decision = found.decisions[runtime]
    resolution = decision.resolution
    if resolution.error is not None:
        return {"error": resolution.error.type}
    return {"class": (resolution.qualname or "").replace(":", ".")}


def plugins(found: Survey, runtime: str) -> list[str] | dict[str, str]:
    """The hook plugins that we say will run, or the error."""
    choices = found.decisions[runtime].choices
    if any(choice.verdict == "refused" for choice in choices):
        return {"error": "RuntimeError"}
    return sorted(choice.candidate.name for choice in choices if choice.verdict == "load")


def agree(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Compare class with class, and error with error: SGLang shows an AttributeError on the way as a failed import of current_platform."""
    if "error" not in mine or "error" not in theirs:
        return mine == theirs
    masked = "cannot import name 'current_platform'" in theirs.get("message", "")
    return same_error("ImportError" if masked and mine["error"] == "AttributeError" else mine["error"], theirs["error"])


MATRIX = scenarios()
BEHAVIOURS["srt_class"] = 'def activate(): return "srt_class_plat.Plat"'  # of the other runtime: only loading it shows that


def test_the_matrix_is_large_enough() -> None:
    assert len({scenario.label for scenario in MATRIX}) == len(MATRIX) >= 60


# Every scenario on the newest release, every fourth on older ones.
RUNS = [(release, scenario) for step, release in enumerate(ENGINES) for scenario in (MATRIX[step::4] if step else MATRIX)]


@pytest.mark.parametrize(("release", "scenario"), RUNS, ids=lambda value: value.label if isinstance(value, Scenario) else value)
def test_resolve_says_what_the_host_does(release: str, scenario: Scenario, hosts: Callable[[str], Host], tmp_path: Path) -> None:
    host = hosts(release)
    site = lay(scenario, tmp_path / "site")
    bin_folder = os.path.dirname(host.python)
    theirs = host.ask({"path": [str(site.root)], "env": scenario.env, "first": bin_folder, "runtimes": host.runtimes})
    environment = Environment(str(host.python), site.env(**scenario.env), str(tmp_path), "script")
    found = survey(environment, ("srt", "diffusion"))
    assert found.release == host.release
    if "ended" in theirs:  # the process is gone: what took it down is an error of ours, whatever its name
        assert "error" in ours(found, scenario.runtime)
        return
    for runtime in host.runtimes:
        mine = ours(found, runtime)
        assert agree(mine, theirs[runtime]), f"{runtime}: ours {mine}, the host's {theirs[runtime]}; {found.decisions[runtime].resolution}"
        if "error" not in mine and policy(runtime, found.release).hook_group:
            mine_plugins, their_plugins = plugins(found, runtime), theirs["plugins"][runtime]
            if isinstance(their_plugins, dict):
                assert isinstance(mine_plugins, dict)
                assert mine_plugins["error"] == their_plugins["error"]
            else:
                assert mine_plugins == their_plugins


@pytest.mark.parametrize(
    ("scenario", "error"),
    [
        (
            Scenario(
                "srt", (("pa", "active"), ("pb", "dies")), (("pa_hooks", "pa-dist"), ("pb_hooks", "pb-dist")), {"SGLANG_PLATFORM": "pa"}
            ),
            None,
        ),
        (Scenario("srt", (("pa", "circular"),)), None),
        (Scenario("diffusion", (("pa", "active"),), (("pa_hooks", "pa-dist"),)), None),
        (Scenario("diffusion", env={"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "cuda"}), None),
        (Scenario("diffusion", (("pa", "srt_class"),)), "TypeError"),
    ],
    ids=lambda value: value.label if isinstance(value, Scenario) else "",
)
def test_verify_takes_the_real_hosts_word(scenario: Scenario, error: str | None, real_sglang: Path, tmp_path: Path) -> None:
    site = lay(scenario, tmp_path / "site")
    site.write({"srt_class_plat.py": install.PLATFORM})
    environment = Environment(str(real_sglang), site.env(**scenario.env), str(tmp_path), "script")
    decision = survey(environment, (scenario.runtime,), verify=True).decisions[scenario.runtime]
    resolution = decision.resolution
    assert (resolution.error.type if resolution.error else None) == error, resolution
    assert decision.host is not None
    assert decision.host["engine"] == "sglang"
    verdicts = {step.verdict for step in resolution.steps if step.rule == "verify"}
    assert verdicts == ({"failed"} if error else {"agrees"})
