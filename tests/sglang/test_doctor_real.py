"""Doctor on real SGLang: a bare installation is clean, and every plugin of the galleries is judged as on the stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglang_plug.checks.doctor import Report, examine
from sglang_plug.checks.model import Level
from sglang_plug.checks.rehearsal import Limits
from sglang_plug.probe.environment import Environment
from tests.checks.conftest import by_name
from tests.checks.galleries import HOOKS, PLATFORMS, lay_hooks, lay_platforms
from tests.plugins.install import Site

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]


def on_real(python: Path, site: Site, cwd: Path, **more) -> Report:
    cwd.mkdir()
    environment = Environment(str(python), site.env(PATH=f"{python.parent}:/usr/bin:/bin"), str(cwd), "script")
    return examine(environment, limits=Limits(timeout=20, memory=1 << 30), **more)


def told(report: Report) -> dict[str, set[str]]:
    return {name: {f.code for f in found if f.level is not Level.INFO} for name, found in by_name(report).items()}


def test_a_bare_installation_is_clean(real_sglang, tmp_path):
    report = on_real(real_sglang, Site(tmp_path / "site"), tmp_path / "cwd")
    assert not [f for f in report.findings if f.level is not Level.INFO]
    assert report.host["sglang"]["engine"] == "sglang"


def test_hooks_are_judged_as_on_the_stand_in(real_sglang, tmp_path):
    site = Site(tmp_path / "site")
    lay_hooks(site)
    found = told(on_real(real_sglang, site, tmp_path / "cwd", runtimes=("srt",)))
    wanted = {name: codes for name, (_, codes) in HOOKS.items()}
    wanted["type_as_text"] = {"SP302", "SP512", "SP518"}  # SGLang keeps the hook, and fails only when it names the type in its log
    assert {name: found.get(name, set()) for name in HOOKS} == wanted
    assert "SP901" not in {code for codes in found.values() for code in codes}


def test_platforms_are_judged_as_on_the_stand_in(real_sglang, tmp_path):
    site = Site(tmp_path / "site")
    lay_platforms(site)
    found = told(on_real(real_sglang, site, tmp_path / "cwd", runtimes=("srt",)))
    assert {name: found.get(name, set()) for name in PLATFORMS} == {name: codes for name, (_, _, codes) in PLATFORMS.items()}


@pytest.mark.parametrize("name", ["ok", "ok_colon"])
def test_a_sound_platform_is_clean_and_chosen(real_sglang, tmp_path, name):
    activate, text, _ = PLATFORMS[name]
    site = Site(tmp_path / "site")
    files = {"pa/__init__.py": activate.replace("MOD", "pa"), "pa/plat.py": text.replace("MOD", "pa")}
    site.add("pa-dist", {"sglang.srt.platforms": {"pa": "pa:activate"}}, files)
    report = on_real(real_sglang, site, tmp_path / "cwd")
    assert not [f.message for f in report.findings if f.level is not Level.INFO]
    assert report.host["platforms"]["srt"]["name"] == "pa"
