"""What a platform's callback costs and touches. That torch and triton are loaded by then was seen on SGLang 0.5.21 and 0.5.23."""

from __future__ import annotations

import pytest

TOML = '[project]\nname = "plug"\nversion = "1"\n[project.entry-points."sglang.{}.platforms"]\nmine = "plug:activate"\n'
CALLBACK = '{}\ndef activate():\n    {}\n    return "plug.platform:P"\n'
PLATFORM = "import torch, transformers\nfrom sglang.srt.platforms.interface import SRTPlatform\n{}\nclass P(SRTPlatform): ...\n"


@pytest.fixture
def startup(plugins):
    def run(top: str = "", body: str = "pass", platform: str = "", runtime: str = "srt", **files: str):
        laid = {
            "pyproject.toml": TOML.format(runtime),
            "plug/__init__.py": CALLBACK.format(top, body),
            "plug/platform.py": PLATFORM.format(platform),
            **{f"plug/{name}.py": text for name, text in files.items()},
        }
        found = plugins.report(laid, "0.5.23").findings
        return [(f.code, str(f.level.value), f.location.path, f.location.line) for f in found if f.code in {"SP328", "SP331"}]

    return run


@pytest.mark.parametrize(
    ("where", "level", "place"),
    [
        ({"top": "import torch"}, "info", ("__init__", 1)),
        ({"top": "from torch import nn"}, "info", ("__init__", 1)),
        ({"top": "import torch_npu"}, "info", ("__init__", 1)),
        ({"body": "import torch"}, "info", ("__init__", 3)),
        ({"body": "import transformers"}, "warning", ("__init__", 3)),
        ({"top": "from . import device", "device": "import vllm.platforms"}, "warning", ("device", 1)),
        ({"top": "from .device import here", "device": "try:\n    import transformers\nexcept ImportError:\n    pass\nhere = 1"},
         "warning", ("device", 2)),
        ({"body": "here()", "top": "def here():\n    import transformers"}, "warning", ("__init__", 2)),
        ({"body": "from .device import here\n    here()", "device": "def here():\n    import transformers"}, "warning", ("device", 2)),
        ({"body": "from . import device", "device": "import transformers"}, "warning", ("device", 1)),
        ({"top": "import transformers", "runtime": "multimodal_gen"}, "info", ("__init__", 1)),
    ],
)  # fmt: skip
def test_a_heavy_import(startup, where, level, place):
    assert startup(**where) == [("SP331", level, f"plug/{place[0]}.py", place[1])]


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"top": "import os, ctypes, importlib.util\nimport numpy"},
        {"top": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"},
        {"top": "def later():\n    import transformers"},
        {"other": "import transformers"},
        {"platform": "import vllm\nimport triton"},
        {"body": "def inner():\n        import transformers"},
    ],
)
def test_what_costs_nothing(startup, where):
    assert startup(**where) == []


@pytest.mark.parametrize(
    ("call", "level"),
    [
        ("torch.cuda.is_available()", "info"),
        ("torch.npu.device_count()", "info"),
        ("torch.cuda.get_device_name(0)", "warning"),
        ("torch.npu.set_device(0)", "warning"),
        ("torch.zeros(1, device='cuda')", "warning"),
    ],
)
def test_a_device_call(startup, call, level):
    assert sorted(row[:2] for row in startup(body=f"import torch; {call}")) == [("SP328", level), ("SP331", "info")]
    other = startup(top="from .device import here", device=f"import torch\ndef here():\n    return {call}", body="here()")
    assert ("SP328", level, "plug/device.py", 3) in other


@pytest.mark.parametrize(
    "where",
    [
        {"body": "torch.zeros(1)", "top": "import torch"},
        {"body": "torch.zeros(1, device='cpu')", "top": "import torch"},
        {"body": "torch.cpu.is_available()", "top": "import torch"},
        {"body": "torch.backends.mps.is_available()", "top": "import torch"},
        {"top": "import torch\ndef later():\n    torch.cuda.set_device(0)"},
        {"platform": "HERE = torch.cuda.is_available()"},
        {"body": "other.cuda.set_device(0)"},
    ],
)
def test_what_touches_no_device(startup, where):
    assert [row for row in startup(**where) if row[0] == "SP328"] == []


def test_the_class_s_module_begins_to_use_the_device(startup):
    assert startup(platform="torch.cuda.set_device(0)") == [("SP328", "warning", "plug/platform.py", 3)]
