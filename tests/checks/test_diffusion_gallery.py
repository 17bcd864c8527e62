"""Every flaw of a diffusion plugin fires its rule and no other; sound ones are clean. Platforms are named, so that each is tried."""

from __future__ import annotations

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.checks.rehearsal import Limits
from tests.checks.conftest import by_name, run
from tests.checks.galleries import AFTER, AROUND, DIFF_API, TARGET, one, registering
from tests.plugins.install import DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, Site

HEAD = "from sglang.multimodal_gen.runtime.platforms import Platform, PlatformEnum\n"
GIVES = 'def activate():\n    return "MOD.plat.Plat"\n'


ASKED = "def get_attn_backend_cls_str(self, selected_backend, head_size, dtype): "
SDPA = "sglang.multimodal_gen.runtime.layers.attention.backends.sdpa"
CPU_BASED = f"""{HEAD}from sglang.multimodal_gen.runtime.platforms.cpu import CpuPlatform
class Plat(CpuPlatform):
    _enum, device_name, device_type, dispatch_key = PlatformEnum.OOT, "acme", "cpu", "CPU"
    def get_device(self, local_rank): return None
"""


def plat(*, body: str = "", without: tuple[str, ...] = (), enum: str = "PlatformEnum.OOT", head: str = "", base: str = "Platform") -> str:
    members = {
        "_enum": f"_enum = {enum}",
        "device_name": 'device_name = "acme"',
        "device_type": 'device_type = "cpu"',
        "dispatch_key": 'dispatch_key = "PrivateUse1"',
        "get_dispatch_key_name": 'def get_dispatch_key_name(self): return "acme"',
        "get_device": "def get_device(self, local_rank=0): return None",
        "get_local_torch_device": "def get_local_torch_device(self): return None",
        "get_device_name": 'def get_device_name(self, device_id=0): return "acme"',
        "get_device_total_memory": "def get_device_total_memory(self, device_id=0): return 1 << 34",
        "get_available_gpu_memory": "def get_available_gpu_memory(self, *a, **k): return 8.0",
    }
    lines = [text for name, text in members.items() if name not in without] + ([body] if body else [])
    return f"{HEAD}{head}\nclass Plat({base}):\n" + "".join(f"    {line}\n" for line in lines)


PLATFORMS = {
    "ok": (GIVES, plat(), set()),
    "ok_none": ("def activate(): return None\n", plat(), set()),
    "ok_top_import": (HEAD + GIVES, plat(), set()),
    "import_missing": ("import vendor_rt_missing\n" + GIVES, plat(), {"SP301"}),
    "raises": ('def activate():\n    raise OSError("libacme.so.3")\n', plat(), {"SP302"}),
    "exits": ("import os\ndef activate(): os._exit(9)\n", plat(), {"SP303"}),
    "true": ("def activate(): return True\n", plat(), {"SP308"}),
    "empty": ("def activate(): return '  '\n", plat(), {"SP308"}),
    "class_missing": ('def activate(): return "MOD.plat.Nope"\n', plat(), {"SP401"}),
    "class_import": (GIVES, "import vendor_rt_missing\n" + plat(), {"SP402"}),
    "srt_base": (GIVES, "from sglang.srt.platforms.interface import SRTPlatform\nclass Plat(SRTPlatform): pass\n", {"SP403"}),
    "no_enum": (GIVES, plat(without=("_enum",)), {"SP404"}),
    "srt_enum": (GIVES, plat(head="from sglang.srt.platforms.device_mixin import PlatformEnum as Other", enum="Other.OOT"), {"SP404"}),
    "init_argument": (GIVES, plat(body="def __init__(self, config): pass"), {"SP405"}),
    "memory_in_gib": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): return 64"),
        {"SP415"},
    ),
    "available_in_bytes": (
        GIVES,
        plat(without=("get_available_gpu_memory",), body="def get_available_gpu_memory(self, *a, **k): return 8 << 30"),
        {"SP415"},
    ),
    "ok_attention": (GIVES, plat(body=ASKED + "return 'MOD.attention:Backend'"), set()),
    "ok_attention_upstream": (GIVES, plat(body=ASKED + f"return '{SDPA}.SDPABackend'"), set()),
    "ok_attention_beyond_standin": (GIVES, plat(body=ASKED + f"return '{SDPA[:-5]}.flash_attn.FlashAttentionBackend'"), set()),
    "ok_attention_of_one_head_size": (GIVES, plat(body=ASKED + f"return '{SDPA}.SDPABackend' if head_size == 64 else ''"), set()),
    "ok_attention_refuses": (GIVES, plat(body=ASKED + "raise ValueError(dtype)"), set()),
    "ok_attention_needs_hardware": (GIVES, plat(body=ASKED + "import vendor_rt_missing; return 3"), set()),
    "ok_cpu_based": (GIVES, CPU_BASED, set()),
    "ok_implements_what_the_base_refuses": (GIVES, plat(body="def get_device_uuid(self, device_id=0): return 'acme-0'"), set()),
    "seeds": (GIVES, plat(body="def seed_everything(self, seed=None): pass"), set()),
    "attention_number": (GIVES, plat(body=ASKED + "return 42"), {"SP415"}),
    "attention_empty": (GIVES, plat(body=ASKED + "return ''"), {"SP415"}),
    "attention_misspelt": (GIVES, plat(body=ASKED + f"return '{SDPA}.SDPABackendX'"), {"SP415"}),
    "attention_class_missing": (GIVES, plat(body=ASKED + "return 'MOD.attention.Bakend'"), {"SP415"}),
    "attention_module_missing": (GIVES, plat(body=ASKED + "return 'MOD.atention:Backend'"), {"SP415"}),
    "attention_foreign_module": (GIVES, plat(body=ASKED + "return 'vendor_kernels.attention.Backend'"), {"SP415"}),
    "no_name": (GIVES, plat(without=("device_name",), body="device_name = ' '"), {"SP406"}),
    "no_type": (GIVES, plat(without=("device_type",), body="device_type = None"), {"SP406"}),
    "no_memory": (GIVES, plat(without=("get_available_gpu_memory",)), {"SP407"}),
    "no_local": (GIVES, plat(without=("get_local_torch_device",)), {"SP407"}),
    "sets_env": ('import os\ndef activate():\n    os.environ["A_B"] = "1"\n    return "MOD.plat.Plat"\n', plat(), {"SP320"}),
    "reads_current": (
        "def activate():\n    from sglang.multimodal_gen.runtime.platforms import current_platform\n    return 'MOD.plat.Plat'\n",
        plat(),
        {"SP311"},
    ),
}

HOOKS = {
    "hk_ok": (one("TGT.f", AROUND, "AROUND", api=DIFF_API), set()),
    "hk_gone": (one("TGT.ff", AROUND, "AROUND", api=DIFF_API), {"SP501"}),
    "hk_srt_registry": (one("TGT.f", AROUND, "AROUND"), {"SP517"}),
    "hk_async": (one("TGT.af", AFTER, "AFTER", api=DIFF_API), {"SP504"}),
    "hk_raises": (registering('raise OSError("x")', api=DIFF_API), {"SP302"}),
    "hk_partial": (
        registering(f'HookRegistry.register("TGT.f", {AROUND}, HookType.AROUND)', 'raise OSError("late")', api=DIFF_API),
        {"SP302"},
    ),
    "hk_not_callable": ("register = 3\n", {"SP307"}),
    "hk_exits": ("import os\ndef register(): os._exit(1)\n", {"SP303"}),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    root = tmp_path_factory.mktemp("diffusion")
    site = Site(root / "site")
    for name, (activate, text, _) in PLATFORMS.items():
        modules = {"__init__": activate, "plat": text, "attention": "import vendor_rt_missing\nclass Backend: pass\n"}
        files = {f"dp_{name}/{module}.py": source.replace("MOD", f"dp_{name}") for module, source in modules.items()}
        site.add(f"{name.replace('_', '-')}-dist", {DIFFUSION_PLATFORMS: {name: f"dp_{name}:activate"}}, files)
    for name, (text, _) in HOOKS.items():
        files = {f"{name}.py": text.replace("TGT", f"tgt_{name}"), f"tgt_{name}.py": TARGET}
        site.add(f"{name.replace('_', '-')}-dist", {DIFFUSION_PLUGINS: {name: f"{name}:register"}}, files)
    return run(site, root / "cwd", (*PLATFORMS, *HOOKS), limits=Limits(timeout=5), runtimes=("diffusion",))


@pytest.mark.parametrize("name", [*PLATFORMS, *HOOKS])
def test_one_flaw_one_rule(report, name):
    wanted = PLATFORMS[name][2] if name in PLATFORMS else HOOKS[name][1]
    found = {f.code: f for f in by_name(report)[name] if f.level is not Level.INFO}
    told = "\n".join(f"{f.code} {f.message} | {f.cause}" for f in found.values())
    assert set(found) == wanted, told


def test_a_platform_without_attention_is_told(report):
    """The base's empty text ends the first attention layer; a model may have none, so it is a note."""
    told = {name for name in PLATFORMS for f in by_name(report)[name] if f.level is Level.INFO and "get_attn_backend_cls_str" in f.message}
    assert {"ok", "ok_top_import"} <= told
    assert not told & {"ok_attention", "ok_cpu_based", "attention_number"}


def test_an_override_that_nobody_calls_is_a_note_unless_the_base_refuses(report):
    noted = {name for name in PLATFORMS for f in by_name(report)[name] if f.code == "SP409"}
    assert noted == {"seeds"}


def test_the_hint_names_the_class_that_was_meant(report):
    hints = {name: f.hint for name in PLATFORMS for f in by_name(report)[name] if f.code == "SP415"}
    levels = {name: f.level for name in PLATFORMS for f in by_name(report)[name] if f.code == "SP415"}
    assert hints["attention_misspelt"] == f"did you mean '{SDPA}:SDPABackend'?"
    assert hints["attention_class_missing"] == "did you mean 'dp_attention_class_missing.attention:Backend'?"
    assert levels["attention_module_missing"] is Level.ERROR
    assert levels["attention_foreign_module"] is Level.WARNING  # its package may be installed on the machine that serves
