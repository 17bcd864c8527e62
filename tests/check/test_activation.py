"""What may be imported while SGLang selects its platform."""

from __future__ import annotations

import pytest

TOML = '[project]\nname = "plug"\nversion = "1"\n[project.entry-points."{}"]\nmine = "plug:activate"\n'
ACTIVATE = 'def activate():\n    {}\n    return "plug.platform:P"\n'
PLATFORM = """\
from sglang.srt.platforms.interface import SRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum
{}
class P(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = device_type = "cpu"
    def get_device(self, device_id=0): return "cpu"
    def get_device_total_memory(self, device_id=0): return 1
"""


@pytest.fixture
def activation(plugins):
    def run(top: str = "", body: str = "pass", platform: str = "", releases=("0.5.23",), **files: str):
        laid = {
            "pyproject.toml": TOML.format("sglang.srt.platforms"),
            "plug/__init__.py": f"{top}\n{ACTIVATE.format(body)}",
            "plug/platform.py": PLATFORM.format(platform),
            **{f"plug/{name}.py": text for name, text in files.items()},
        }
        return [finding for finding in plugins.report(laid, *releases).findings if finding.level != "info"]

    return run


UTILS = "from sglang.srt.utils import is_cuda"


@pytest.mark.parametrize(
    "where",
    [
        {"top": UTILS},
        {"body": UTILS},
        {"platform": UTILS},
        {"platform": "from .device import D", "device": f"{UTILS}\nD = None"},
        {"top": "from . import device", "device": UTILS},
        {"platform": "from sglang.srt.layers.activation import SiluAndMul"},  # reaches sglang.srt.utils by itself
        {"platform": "import sglang.srt.model_executor.model_runner"},
    ],
)
def test_a_circle(activation, where):
    found = activation(**where)
    assert {finding.code for finding in found} == {"SP310"}
    assert "init_backend()" in found[0].hint


def test_no_circle_before_the_host_selects_on_import(activation):
    (finding,) = activation(top=UTILS, releases=("0.5.12", "0.5.13", "0.5.23"))
    assert finding.data["releases"] == ["0.5.13", "0.5.23"]


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"body": "import logging\n    from sglang.srt.environ import envs"},
        {"top": f"def later():\n    {UTILS}"},
        {"platform": f"def later():\n    {UTILS}"},
        {"top": f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {UTILS}"},
        {"body": f"try:\n        {UTILS}\n    except ImportError:\n        is_cuda = None"},
        {"body": "from sglang.srt.plugins.hook_registry import HookRegistry"},
        {"hooks": UTILS},
    ],
)
def test_what_is_safe(activation, where):
    assert activation(**where) == []


def test_reading_what_it_decides(activation):
    assert [finding.code for finding in activation(body="from sglang.srt.platforms import current_platform")] == ["SP311"]


def test_diffusion(plugins):
    files = {
        "pyproject.toml": TOML.format("sglang.multimodal_gen.platforms"),
        "plug/__init__.py": ACTIVATE.format("from sglang.multimodal_gen.runtime.layers.layernorm import RMSNorm"),
        "plug/platform.py": "class P: ...\n",
    }
    assert [finding.code for finding in plugins.report(files, "0.5.23").findings] == ["SP310"]
    files["plug/__init__.py"] = ACTIVATE.format("from sglang.multimodal_gen.runtime.platforms.interface import Platform")
    assert [finding.code for finding in plugins.report(files, "0.5.23").findings] == []


@pytest.mark.parametrize(
    "where",
    [
        {"top": "from sglang.srt.environ import envs"},
        {"top": "from sglang.srt.plugins.hook_registry import HookRegistry"},
        {"top": "import sglang"},
        {"top": "from . import hooks", "hooks": "from sglang.srt.plugins.hook_registry import HookRegistry"},
        {"top": "from .hooks import later", "hooks": "from .deep import later", "deep": "import sglang\ndef later(): ..."},
        {"top": f"try:\n    {UTILS}\nexcept ImportError:\n    is_cuda = None"},
    ],
)
def test_an_import_above_the_callback(activation, where):
    """Measured on SGLang 0.5.21 and 0.5.23: `import plug` alone ends in "partially initialized module 'plug' has no attribute"."""
    (finding,) = activation(**where)
    assert (finding.code, finding.level, finding.location.line) == ("SP312", "warning", 2 if where["top"].startswith("try") else 1)


def test_an_import_below_the_callback_meets_it_whole(plugins):
    toml, source = TOML.format("sglang.srt.platforms"), ACTIVATE.format("pass")
    files = {"pyproject.toml": toml, "plug/platform.py": PLATFORM.format("")}
    below = {**files, "plug/__init__.py": f"{source}\nimport sglang"}
    assert [f.code for f in plugins.report(below, "0.5.23").findings if f.level != "info"] == []
    beside = {"plug/__init__.py": "import sglang", "plug/entry.py": source, "pyproject.toml": toml.replace("plug:", "plug.entry:")}
    assert [f.code for f in plugins.report({**files, **beside}, "0.5.23").findings if f.level != "info"] == []


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"top": "from sglang.srt.constants import HEALTH_CHECK_RID_PREFIX"}, ["SP312", "SP330"]),
        ({"body": "from sglang.srt.constants import HEALTH_CHECK_RID_PREFIX"}, ["SP330"]),
        ({"body": "from plug.other import X", "other": "X = 1"}, []),
        ({"platform": "from sglang.srt.constants import HEALTH_CHECK_RID_PREFIX"}, []),
        ({"body": "from sglang.srt.environ import envs"}, []),
        ({"body": "from sglang.srt.platforms.device_mixin import PlatformEnum"}, []),
        ({"body": "try:\n        from sglang.srt.constants import X\n    except ImportError:\n        pass"}, []),
    ],
)
def test_an_import_of_the_runtime_that_closes_no_circle(activation, where, told):
    assert sorted({finding.code for finding in activation(**where)}) == told
