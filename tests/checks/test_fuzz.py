"""Random metadata, random words in a probe's replies: no crash, and Python's own reader agrees with ours."""

from __future__ import annotations

import copy
import json
import random
import sys
from importlib import metadata as python
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sglang_plug.checks import doctor
from sglang_plug.checks.rehearsal import Limits, Rehearsal
from sglang_plug.checks.rules import metadata as rules
from sglang_plug.core import environ
from sglang_plug.probe.environment import Environment
from sglang_plug.probe.inside import metadata as inside
from sglang_plug.probe.parent import Probe
from sglang_plug.report import findings
from tests.checks.galleries import HOOKS, PLATFORMS, TARGET
from tests.plugins.install import SRT_PLATFORMS, SRT_PLUGINS, Site

LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "[sglang.srt.plugins]",
                "[sglang.srt.platforms]",
                "[ other ]",
                "[]",
                "[[x]]",
                "a = b:c",
                "a=b:c ; d",
                "# note",
                "",
                "=",
                "x =",
                "= y",
                "a = b = c",
                "\tz = q:r ",
            ]
        ),
        st.text(max_size=30),
    ),
    max_size=12,
)


@given(LINES)
@settings(max_examples=300, deadline=None)
def test_our_reader_agrees_with_pythons(lines):
    text = "\n".join(lines)
    rows, problems = inside.parse(text)
    try:
        theirs = {(entry.group, entry.name, entry.value) for entry in python.EntryPoints._from_text_for(text, None)}
    except Exception:  # whatever Python raises, we call the file broken
        assert any(problem["fatal"] for problem in problems), text
        return
    assert not any(problem["fatal"] for problem in problems), text
    assert {(row["group"], row["name"], row["value"]) for row in rows} == theirs


@given(st.one_of(st.text(max_size=40), st.from_regex(r"[\w.]+(:[\w.]+)?( *\[\w*\])?", fullmatch=True)))
@settings(max_examples=300, deadline=None)
def test_a_value_that_we_pass_is_one_that_python_reads(value):
    why, better = rules.judge_value(value)
    entry = python.EntryPoint(name="x", value=value, group="g")
    match = python.EntryPoint.pattern.match(entry.value)
    if why is None:
        assert match
        assert match["attr"]
    if better is not None:
        assert python.EntryPoint.pattern.match(better)


class Recorded:
    """A world with a short repr: hypothesis prints its arguments."""

    def __init__(self, world):
        self.world = world

    def __repr__(self) -> str:
        return "<recorded>"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The facts of one real rehearsal with many flaws in it."""
    root = tmp_path_factory.mktemp("fuzz")
    site = Site(root / "site")
    slow = {"hangs", "spins", "hangs_at_import", "deaf_hang", "slow", "eats_memory", "memory"}
    for name in [name for name in HOOKS if name not in slow][::3]:
        body = HOOKS[name][0].replace("TGT", f"tgt_{name}")
        site.add(f"{name}-dist", {SRT_PLUGINS: {name: f"hk_{name}:register"}}, {f"hk_{name}.py": body, f"tgt_{name}.py": TARGET})
    for name in [name for name in PLATFORMS if name not in slow][::3]:
        files = {f"pl_{name}/__init__.py": PLATFORMS[name][0], f"pl_{name}/plat.py": PLATFORMS[name][1]}
        files = {path: text.replace("MOD", f"pl_{name}") for path, text in files.items()}
        site.add(f"{name}-pdist", {SRT_PLATFORMS: {name: f"pl_{name}:activate"}}, files)
    environment = Environment(sys.executable, site.env(), str(root), "script")
    with Probe(environment) as probe:
        facts = probe.require({"op": "environment", "detail": True})
        world = doctor._world(environment, facts, environ.read(environment.env), runtimes=("srt",), names=(), limits=Limits())
        Rehearsal(probe, world, Limits(timeout=10), lambda text: None).run()
    return Recorded(world)


def replace_words(value: Any, draw) -> Any:
    """Return a copy in which some texts and numbers are others."""
    if isinstance(value, dict):
        return {key: replace_words(item, draw) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_words(item, draw) for item in value]
    if isinstance(value, str) and draw.randrange(6) == 0:
        return "".join(chr(draw.choice((draw.randrange(1, 0x250), 0x1B, 0x202E, 0xD800, 0x1F600, 10))) for _ in range(draw.randrange(12)))
    if isinstance(value, int) and not isinstance(value, bool) and draw.randrange(6) == 0:
        return draw.randrange(-5, 1 << 40)
    return value


@given(st.integers(0, 1 << 32))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_strangers_say_the_rules_and_the_renderers_stand(recorded, seed):
    draw = random.Random(seed)
    recorded = recorded.world
    world = copy.copy(recorded)
    world.entries = []
    for entry in recorded.entries:
        other = copy.copy(entry)
        other.row = {**entry.row, "name": replace_words(entry.name, draw), "value": replace_words(entry.value, draw)}
        other.trial = replace_ended(replace_words(entry.trial, draw), draw) if entry.trial else None
        world.entries.append(other)
    world.rehearsal = {key: replace_words(value, draw) if key == "together" else value for key, value in recorded.rehearsal.items()}
    found = doctor.order(finding for rule in doctor.RULES for finding in rule(world))
    report = doctor.Report(doctor._host(world), [doctor._row(world, entry) for entry in world.entries], found)
    for kind in ("text", *findings.FORMATS):
        assert findings.render(report, kind, verbose=True).encode("utf-8")
    assert len(json.loads(findings.render(report, "json"))["findings"]) == len(found)


def replace_ended(trial: dict, draw) -> dict:
    """Return the trial, sometimes as one that came to another end."""
    ends = (
        {"kind": "exit", "code": 3, "stack": []},
        {"kind": "signal", "number": 11, "name": "SIGSEGV", "stack": [{"file": "x.py", "line": 1, "function": "f"}]},
        {"kind": "timeout", "seconds": 1.0, "stack": []},
        {"kind": "lost"},
    )
    return {**trial, "value": None, "ended": draw.choice(ends)} if draw.randrange(8) == 0 else trial
