"""Platform classes against each release's contract."""

from __future__ import annotations

import pytest

GOOD = """\
from sglang.srt.platforms.interface import SRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum

class P(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = "kunlun"
    device_type = "cpu"

    def get_device(self, device_id: int = 0) -> str:
        return "cpu"

    def get_device_total_memory(self, device_id: int = 0) -> int:
        return 1
"""


def serious(found):
    return [finding for finding in found if finding.level != "info"]


def test_a_sound_platform(findings):
    assert serious(findings(GOOD, "0.5.13", "0.5.17", "0.5.21", "0.5.22", "0.5.23")) == []


def test_what_is_left_to_a_base_that_raises_is_a_note(findings):
    (finding,) = findings(GOOD)
    assert (finding.code, finding.level) == ("SP407", "info")
    assert "get_device_uuid (10×)" in finding.cause


@pytest.mark.parametrize(
    ("line", "code", "releases"),
    [
        ("def support_cuda_graph(self): return True", "SP408", ["0.5.22", "0.5.23"]),
        ("def supports_fp8(self): return True", "SP408", ["0.5.22", "0.5.23"]),
        ("def get_nsa_kv_pool_cls(self): ...", "SP408", ["0.5.13", "0.5.21", "0.5.22", "0.5.23"]),
        ("def is_pin_memory_available(self): return True", "SP410", ["0.5.21", "0.5.22", "0.5.23"]),
        ("def init_backend(self, device): ...", "SP410", ["0.5.11", "0.5.13", "0.5.21", "0.5.22", "0.5.23"]),
        ("is_pin_memory_available = True", "SP414", ["0.5.11", "0.5.13", "0.5.21", "0.5.22", "0.5.23"]),
        ("async def init_backend(self): ...", "SP414", ["0.5.11", "0.5.13", "0.5.21", "0.5.22", "0.5.23"]),
        ("@property\n    def init_backend(self): ...", "SP414", ["0.5.11", "0.5.13", "0.5.21", "0.5.22", "0.5.23"]),
        ("def capabilities(self): ...", "SP414", ["0.5.22", "0.5.23"]),
    ],
)
def test_overrides_that_do_not_fit(findings, line, code, releases):
    found = serious(findings(f"{GOOD}\n    {line}\n", "0.5.11", "0.5.13", "0.5.21", "0.5.22", "0.5.23"))
    assert [(finding.code, finding.data["releases"]) for finding in found] == [(code, releases)]


@pytest.mark.parametrize(
    "line",
    [
        "def mine(self): ...",
        "def is_pin_memory_available(self, device=None): return False",
        "def is_pin_memory_available(self, *args): return False",
        "def get_kv_pool_cls(self, *, kind): ...",
        "@property\n    def device_name(self): return 'x'",
        "def __init__(self): self.device_name = 'y'",
    ],
)
def test_overrides_that_fit(findings, line):
    assert serious(findings(f"{GOOD}\n    {line}\n")) == []


def test_an_old_name_that_is_still_served(findings):
    found = [finding for finding in findings(f"{GOOD}\n    def get_mha_kv_pool_cls(self): ...\n") if finding.code == "SP413"]
    assert found[0].level == "info"
    both = f"{GOOD}\n    def get_mha_kv_pool_cls(self): ...\n    def get_kv_pool_cls(self, *, kind): ...\n"
    assert [finding.code for finding in findings(both)] == ["SP407"]


def test_a_dead_override_beside_its_replacement_is_no_finding(findings):
    both = f"{GOOD}\n    capabilities = make()\n    def support_cuda_graph(self): return True\n"
    assert serious(findings(both)) == []


def test_an_override_is_idle_only_where_no_asked_release_calls_it(findings):
    source = f"{GOOD}\n    def empty_cache(self): ...\n"  # called since 0.5.13
    assert [finding.code for finding in findings(source, "0.5.11")] == ["SP407"] + ["SP409"] * 2
    assert "SP409" not in [finding.code for finding in findings(source, "0.5.11", "0.5.23")]


def test_identity(findings):
    found = serious(findings(GOOD.replace("    _enum = PlatformEnum.OOT\n", "").replace('    device_type = "cpu"\n', "")))
    assert [(finding.code, finding.level) for finding in found] == [("SP404", "error"), ("SP406", "warning")]
    found = serious(findings(GOOD.replace("PlatformEnum.OOT", "PlatformEnum.CUDA")))
    assert [finding.code for finding in found] == ["SP404"]


def test_what_the_engine_cannot_start_without(findings):
    found = findings(GOOD.replace("get_device_total_memory", "other"))
    assert [finding.code for finding in found if finding.level == "error"] == ["SP407"]


def test_a_base_that_is_not_known_keeps_silent(findings):
    source = GOOD.replace("class P(SRTPlatform)", "from vendor import Base\nclass P(Base, SRTPlatform)")
    source = source.replace("    _enum = PlatformEnum.OOT\n", "").replace("get_device_total_memory", "other")
    assert findings(source) == []


def test_members_of_the_plugin_own_base_count(findings):
    source = GOOD.replace("class P(SRTPlatform)", "class Base(SRTPlatform)") + "\nclass P(Base):\n    pass\n"
    assert serious(findings(source)) == []


def test_a_mixin_behind_the_base_is_shadowed(findings):
    source = GOOD.replace("class P(SRTPlatform)", "class M:\n    def init_backend(self): ...\n\nclass P(SRTPlatform, M)")
    (finding,) = serious(findings(source))
    assert (finding.code, finding.cause) == ("SP411", "init_backend")
    assert serious(findings(source.replace("P(SRTPlatform, M)", "P(M, SRTPlatform)"))) == []


def test_capabilities(findings):
    source = GOOD.replace("import SRTPlatform", "import SRTPlatform, PlatformCapabilities")
    source += "    capabilities = PlatformCapabilities(graph_capture=True, supports_pynccl=True)\n"
    (finding,) = serious(findings(source, "0.5.22", "0.5.23"))
    assert (finding.code, finding.data["releases"]) == ("SP708", ["0.5.22"])
    assert "SP701" in [finding.code for finding in findings(source, "0.5.21")]  # the name itself came with 0.5.22


DIFFUSION = """\
from sglang.multimodal_gen.runtime.platforms.interface import Platform, PlatformEnum

class P(Platform):
    _enum = PlatformEnum.OOT
    device_name = "kunlun"
    device_type = "cpu"
"""


def test_a_diffusion_platform(findings):
    assert serious(findings(DIFFUSION, "0.5.21", "0.5.23")) == []
    found = serious(findings(DIFFUSION.replace('    device_name = "kunlun"\n', "")))
    assert [(finding.code, finding.level, finding.subject["runtime"]) for finding in found] == [("SP406", "error", "diffusion")]
    dead = DIFFUSION + "    def verify_quantization(self, q): ...\n"
    assert [finding.data["releases"] for finding in serious(findings(dead, "0.5.21", "0.5.22", "0.5.23"))] == [["0.5.23"]]


@pytest.mark.parametrize("compared", ["Version(sglang.__version__) < Version('0.5.22')", "not at_least('0.5.22')"])
def test_an_override_for_older_releases_alone(findings, compared):
    """`support_cuda_graph` left the base class in 0.5.22."""
    source = GOOD.replace("class P", "{}class P") + "    if {}:\n        def support_cuda_graph(self): return True\n"
    above = "import sglang\nfrom packaging.version import Version\n\ndef at_least(v): return Version(sglang.__version__) >= Version(v)\n\n"
    assert serious(findings(source.format(above, compared), "0.5.21", "0.5.23")) == []
    (finding,) = serious(findings(source.format(above, compared.replace("0.5.22", "0.5.24")), "0.5.21", "0.5.23"))
    assert (finding.code, finding.data["releases"]) == ("SP408", ["0.5.23"])


def test_a_misspelt_override_is_answered_with_the_nearest(findings):
    (finding,) = serious(findings(f"{GOOD}\n    def get_default_atention_backend(self): return 'x'\n"))
    assert (finding.code, finding.level.value, finding.hint) == ("SP408", "warning", "did you mean get_default_attention_backend?")


@pytest.mark.parametrize(
    "line",
    [
        "def get_default_atention_backend(self): return 'x'\n    def b(self): return self.get_default_atention_backend()",
        "def my_own_helper(self): return 'x'",
    ],
)
def test_own_helpers_are_no_misspelt_overrides(findings, line):
    assert serious(findings(f"{GOOD}\n    {line}\n")) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('device_type = "CPU"', "SP412"),
        ('device_type = "acme"', None),
        ('capabilities = {"graph_capture": True}', "SP414"),
        ("capabilities = make()", None),
        ("def get_torch_distributed_backend_str(self): return 'glooo'", "SP415"),
        ("def get_torch_distributed_backend_str(self): return 'cpu:gloo,acme:hccl'", None),
        ("def get_default_attention_backend(self): return 'torch_nativ'", "SP415"),
        ("def get_default_attention_backend(self): return 'acme_triton'", None),
        ("def get_default_attention_backend(self): return None", "SP415"),
        ("def get_default_attention_backend(self): return BACKEND", None),
    ],
)
def test_values_that_end_the_start(findings, line, code):
    source = GOOD.replace('    device_type = "cpu"\n', "") if "device_type" in line else GOOD
    assert [(f.code, f.level) for f in serious(findings(source + f"    {line}\n"))] == ([(code, "error")] if code else [])
