"""What doctor advises, flaw by flaw: the file and line, the name that is nearly right, or to return None where the device is absent."""

from __future__ import annotations

import pytest

from sglang_plug.checks.rehearsal import Limits
from tests.checks.conftest import by_name, run
from tests.checks.galleries import GIVES, gives, plat
from tests.plugins.install import SRT_PLATFORMS, Site

ABSENT = "return None"
#: name -> (text of MOD/__init__.py, text of MOD/plat.py, code, what its hint, cause or message says)
ADVICE: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "syntax": ("x = 1\ndef activate(:\n", plat(), "SP301", ("correct ", "__init__.py:2")),
    "name": ("devices = []\ndef activate(): return devcies\n", plat(), "SP302", ("correct ", "__init__.py:2", "did you mean devices?")),
    "attribute": ("import os\ndef activate(): os.getlogn()\n", plat(), "SP302", ("did you mean getlogin?",)),
    "library": ("import ctypes\ndef activate(): ctypes.CDLL('libacme.so.3')\n", plat(), "SP302", (ABSENT, "catch OSError")),
    "no_device": ("def activate(): raise RuntimeError('no NPU')\n", plat(), "SP302", (ABSENT, "export SGLANG_PLATFORM=no_device")),
    "device_file": ("open('/dev/acme0')\ndef activate(): pass\n", plat(), "SP301", (ABSENT, "in the callback")),
    "vendor_runtime": ("import acme_rt\ndef activate(): pass\n", plat(), "SP301", ("'acme_rt' (import name)", ABSENT)),
    "variable": ("import os\ndef activate(): return os.environ['ACME_HOME']\n", plat(), "SP302", ("export ACME_HOME=",)),
    "group": ("def activate(): raise ExceptionGroup('all', [OSError('first'), KeyError('b')])\n", plat(), "SP302", ("OSError: first",)),
    "crash": ("import ctypes\ndef activate():\n    ctypes.string_at(0)\n", plat(), "SP304", ("__init__.py:3 in activate", "string_at")),
    "class_slip": (gives("'MOD.plat.Plta'"), plat(), "SP401", ("return 'pl_class_slip.plat.Plat'", "__init__.py")),
    "class_case": (gives("'MOD.plat:plat'"), plat(), "SP401", ("return 'pl_class_case.plat:Plat'",)),
    "module_slip": (gives("'MOD.plta.Plat'"), plat(), "SP401", ("return 'pl_module_slip.plat.Plat'",)),
    "module_alone": (gives("'MOD.plat'"), plat(), "SP403", ("return 'pl_module_alone.plat.Plat'",)),
    "method_slip": (
        GIVES,
        plat(without=("get_device_uuid",), body="def get_devce_uuid(self, device_id=0): return ''"),
        "SP407",
        ("rename get_devce_uuid: def get_device_uuid(self, device_id=0)",),
    ),
    "mute": ("def activate():\n    'MOD.plat.Plat'\n", plat(), "SP309", ("no return with a value",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("hints")
    site = Site(root / "site")
    for name, (activate, text, _, _) in ADVICE.items():
        files = {f"pl_{name}/__init__.py": activate, f"pl_{name}/plat.py": text}
        files = {path: body.replace("MOD", f"pl_{name}") for path, body in files.items()}
        site.add(f"{name.replace('_', '-')}-dist", {SRT_PLATFORMS: {name: f"pl_{name}:activate"}}, files)
    return run(site, root / "cwd", limits=Limits(timeout=10), runtimes=("srt",))


@pytest.mark.parametrize("name", ADVICE)
def test_advice(report, name):
    _, _, code, words = ADVICE[name]
    found = next(f for f in by_name(report)[name] if f.code == code)
    place = f"{found.location.path}:{found.location.line}" if found.location else ""
    told = " | ".join(filter(None, (found.message, found.cause, found.hint, place)))
    assert all(word in told for word in words), told


def test_where_a_wrong_name_is_returned(report):
    found = next(f for f in by_name(report)["class_slip"] if f.code == "SP401")
    assert found.location is not None
    assert (found.location.path.rpartition("/")[2], found.location.line) == ("__init__.py", 2)
