"""A project's imports of its own modules: what is missing is said with the near name, what a build makes is not."""

from __future__ import annotations

import pytest

BASE = {
    "zephyrx/__init__.py": "",
    "zephyrx/device.py": "class Device: ...\ndef _open(): ...\n",
    "zephyrx/ops/__init__.py": "from zephyrx.ops.rope import rotate\n",
    "zephyrx/ops/rope.py": "def rotate(): ...\n",
}


@pytest.mark.parametrize(
    ("line", "name", "near"),
    [
        ("from zephyrx.devise import Device", "zephyrx.devise", "zephyrx.device"),
        ("import zephyrx.devise", "zephyrx.devise", "zephyrx.device"),
        ("import zephyrx.opps.rope as rope", "zephyrx.opps", "zephyrx.ops"),
        ("from .devise import Device", "zephyrx.devise", "zephyrx.device"),
        ("from . import devise", "zephyrx.devise", "zephyrx.device"),
        ("from zephyrx.device import Devise", "zephyrx.device.Devise", "zephyrx.device.Device"),
        ("from zephyrx.ops import rotat", "zephyrx.ops.rotat", "zephyrx.ops.rotate"),
        ("def activate():\n    from zephyrx.devise import Device", "zephyrx.devise", "zephyrx.device"),
        ("from zephyrx.nowhere_at_all import x", "zephyrx.nowhere_at_all", None),
    ],
)
@pytest.mark.parametrize("about", ["import sglang\n", ""])
def test_a_module_of_its_own_that_is_not_there(findings, line, name, near, about):
    if not about and ("device import" in line or "ops import" in line or "from . import" in line):
        pytest.skip("names are looked at in files that speak of sglang")
    found = [finding for finding in findings({**BASE, "zephyrx/main.py": about + line + "\n"}) if finding.code == "SP712"]
    assert [(finding.subject["name"], finding.level.value) for finding in found] == [(name, "error" if near else "warning")]
    assert (near or "correct the name") in found[0].hint


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("from zephyrx._version import version", {}),
        ("from zephyrx import version", {}),
        ("from zephyrx.proto_pb2 import Row", {}),
        ("from zephyrx import kernels", {"zephyrx/kernels.cpython-311-x86_64-linux-gnu.so": ""}),
        ("from zephyrx.fast import go", {"zephyrx/fast.pyx": ""}),
        ("from zephyrx.spaces.deep import go", {"zephyrx/spaces/deep.py": "def go(): ...\n"}),
        ("from zephyrx.data import go", {"zephyrx/data/README": ""}),
        ("from zephyrx.gen_tables import T", {".gitignore": "zephyrx/gen_tables.py\n"}),
        ("from zephyrx.config_gen import T", {"setup.py": "open('zephyrx/config_gen.py', 'w')\n"}),
        ("from zephyrx.hidden import T", {"pyproject.toml": "[build-system]\nrequires = ['maturin']\nbuild-backend = 'maturin'\n"}),
        ("try:\n    from zephyrx.devise import D\nexcept ImportError:\n    D = None", {}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from zephyrx.devise import D", {}),
        ("from zephyrx.plugged.devise import D", {"zephyrx/plugged/__init__.py": "__path__ = []\n"}),
        ("from zephyrx.lazy import anything", {"zephyrx/lazy.py": "def __getattr__(name): ...\n"}),
        ("from zephyrx.stars import anything", {"zephyrx/stars.py": "from os.path import *\n"}),
        ("from zephyrx.wide import anything", {"zephyrx/wide.py": "globals().update(a=1)\n"}),
        ("from zephyrx.cond import X", {"zephyrx/cond.py": "import sys\nif sys.platform == 'linux':\n    X = 1\n"}),
        ("from zephyrx.late import X", {"zephyrx/late.py": "def go():\n    global X\n    X = 1\n"}),
        ("from zephyrx.device import Device, _open", {}),
        ("import zephyry.devise", {}),
        ("from zephyrx.device import *", {}),
        ("from zephyrx import __version__, __all__", {}),
    ],
)
def test_what_a_build_makes_or_nobody_can_tell(codes, line, more):
    assert "SP712" not in codes({**BASE, "zephyrx/main.py": f"import sglang\n{line}\n", **more})


def test_a_source_folder_and_one_file_alone(plugins):
    from sglang_plug.checks.source.run import check

    root = plugins.lay({f"src/{name}": text for name, text in BASE.items()} | {"pyproject.toml": "[project]\nname = 'zephyrx'\n"})
    file = root / "src/zephyrx/main.py"
    file.write_text("import sglang\nfrom zephyrx.devise import Device\nfrom zephyrx.ops import rotate\n")
    for path in (root, file):
        assert [finding.code for finding in check(path, ("0.5.23",)).findings if finding.code == "SP712"] == ["SP712"]
