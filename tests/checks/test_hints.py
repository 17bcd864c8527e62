"""What doctor advises, flaw by flaw: the file and line, the name that is nearly right, or to return None where the device is absent."""

from __future__ import annotations

import pytest

from sglang_plug.checks.lines import lines_of
from sglang_plug.checks.model import Level
from sglang_plug.checks.rehearsal import Limits
from sglang_plug.checks.rules.activation import _judge_ending
from sglang_plug.checks.world import Entry
from tests.checks.conftest import by_name, run
from tests.checks.galleries import GIVES, gives, plat
from tests.plugins.install import (
    DIFFUSION_PLATFORM,
    DIFFUSION_PLATFORMS,
    DIFFUSION_PLUGINS,
    PLATFORM,
    SRT_PLATFORMS,
    SRT_PLUGINS,
    Site,
    platform,
)

ABSENT = "return None"
#: name -> (text of MOD/__init__.py, text of MOD/plat.py, code, what its hint, cause or message says)
ADVICE: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "syntax": ("x = 1\ndef activate(:\n", plat(), "SP301", ("correct ", "__init__.py:2")),
    "name": ("devices = []\ndef activate(): return devcies\n", plat(), "SP302", ("correct ", "__init__.py:2", "did you mean devices?")),
    "attribute": ("import os\ndef activate(): os.getlogn()\n", plat(), "SP302", ("did you mean getlogin?",)),
    "library": ("import ctypes\ndef activate(): ctypes.CDLL('libacme.so.3')\n", plat(), "SP302", (ABSENT, "catch OSError")),
    "no_device": ("def activate(): raise RuntimeError('no NPU')\n", plat(), "SP302", (ABSENT, "export SGLANG_PLATFORM=no_device")),
    "own_name": ("from . import hookz\ndef activate(): pass\n", plat(), "SP301", ("there is no hookz in pl_own_name; correct ",)),
    "own_slip": ("from .plat import Platt\ndef activate(): pass\n", plat(), "SP301", ("in pl_own_slip.plat; did you mean Plat?",)),
    "own_cycle": (
        "from .plat import Plat\nVERSION = 1\ndef activate(): pass\n",
        "from MOD import VERSION\nPlat = VERSION\n",
        "SP301",
        ("plat.py:1 and pl_own_cycle import each other", "import VERSION inside"),
    ),
    "other_python": (
        "open(f'{__path__[0]}/_C.cpython-39-x86_64-linux-gnu.so', 'w').close()\nfrom . import _C\ndef activate(): pass\n",
        plat(),
        "SP301",
        ("rebuild ", "_C.cpython-39-x86_64-linux-gnu.so for this Python"),
    ),
    "broken_library": (
        "import importlib.machinery as m\nopen(f'{__path__[0]}/_C{m.EXTENSION_SUFFIXES[0]}', 'w').close()\nfrom . import _C\n",
        plat(),
        "SP301",
        ("rebuild ", "/_C."),
    ),
    "device_file": ("open('/dev/acme0')\ndef activate(): pass\n", plat(), "SP301", (ABSENT, "in the callback")),
    "vendor_runtime": ("import acme_rt\ndef activate(): pass\n", plat(), "SP301", ("'acme_rt' (import name)", ABSENT)),
    "variable": ("import os\ndef activate(): return os.environ['ACME_HOME']\n", plat(), "SP302", ("export ACME_HOME=",)),
    "group": ("def activate(): raise ExceptionGroup('all', [OSError('first'), KeyError('b')])\n", plat(), "SP302", ("OSError: first",)),
    "crash": ("import ctypes\ndef activate():\n    ctypes.string_at(0)\n", plat(), "SP304", ("__init__.py:3 in activate", "string_at")),
    "class_slip": (gives("'MOD.plat.Plta'"), plat(), "SP401", ("return 'pl_class_slip.plat:Plat'", "__init__.py")),
    "class_case": (gives("'MOD.plat:plat'"), plat(), "SP401", ("return 'pl_class_case.plat:Plat'",)),
    "module_slip": (gives("'MOD.plta.Plat'"), plat(), "SP401", ("return 'pl_module_slip.plat:Plat'",)),
    "module_alone": (gives("'MOD.plat'"), plat(), "SP403", ("return 'pl_module_alone.plat:Plat'",)),
    "method_slip": (
        GIVES,
        plat(without=("get_device_uuid",), body="def get_devce_uuid(self, device_id=0): return ''"),
        "SP407",
        ("rename get_devce_uuid: def get_device_uuid(self, device_id=0)",),
    ),
    "catches": (
        "def activate():\n    try: import acme_rt\n    except ImportError: return None\n",
        plat(),
        "SP309",
        ("may be absent here; it caught ModuleNotFoundError", "No module named 'acme_rt'", "__init__.py:2"),
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


def test_the_quick_way_out_of_another_platforms_failure(tmp_path):
    """Diffusion, and SRT where the process ends, do not start for a platform that nobody asked for: selecting another leaves it out."""
    site = Site(tmp_path / "site")
    for group, text in ((DIFFUSION_PLATFORMS, "import absent_driver\n"), (SRT_PLATFORMS, "import os\ndef activate(): os._exit(3)\n")):
        platform(site, f"good{group[7]}", group=group, plat=DIFFUSION_PLATFORM if group is DIFFUSION_PLATFORMS else PLATFORM)
        platform(site, f"bad{group[7]}", text, group=group)
    found = {f.code: f for f in run(site, tmp_path / "cwd").findings if f.level is Level.ERROR}
    assert set(found) == {"SP301", "SP303"}
    assert str(found["SP301"].hint).endswith("; to go on without it: export SGLANG_DIFFUSION_PLATFORM_OVERRIDE=goodm")
    assert str(found["SP303"].hint).endswith("; to go on without it: export SGLANG_PLATFORM=goods")


def test_no_way_out_where_none_is_needed(tmp_path):
    """SRT goes on without a platform that raises, and a selected one has no other."""
    site = Site(tmp_path / "site")
    platform(site, "good")
    platform(site, "bad", "def activate(): raise OSError('x')\n")
    for env in ({}, {"SGLANG_PLATFORM": "bad"}):
        hints = [str(f.hint) for f in run(site, tmp_path / "cwd", env=env, runtimes=("srt",)).findings]
        assert not [hint for hint in hints if "to go on without it" in hint]


def test_a_type_that_is_none_and_a_callback_that_is_renamed(tmp_path):
    site = Site(tmp_path / "site")
    head = "from sglang.srt.plugins.hook_registry import HookRegistry, HookType\ndef register():\n"
    for name, kind in {"member": "HookType.WRAP", "text": "'around'"}.items():
        call = f"    HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.run_batch', print, {kind})\n"
        site.add(name, {SRT_PLUGINS: {name: f"hk_{name}:register"}}, {f"hk_{name}.py": head + call})
    site.add("slip", {SRT_PLUGINS: {"slip": "hk_slip:register"}}, {"hk_slip.py": "def regster(): pass\n"})
    found = by_name(run(site, tmp_path / "cwd", runtimes=("srt",)))
    for name in ("member", "text"):
        assert [f.hint for f in found[name] if f.code == "SP302" and "hk_" in f.hint and "BEFORE, AFTER, AROUND and REPLACE" in f.hint]
    assert "did you mean 'hk_slip:regster'?" in found["slip"][0].hint
    assert found["slip"][0].hint.endswith("; or define register")


def test_a_target_that_is_missing_is_told_where_it_is_written(tmp_path):
    site = Site(tmp_path / "site")
    head = 'TARGET = "sglang.srt.managers.scheduler.Scheduler.run_bach"\n\n\ndef hook(result, *args, **kwargs): return result\n'
    call = "\n\ndef register():\n    from sglang.srt.plugins.hook_registry import HookRegistry\n    HookRegistry.register(TARGET, hook)\n"
    site.add("hk", {SRT_PLUGINS: {"hk": "hk:register"}}, {"hk.py": head + call})
    (found,) = by_name(run(site, tmp_path / "cwd", runtimes=("srt",)))["hk"]
    assert (found.code, found.location.line) == ("SP501", 1)


def test_hooks_behind_a_platform_that_fails_are_said(tmp_path):
    site = Site(tmp_path / "site")
    entry_points = {DIFFUSION_PLATFORMS: {"da": "da:activate"}, DIFFUSION_PLUGINS: {"da_hooks": "da:register"}}
    site.add("da-dist", entry_points, {"da.py": "def activate(): raise OSError('x')\ndef register(): pass\n"})
    found = by_name(run(site, tmp_path / "cwd", runtimes=("diffusion",)))["da_hooks"]
    assert [f.code for f in found] == ["SP603"]
    assert "diffusion ends before it loads hook plugins" in found[0].message


@pytest.mark.parametrize(
    ("files", "level"),
    [
        (["torch/_prims_common/__init__.py", "<frozen importlib._bootstrap>", "acme/plat.py"], Level.WARNING),
        (["<frozen importlib._bootstrap_external>", "torch/__init__.py", "acme/__init__.py"], Level.WARNING),
        (["acme/__init__.py", "<frozen importlib._bootstrap>"], Level.ERROR),
        (["threading.py", "acme/device.py", "<frozen importlib._bootstrap>", "acme/__init__.py"], Level.ERROR),
        (["threading.py", "acme/device.py"], Level.ERROR),
    ],
)
def test_a_slow_import_of_another_library_is_no_wait_for_ever(files, level):
    row = {"group": SRT_PLATFORMS, "name": "acme", "value": "acme:activate", "dist": "acme", "version": "1", "where": "", "line": None}
    stack = [{"file": file if file[0] == "<" else f"/env/lib/{file}", "line": 3, "function": "<module>"} for file in files]
    found = _judge_ending(None, Entry(row), {"kind": "timeout", "seconds": 8, "stack": stack}, "its import")
    assert (found.code, found.level) == ("SP305", level)
    assert ("SGLang waits for ever" in found.message, "--timeout" in found.hint) == (level is Level.ERROR, level is Level.WARNING)


def test_only_sources_are_read_for_a_hint(tmp_path):
    (tmp_path / "a.py").write_bytes(b"one\ntwo\xff\n")
    assert lines_of(str(tmp_path / "a.py")) == ["one", "two\ufffd"]
    for name in ("/dev/zero", str(tmp_path), "\ud800", "a\0b", ""):
        assert lines_of(name) == []
