"""A broken platform is told as such, never as a defect of ours: what ends SRT ends diffusion too, in other words perhaps."""

from __future__ import annotations

import pytest

from sglang_plug.checks.rehearsal import Limits
from tests.checks.galleries import GIVES, plat
from tests.plugins.install import SRT_PLATFORMS, platform

SELECTED = {"SGLANG_PLATFORM": "pa"}
BROKEN = {
    "import": ("import vendor_rt_missing\n", "", SELECTED),
    "nowhere": ("def activate(): return 'pa.nope.Plat'\n", "", SELECTED),
    "class_name": (GIVES.replace("Plat", "Nope"), plat(), SELECTED),
    "class_syntax": (GIVES, "class Plat(:\n", SELECTED),
    "class_name_error": (GIVES, "x = nope\n" + plat(), SELECTED),
    "class_refused": (GIVES, "raise PermissionError('/dev/acme')\n", SELECTED),
    "class_import": (GIVES, "import vendor_rt_missing\n" + plat(), SELECTED),
    "class_colon": (GIVES.replace("plat.Plat", "plat:Plat"), "raise PermissionError('/dev/acme')\n" + plat(), SELECTED),
    "not_a_class": (GIVES, "def Plat(): pass\n", SELECTED),
    "no_base": (GIVES, "class Plat: pass\n", SELECTED),
    "init": (GIVES, plat(body="def __init__(self, config): pass"), SELECTED),
    "no_enum": (GIVES, plat(without=("_enum",)), SELECTED),
    "returns": ("def activate(): return True\n", "", SELECTED),
    "returns_tuple": ("def activate(): return (True, 'pa.plat.Plat')\n", plat(), SELECTED),
    "exits": ("raise SystemExit(3)\n", "", SELECTED),
    "class_exits": (GIVES, "raise SystemExit(3)\n", SELECTED),
    "hangs": ("import time\ndef activate(): time.sleep(60)\n", "", SELECTED),
    "class_hangs": (GIVES, "import time\ntime.sleep(60)\n", SELECTED),
    "segfault": ("import ctypes\ndef activate(): ctypes.string_at(0)\n", "", SELECTED),
    "class_segfault": (GIVES, "import ctypes\nctypes.string_at(0)\n", SELECTED),
    "unknown": (GIVES, plat(), {"SGLANG_PLATFORM": "nope"}),
    "raises": ("def activate(): raise OSError('libacme.so.3')\n", "", SELECTED),
}


@pytest.mark.parametrize("auto", [False, True], ids=["named", "found"])
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_platform_is_no_defect_of_ours(site, doctor, case, auto):
    activate, text, env = BROKEN[case]
    files = {"pa/__init__.py": activate.replace("MOD", "pa"), "pa/plat.py": text.replace("MOD", "pa")}
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, files)
    report = doctor(env={} if auto else env, limits=Limits(timeout=3))
    assert [f.message for f in report.findings if f.code == "SP901"] == []


def test_two_active_platforms_are_no_defect_of_ours(site, doctor):
    for name in ("pa", "pb"):
        platform(site, name, plat=plat().replace("MOD", name))
    assert "SP901" not in {f.code for f in doctor().findings}
