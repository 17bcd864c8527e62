"""Hints for imports that fail: what is near is suggested, and no distribution's name is made up."""

from __future__ import annotations

import pytest

from sglang_plug.checks.absent import import_hint
from tests.checks.galleries import GIVES, plat
from tests.plugins.install import SRT_PLATFORMS, SRT_PLUGINS


def hint_of(report, code):
    return str(next(f for f in report.findings if f.code == code).hint)


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("import zephyrx.devise\n", "there is no module zephyrx.devise in zephyrx; did you mean zephyrx.device?"),
        ("import acme_private_rt.core\n", "install the package that provides 'acme_private_rt' (import name) in "),
        ("x = nope\n", "plat.py:1"),
        ("x = (\n", "plat.py:"),
        ("raise PermissionError('/dev/acme')\n", "plat.py:1"),
        ("from zephyrx.device import nope\n", "plat.py:1"),
    ],
)
@pytest.mark.parametrize("returned", ["MOD.plat.Plat", "MOD.plat:Plat"])
def test_a_class_that_does_not_import(site, doctor, head, wanted, returned):
    activate = GIVES.replace("MOD.plat.Plat", returned).replace("MOD", "zephyrx")
    files = {"zephyrx/__init__.py": activate, "zephyrx/plat.py": head + plat(), "zephyrx/device.py": ""}
    site.add("zephyr-dist", {SRT_PLATFORMS: {"zephyr": "zephyrx:activate"}}, files)
    hint = hint_of(doctor(), "SP402")
    assert wanted in hint
    assert "pip install" not in hint
    assert wanted.startswith(("there", "install")) or hint.startswith(("correct ", "there is no nope in zephyrx.device; correct "))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("zephyrxx:register", "did you mean 'zephyrx:register'? correct pyproject.toml, then pip install -e ."),
        ("zephyrx.hoks:register", "did you mean 'zephyrx.hooks:register'? correct pyproject.toml, then pip install -e ."),
        ("gone_for_good:register", "reinstall zephyr-dist from its source"),
    ],
)
def test_an_entry_point_that_leads_nowhere(site, doctor, value, wanted):
    site.add("zephyr-dist", {SRT_PLUGINS: {"zephyr": value}}, {"zephyrx/__init__.py": "", "zephyrx/hooks.py": "def register(): pass\n"})
    hint = hint_of(doctor(), "SP208")
    assert wanted in hint
    assert "force-reinstall" not in hint


def test_a_plugin_that_misspells_its_own_module(site, doctor):
    files = {"zephyrx/__init__.py": "import zephyrx.devise\ndef register(): pass\n", "zephyrx/device.py": ""}
    site.add("zephyr-dist", {SRT_PLUGINS: {"zephyr": "zephyrx:register"}}, files)
    assert "did you mean zephyrx.device?" in hint_of(doctor(), "SP301")


def test_without_a_place_there_is_no_hint():
    assert import_hint({"type": "OSError"}, "pa", "/usr") is None


def test_syntax_of_a_python_that_the_package_asks_for(site, doctor):
    folder = site.add("late-dist", {SRT_PLATFORMS: {"late": "late:activate"}}, {"late.py": "def activate(:\n"})
    metadata = folder / "METADATA"
    metadata.write_text(metadata.read_text().replace("\n\n", "\n", 1).rstrip("\n") + "\nRequires-Python: >=99\n")
    assert hint_of(doctor(), "SP301").startswith("late-dist requires Python >=99, and this is ")
