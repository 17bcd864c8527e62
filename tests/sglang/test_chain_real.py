"""The selection chain beside SGLang's own, over thousands of worlds of variables, plugins and hardware: two releases, both runtimes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sglang_plug.core import environ
from sglang_plug.core.entrypoints import Candidate
from sglang_plug.core.policy import Policy, policy
from sglang_plug.core.selection import Activation, Detection, ErrorFacts, select

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]

INSTALLED: tuple[tuple[tuple[str, str, str], ...], ...] = (
    (),
    (("demo", "d1", "A"),),
    (("demo", "d1", "none"),),
    (("demo", "d1", "raise"),),
    (("demo", "d1", "unloadable"),),
    (("demo", "d1", "empty"),),
    (("demo", "d1", "spaces"),),
    (("demo", "d1", "type"),),
    (("demo", "d1", "A"), ("b", "d2", "B")),
    (("demo", "d1", "raise"), ("b", "d2", "B")),
    (("demo", "d1", "none"), ("b", "d2", "none")),
    (("b", "d2", "B"), ("demo", "d1", "none")),
    (("demo", "d1", "A"), ("demo", "d2", "B")),
    (("demo", "d1", "A"), ("b", "d3", "none"), ("demo", "d2", "unloadable")),
    (("demo", "d1", "A"), ("demo", "d2", "none")),
    (("cuda", "d1", "A"),),
    (("XPU", "d1", "A"), ("demo", "d2", "B")),
)
SELECTORS = (None, "", "demo", " demo", "DEMO", "b", "nope", "cuda", " XPU ")
ALLOWLISTS = (None, "", ",", "demo", " b , demo,", "x")
PRESENT = (
    (),
    ("cpu",),
    ("cuda",),
    ("rocm",),
    ("xpu",),
    ("npu",),
    ("musa", "mps"),
    ("sail", "cuda"),
    ("cuda", "npu", "rocm"),
    ("mps", "xpu", "rocm", "cuda", "npu", "musa", "cpu", "sail"),
)
VARIABLE = {"srt": environ.PLATFORM, "diffusion": environ.DIFFUSION_PLATFORM}


def worlds(runtime: str) -> list[dict[str, Any]]:
    """Return every combination; diffusion does not read the allowlist, so a few of them do there."""
    lists = ALLOWLISTS if runtime == "srt" else (None, "x")
    made = []
    for installed, selector, allowed, present in itertools.product(INSTALLED, SELECTORS, lists, PRESENT):
        env = {VARIABLE[runtime]: selector, environ.PLUGINS: allowed}
        kept = {name: value for name, value in env.items() if value is not None}
        made.append({"installed": installed, "env": kept, "present": present})
    # Every set of devices, so that the order of any two fallbacks shows.
    devices = sorted({name for present in PRESENT for name in present})
    for count in range(len(devices) + 1):
        made += [{"installed": (), "env": {}, "present": some} for some in itertools.combinations(devices, count)]
    return made


def ours(rules: Policy, world: dict[str, Any]) -> list[Any]:
    """Return what our chain says of one world, in the words of the child."""
    called: list[str] = []

    def activate(candidate: Candidate) -> Activation:
        does = candidate.value
        if does == "unloadable":
            return Activation(error=ErrorFacts("ImportError", "no module", phase="load"))
        called.append(f"call {candidate.dist}")
        if does == "raise":
            return Activation(error=ErrorFacts("OSError", "hw"))
        if does == "type":
            return Activation(kind="type")
        return Activation({"none": None, "empty": "", "spaces": " world.A "}.get(does, f"world.{does}"))

    candidates = [Candidate(name, does, rules.platform_group or "", dist) for name, dist, does in world["installed"]]
    always = {"cpu"} if rules.runtime == "diffusion" else set()
    found = select(
        rules,
        environ.read(world["env"]),
        candidates,
        activate=activate,
        detect=lambda name: Detection(name in {*world["present"], *always}, ""),
    )
    if found.error is not None:
        return [{"type": found.error.type, "message": found.error.message}, called]
    if rules.runtime == "srt":
        return [(found.qualname or "").rpartition(".")[2], called]
    plugin = found.outcome == "plugin"
    return [[found.qualname, found.name if plugin else None, found.dist], called]


def meaning(answer: list[Any]) -> list[Any]:
    """Return an answer with the messages cut to what they say in common."""
    said, called = answer
    if isinstance(said, dict):
        text = said["message"].split(" Install ")[0].split(", got")[0]
        return [{"type": said["type"], "message": text}, called]
    return [said, called]


@pytest.mark.parametrize("runtime", ["srt", "diffusion"])
@pytest.mark.parametrize("release", ["0.5.23", "0.5.21"])
def test_every_world(runtime: str, release: str, request: pytest.FixtureRequest):
    python: Path = request.getfixturevalue("real_sglang" if release == "0.5.23" else "real_sglang_0521")
    rules = policy(runtime, release)
    made = worlds(runtime)
    assert len(made) > 2000
    asked = {"runtime": runtime, "group": rules.platform_group, "variables": list(environ.VARIABLES), "worlds": made}
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "SGL_"))}
    child = Path(__file__).with_name("chain_child.py")
    done = subprocess.run([python, child], input=json.dumps(asked), capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = json.loads(done.stdout)
    wrong = [
        (world, real, mine)
        for world, real in zip(made, answers, strict=True)
        if meaning(real) != meaning(mine := json.loads(json.dumps(ours(rules, world))))
    ]
    assert not wrong, f"{len(wrong)} of {len(made)}: {wrong[:3]}"
