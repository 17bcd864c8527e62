"""Forks and interpreters of their own tell the same of the same plugins; what the process holds decides between them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.checks.rehearsal import Limits
from sglang_plug.probe.decision import decide
from sglang_plug.probe.environment import Environment
from tests.checks.conftest import by_name, run
from tests.checks.galleries import GIVES, HOOKS, PLATFORMS, lay_hooks, lay_platforms, plat
from tests.plugins.install import SRT_PLATFORMS, Site

if TYPE_CHECKING:
    from sglang_plug.checks.doctor import Report

SOME_PLATFORMS = ("ok", "segfault", "reads_current", "circular", "class_missing")
SOME_HOOKS = (
    "ok_around",
    "gone_attribute",
    "raises_chained",
    "os_exits",
    "deaf_hang",
    "eats_memory",
    "thread",
    "daemon_child",
    "stale",
    "kills_parent",
)
NO_FORK = "import os\ndel os.fork\n"
THREAD = """
import sys, threading
class Starter:
    def find_spec(self, name, path=None, target=None):
        if name == "sglang" and not any(t.name == "monitor" for t in threading.enumerate()):
            threading.Thread(target=threading.Event().wait, name="monitor", daemon=True).start()
sys.meta_path.insert(0, Starter())
"""
CONTEXT = """
import sys, types
sys.modules["torch"] = types.ModuleType("torch")
sys.modules["torch"].cuda = types.SimpleNamespace(is_initialized=lambda: True)
"""


def facts(report: Report) -> set[tuple[str, ...]]:
    """What a report says, but for figures."""
    return {(f.code, f.level.value, str(sorted(f.subject.items())), f.message, f.cause or "") for f in report.findings}


def test_both_ways_tell_the_same(tmp_path, monkeypatch):
    for gallery, some in ((PLATFORMS, SOME_PLATFORMS), (HOOKS, SOME_HOOKS)):
        for name in set(gallery) - set(some):
            monkeypatch.delitem(gallery, name)
    site = Site(tmp_path / "site")
    lay_platforms(site)
    lay_hooks(site)
    forked, spawned = (
        run(site, tmp_path / "cwd", limits=Limits(timeout=3, memory=256 << 20, isolation=way), runtimes=("srt",))
        for way in ("fork", "spawn")
    )
    assert facts(spawned) == facts(forked)
    assert spawned.host["isolation"] == {"kind": "spawn", "why": "it was asked for"}
    expected = {name: row[-1] for gallery in (PLATFORMS, HOOKS) for name, row in gallery.items()}
    told = by_name(spawned)
    assert {name: {f.code for f in told[name] if f.level is not Level.INFO} for name in expected} == expected


@pytest.fixture
def sound(site):
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {"pa/__init__.py": GIVES.replace("MOD", "pa"), "pa/plat.py": plat()})
    return site


@pytest.mark.parametrize(
    ("start", "kind", "why"),
    [("", "fork", ""), (NO_FORK, "spawn", "no os.fork"), (THREAD, "spawn", "'monitor'"), (CONTEXT, "spawn", "accelerator (cuda)")],
    ids=["fork", "no-fork", "thread", "device"],
)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no fork is taken for safe")
def test_the_choice_follows_from_the_process(sound, doctor, start, kind, why):
    sound.write({"sitecustomize.py": start})
    report = doctor(runtimes=("srt",))
    assert [row["outcome"] for row in report.entry_points] == ["ok"]
    assert report.host["isolation"]["kind"] == kind
    assert why in (report.host["isolation"]["why"] or "")
    assert not {f.code for f in report.findings if f.level is not Level.INFO}


def test_without_fork_the_chain_is_asked_too(site, tmp_path):
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {"pa.py": "import os\ndef activate(): os._exit(5)\n"})
    site.write({"sitecustomize.py": NO_FORK})
    found = decide(Environment(sys.executable, site.env(), str(tmp_path), "script"), ["srt"])["srt"]
    assert found.error is not None
    assert "activate() ended the process (exit status 5)" in f"{found.error.message} {found.error.cause}"


def test_a_killed_supervisor_is_told_and_the_others_go_on(site, doctor):
    text = "import os, signal\ndef activate(): os.kill(os.getppid(), signal.SIGKILL)\n"
    for name, body in {"pa": text, "pb": "def activate(): return None\n"}.items():
        site.add(f"{name}-dist", {SRT_PLATFORMS: {name: f"{name}:activate"}}, {f"{name}.py": body})
    report = doctor(limits=Limits(timeout=5, isolation="spawn"), runtimes=("srt",))
    assert [row["outcome"] for row in report.entry_points] == ["failed", "inactive"]
