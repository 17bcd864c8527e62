"""A plugin's own imports are followed without running them; Python itself, asked in a process of its own, says what really happens."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.core.resolution import Resolution
from sglang_plug.probe.location import judge

if TYPE_CHECKING:
    from sglang_plug.probe.parent import Probe
    from tests.plugins.install import Site

PLAT = "class Plat(dict): pass\n"
ORACLE = """
import json, pkgutil, sys
answers = {}
for name in json.loads(sys.argv[1]):
    try:
        pkgutil.resolve_name(name)
        answers[name] = None
    except Exception as exc:
        answers[name] = type(exc).__name__
    top = name.split(".")[0]
    for loaded in [key for key in sys.modules if key == top or key.startswith(top + ".")]:
        del sys.modules[loaded]
print(json.dumps(answers))
"""
# What stands before the class in `plat.py`, and other files of the package; `@` is the package's name.
SOUND: dict[str, tuple[str, dict[str, str]]] = {
    "relative": ("from . import ops\nfrom .ops import run", {"ops.py": "def run(): pass"}),
    "absolute": ("import @.ops\nfrom @.ops import run", {"ops.py": "def run(): pass"}),
    "up": ("from .sub.deep import X", {"sub/__init__.py": "", "sub/deep.py": "from ..ops import X", "ops.py": "X = 1"}),
    "namespace": ("from .sub.deep import X\nfrom .sub import deep", {"sub/deep.py": "X = 1"}),
    "tried": ("try:\n    from . import native\nexcept ImportError:\n    native = None", {}),
    "tried_inside": ("from . import ops", {"ops.py": "try:\n    from .native import a\nexcept Exception:\n    a = None"}),
    "typed": ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .nowhere import X", {}),
    "later": ("def start():\n    from .nowhere import X", {}),
    "suppressed": ("import contextlib\nwith contextlib.suppress(ImportError):\n    from . import nowhere", {}),
    "lazy": ("from .ops import anything", {"ops.py": "def __getattr__(name): return 1"}),
    "starred": (
        "from .ops import X, Y",
        {"ops.py": "from .more import *\nfrom json import *", "more.py": "X = 1\nfrom .last import *", "last.py": "Y = 1"},
    ),
    "foreign_star": ("from .ops import dumps", {"ops.py": "from json import *"}),
    "made": ("from .ops import A1", {"ops.py": "for i in range(3):\n    globals()[f'A{i}'] = i"}),
    "looped": (
        "from .ops import i, f, g, w",
        {"ops.py": "for i in range(3): pass\nwith open(__file__) as f: pass\ndef s():\n    global g\n    g = 1\ns()\nif (w := 1): pass"},
    ),
    "matched": ("from .ops import x", {"ops.py": "match [1]:\n    case [x]: pass"}),
    "registered": (
        "from .fake import X",
        {"__init__.py": "import sys, types\nm = types.ModuleType('@.fake')\nm.X = 1\nsys.modules['@.fake'] = m"},
    ),
    "extended": (
        "from .more import X",
        {"__init__.py": "import os\n__path__.append(os.path.join(__path__[0], 'vendored'))", "vendored/more.py": "X = 1"},
    ),
    "circular": ("from .ops import X", {"ops.py": "X = 1\nfrom . import plat"}),
    "itself": ("from . import X", {"__init__.py": "X = 1\nfrom . import plat"}),
    "dunder": ("from . import __name__ as me, __path__ as here", {}),
    "main": ("import __main__, sys, os.path, xml.dom.minidom", {}),
    "conditional_class": (
        "import sys\nif sys:\n    from .ops import Plat\nelse:\n    from .nowhere import Plat\nHAS = 1",
        {"ops.py": PLAT},
    ),
    "either": ("try:\n    from .native import Plat\nexcept ImportError:\n    from .ops import Plat", {"ops.py": PLAT}),
}
BROKEN: dict[str, tuple[str, dict[str, str], str]] = {
    "submodule": ("from .nowhere import X", {}, "No module named '@.nowhere' (plat.py:1)"),
    "submodule_absolute": ("import os\nimport @.nowhere.deep", {}, "No module named '@.nowhere' (plat.py:2)"),
    "submodule_name": ("from . import nowhere", {}, "cannot import name 'nowhere' from '@' (plat.py:1)"),
    "name": ("from .ops import gone", {"ops.py": "here = 1"}, "cannot import name 'gone' from '@.ops' (plat.py:1)"),
    "deeper": (
        "from .ops import X",
        {"ops.py": "from .more import X", "more.py": "import json\nfrom . import lost"},
        "cannot import name 'lost' from '@' (more.py:2)",
    ),
    "vendor": (
        "from .ops import X",
        {"ops.py": "import vendor_rt_missing.x\nX = 1"},
        "vendor_rt_missing, which is not installed (ops.py:1)",
    ),
    "star_module": ("from .nowhere import *", {}, "No module named '@.nowhere' (plat.py:1)"),
    "star_name": ("from .ops import gone", {"ops.py": "from .more import *", "more.py": "X = 1"}, "cannot import name 'gone' from '@.ops'"),
    "finally": ("try:\n    from . import lost\nfinally:\n    pass", {}, "cannot import name 'lost' from '@' (plat.py:2)"),
    "in_class": ("class Other:\n    from .nowhere import X", {}, "No module named '@.nowhere' (plat.py:2)"),
    "package": ("", {"__init__.py": "from .plat import Gone"}, "cannot import name 'Gone' from '@.plat' (__init__.py:1)"),
    "too_far": ("from ...other import X", {}, "attempted relative import beyond top-level package (plat.py:1)"),
    "syntax": ("from .ops import X", {"ops.py": "\n\ndef broken(:\n"}, "@.ops is not valid Python: invalid syntax (ops.py:3)"),
    "reexport": ("from .ops import Plat as Base", {"ops.py": "from .more import Plat"}, "No module named '@.more' (ops.py:1)"),
}


def lay(site: Site, case: str, text: str, files: dict[str, str]) -> None:
    """Write one case's package; the class stands last in its module, unless the text brings its own."""
    own = "" if "Plat\n" in text + "\n" and "import Plat\n" in text + "\n" else PLAT
    rows = {"__init__.py": "", "plat.py": f"{text}\n{own}", **files}
    site.write({f"{case}/{name}": body.replace("@", case) for name, body in rows.items()})


@pytest.fixture
def packages(site: Site) -> Site:
    """Every case's package, installed."""
    for case, (text, files) in SOUND.items():
        lay(site, case, text, files)
    for case, (text, files, _) in BROKEN.items():
        lay(site, case, text, files)
    return site


def verdict(probe: Probe, qualname: str, *, has_sglang: bool = True) -> tuple[str, str | None, str]:
    """Return the step's verdict, the type that the host ends with, and the reason."""
    found: dict[str, Any] = probe.require({"op": "locate", "qualname": qualname})
    step, failure = judge(Resolution("srt", "plugin", name="x", qualname=qualname), found, has_sglang=has_sglang)
    return step.verdict, failure.type if failure else None, step.why


def test_what_python_does_is_what_is_said(probe: Probe, packages: Site) -> None:
    names = [name for case in (*SOUND, *BROKEN) for name in (f"{case}.plat.Plat", f"{case}.plat:Plat")]
    done = subprocess.run(
        [sys.executable, "-c", ORACLE, json.dumps(names)], env=packages.env(), capture_output=True, text=True, timeout=60, check=True
    )
    truth = json.loads(done.stdout)
    assert {name: verdict(probe, name)[1] for name in names} == truth
    assert not any(truth[f"{case}.plat:Plat"] for case in SOUND), "an example of the table is not what it says"
    assert all(truth[f"{case}.plat:Plat"] for case in BROKEN), "an example of the table is not what it says"


@pytest.mark.parametrize("case", BROKEN)
def test_the_reason_names_what_is_missing_and_the_line(probe: Probe, packages: Site, case: str) -> None:
    said = verdict(probe, f"{case}.plat.Plat")[2].replace(f"{packages.root}/{case}/", "")
    assert BROKEN[case][2].replace("@", case) in said


def test_without_sglang_only_what_the_plugin_itself_lacks_is_sure(probe: Probe, packages: Site) -> None:
    assert verdict(probe, "vendor.plat.Plat", has_sglang=False)[:2] == ("doubtful", None)
    assert verdict(probe, "name.plat.Plat", has_sglang=False)[:2] == ("failed", "AttributeError")


def test_a_second_package_of_the_distribution_is_looked_into_where_it_is_named(probe: Probe, site: Site) -> None:
    site.write({"one/__init__.py": "", "one/plat.py": "from two.ops import gone\n" + PLAT, "two/__init__.py": "", "two/ops.py": ""})
    request = {"op": "locate", "qualname": "one.plat.Plat"}
    assert probe.require(request)["missing_imports"] == []
    assert [row["module"] for row in probe.require({**request, "owned": ["two"]})["missing_imports"]] == ["two.ops"]


def test_a_file_that_cannot_be_read_is_not_called_bad_python(probe: Probe, site: Site) -> None:
    site.write({"locked/__init__.py": "", "locked/plat.py": PLAT})
    path = site.root / "locked" / "plat.py"
    path.unlink()
    path.symlink_to("/proc/self/mem")  # a file that even root cannot read from its beginning
    said = verdict(probe, "locked.plat.Plat")
    assert said[:2] == ("failed", "OSError")
    assert "the file of locked.plat cannot be read: Input/output error" in said[2]
