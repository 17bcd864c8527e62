"""Each conformance test fires on the mistake it is about, in words that name the consequence, and is silent on a sound platform.

All wrong platforms are installed side by side and examined by one run of pytest, as an author would run it.
"""
# ruff: noqa: E501 -- tables of cases, a line each

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from tests.plugins.install import DIFFUSION_PLATFORMS, SRT_PLATFORMS, Site

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = {"srt": SRT_PLATFORMS, "diffusion": DIFFUSION_PLATFORMS}

SRT = """
import torch
from sglang.srt.platforms.device_mixin import DeviceCapability, PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform

class Sound(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = "sound"
    device_type = "cpu"
    def get_device(self, device_id=0): return "cpu"
    def set_device(self, device): pass
    def get_device_name(self, device_id=0): return "sound"
    def get_device_uuid(self, device_id=0): return "sound-0"
    def get_device_capability(self, device_id=0): return DeviceCapability(9, 0)
    def get_device_total_memory(self, device_id=0): return 1 << 34
    def get_current_memory_usage(self, device=None): return 1e9
    def get_available_memory(self, device_id=0): return (1 << 33, 1 << 34)
    def get_torch_distributed_backend_str(self): return "gloo"
    def get_default_attention_backend(self): return "torch_native"
    def get_torch_profiler_activity(self): return torch.profiler.ProfilerActivity.CPU
    def get_torch_profiler_activity_str(self): return "CPU"
"""

DIFFUSION = """
import torch
from sglang.multimodal_gen.runtime.platforms import Platform, PlatformEnum

class Sound(Platform):
    _enum = PlatformEnum.OOT
    device_name = "sound"
    device_type = "cpu"
    dispatch_key = "CPU"
    def get_dispatch_key_name(self): return "sound"
    def get_device(self, local_rank=0): return torch.device("cpu")
    @classmethod
    def get_local_torch_device(cls): return torch.device("cpu")
    @classmethod
    def get_device_name(cls, device_id=0): return "sound"
    @classmethod
    def get_device_uuid(cls, device_id=0): return "sound-0"
    @classmethod
    def set_device(cls, device): pass
    @classmethod
    def synchronize(cls): pass
    @classmethod
    def empty_cache(cls): pass
    @classmethod
    def get_device_total_memory(cls, device_id=0): return 1 << 34
    @classmethod
    def get_available_gpu_memory(cls, device_id=None, distributed=False, empty_cache=True, cpu_group=None): return 8.0
    def get_torch_distributed_backend_str(self): return "gloo"
    def supports_distributed_device_id(self): return False
    def get_compile_backend(self, mode=None): return "eager"
    @classmethod
    def seed_everything(cls, seed=None): torch.manual_seed(seed)
    @classmethod
    def get_attn_backend_cls_str(cls, selected_backend, head_size, dtype): return "torch.nn.Linear"
    @classmethod
    def get_all_to_all_communicator_cls(cls): return "torch.nn.Linear"
"""

#: (runtime, what the class says instead, the test that must fail, words of its message)
WRONG: dict[str, tuple[str, str, str, str]] = {
    "memory in GiB": ("srt", "def get_device_total_memory(self, device_id=0): return 16", "total_memory_is_bytes", "(MiB or GiB?)"),
    "memory as text": ("srt", 'def get_device_total_memory(self, device_id=0): return "16GB"', "total_memory_is_bytes", "not a number of bytes"),
    "memory missing": ("srt", "get_device_total_memory = SRTPlatform.get_device_total_memory", "total_memory_is_bytes", "is not implemented"),
    "memory by index": (
        "srt", "def get_device_total_memory(self, device_id=None): return 1 << (34 if device_id is None else 33)", "total_memory_needs_no_index", "device 0",
    ),
    "more used than there is": ("srt", "def get_current_memory_usage(self, device=None): return 1e12", "memory_use_is_within", "more than the total"),
    "more free than there is": ("srt", "def get_available_memory(self, device_id=0): return (1 << 35, 1 << 34)", "available_memory_is_free", "more is free"),
    "total told twice": ("srt", "def get_available_memory(self, device_id=0): return (1 << 30, 1 << 33)", "available_memory_is_free", "in all"),
    "memory as a dict": ("srt", "def get_available_memory(self, device_id=0): return {}", "available_memory_is_free", "not (free, total)"),
    "torch device": ("srt", 'def get_device(self, device_id=0): return torch.device("cpu")', "device_is_a_string", "splits it at ':'"),
    "device of another type": ("srt", 'def get_device(self, device_id=0): return "cuda:0"', "device_is_a_string", "device_type is 'cpu'"),
    "no name": ("srt", "def get_device_name(self, device_id=0): return None", "device_has_a_name", "not a text"),
    "changing uuid": (
        "srt", "def get_device_uuid(self, device_id=0): self.n = getattr(self, 'n', 0) + 1; return f'u{self.n}'", "device_has_a_unique_name", "then 'u2'",
    ),
    "uuid missing": ("srt", "get_device_uuid = SRTPlatform.get_device_uuid", "device_has_a_unique_name", "calls it from 10 places"),
    "capability as tuple": ("srt", "def get_device_capability(self, device_id=0): return (9, 0)", "capability_is_two", "bare tuple"),
    "capability as float": ("srt", "def get_device_capability(self, device_id=0): return 9.0", "capability_is_two", "not (major, minor)"),
    "two-digit minor": ("srt", "def get_device_capability(self, device_id=0): return DeviceCapability(9, 10)", "capability_is_two", "minor number 10"),
    "answering synchronize": ("srt", "def synchronize(self): return True", "operations_return_nothing[synchronize]", "synchronize() returned True"),
    "answering set_device": ("srt", "def set_device(self, device): return 0", "device_can_be_made_current", "returned 0"),
    "unknown collective": (
        "srt", 'def get_torch_distributed_backend_str(self): return "xyzccl"', "collective_backend_is_a_text", "knows no backend xyzccl",
    ),
    "no compile backend": ("srt", "def get_compile_backend(self, mode=None): return None", "compile_backend_is_a_text", "hands it to torch.compile"),
    "spaced dispatch key": ("srt", 'def get_dispatch_key_name(self): return "my key"', "dispatch_key_name_is_an_identifier", "no identifier"),
    "unknown server argument": (
        "srt", "def apply_server_args_defaults(self, a): a.page_sise = 16", "defaults_may_be_applied", "sets page_sise, which are no server arguments",
    ),
    "returned arguments": ("srt", "def apply_server_args_defaults(self, a): return a", "defaults_may_be_applied", "write to the arguments"),
    "attention backend as class": ("srt", "def get_default_attention_backend(self): return int", "attention_backend_is_a_text", "not a text"),
    "allocator instance": ("srt", "def get_paged_allocator_cls(self): return 5", "factories_return_classes[get_paged_allocator_cls]", "returned 5"),
    "pool as text": ("srt", 'def get_kv_pool_cls(self, *, kind): return "pool"', "kv_pool_is_a_class[mha]", "'pool', not a class"),
    "capabilities as dict": ("srt", "capabilities = {}", "capabilities_are_declared", "reads PlatformCapabilities"),
    "pinned as text": ("srt", 'def is_pin_memory_available(self, device=None): return "no"', "pinned_memory_answers", "returned 'no'"),
    "group device as text": ("srt", 'def get_group_coordinator_device(self, r): return "cpu"', "group_device_is_a_torch_device", "returned 'cpu'"),
    "activity as text": ("srt", 'def get_torch_profiler_activity(self): return "CPU"', "profiler_activity_is_torchs", "returned 'CPU'"),
    "model returned": ("srt", "def post_load_model(self, model): return model", "loaded_model_is_changed_in_place", "change the model in place"),
    "quantization as text": ("srt", 'def get_quantization_config(self, q): return "fp8"', "quantization_is_a_class", "returned 'fp8'"),
    "left unspecified": ("srt", "_enum = PlatformEnum.UNSPECIFIED", "platform_is_out_of_tree", "passes by every branch"),
    "the other enum": (
        "srt", "from sglang.multimodal_gen.runtime.platforms import PlatformEnum as _other\n    _enum = _other.OOT", "platform_uses_its_runtimes_enum", "compares it",
    ),
    "unnamed device": ("srt", 'device_name = "unknown"', "device_name_is_a_text", "left at 'unknown'"),
    "type unknown to torch": ("srt", 'device_type = "nochip"', "device_type_is_known_to_torch", "rename privateuse1"),
    "predicate as number": ("srt", "def is_cuda_alike(self): return 1", "predicates_answer", "is_cuda_alike() returned 1"),
    "needs arguments": ("srt", "def __init__(self, index): pass", "class_needs_no_arguments", "without arguments"),
    "gone method": ("srt", "def support_cuda_graph(self): return True", "overrides_are_listened_to", "support_cuda_graph is gone from SGLang 0.5.23"),
    "narrow signature": ("srt", "def get_compile_backend(self): return 'eager'", "overrides_take_the_cores_arguments", "cannot be called as"),
    "backend answers": ("srt", "def init_backend(self): return 7", "backend_set_up_returns_nothing", "raise to stop the server"),
    "backend fails": ("srt", "def init_backend(self): raise OSError('no firmware')", "worker_starts", "no firmware"),
    "backend set up twice": (
        "srt", "def init_backend(self):\n        if not hasattr(self, 'x'):\n            self.x = 1\n            self.init_backend()", "backend_is_set_up_once", "ran 2 times",
    ),
    "free memory in bytes": (
        "diffusion", "@classmethod\n    def get_available_gpu_memory(cls, device_id=None, distributed=False, empty_cache=True, cpu_group=None): return 8e9",
        "available_memory_is_gib", "(bytes or MiB?)",
    ),
    "device as text": ("diffusion", 'def get_device(self, local_rank=0): return "cpu"', "device_is_a_torch_device", "a str"),
    "empty dispatch key": ("diffusion", 'dispatch_key = ""', "dispatch_key_is_torchs", "NotImplementedError"),
    "made-up dispatch key": ("diffusion", 'dispatch_key = "MyChip"', "dispatch_key_is_torchs", "no dispatch key 'MyChip'"),
    "empty op key": ("diffusion", 'def get_dispatch_key_name(self): return ""', "dispatch_key_name_is_an_identifier", "ValueError"),
    "attention nowhere": (
        "diffusion", "@classmethod\n    def get_attn_backend_cls_str(cls, s, h, d): return 'no.such.Backend'", "attention_backend_is_a_class", "no class",
    ),
    "no communicator": (
        "diffusion", "@classmethod\n    def get_all_to_all_communicator_cls(cls): raise NotImplementedError", "communicator_is_a_class", "is not implemented",
    ),
    "switch as number": ("diffusion", "def supports_distributed_device_id(self): return 0", "switches_answer", "returned 0"),
    "options as list": ("diffusion", "def get_compile_options(self, module): return []", "compile_options_are", "returned []"),
    "lost vae": ("diffusion", "@classmethod\n    def optimize_vae(cls, vae): pass", "vae_comes_back", "returned None"),
    "training mode": (
        "diffusion", "@classmethod\n    def inference_mode(cls):\n        import contextlib\n        return contextlib.nullcontext()", "inference_mode_is_a_context",
        "gradients are recorded",
    ),
    "seedless": ("diffusion", "@classmethod\n    def seed_everything(cls, seed=None): pass", "seeds_make_numbers_repeat", "to chance"),
    "instance method": ("diffusion", "def get_device_name(self, device_id=0): return 'x'", "class_methods_stay", "no class method"),
    "picky about models": ("diffusion", "@classmethod\n    def verify_model_arch(cls, m): return True", "models_are_verified_quietly", "returned True"),
}  # fmt: skip

#: (callback's module, the test that must fail, words of its message)
CALLBACKS: dict[str, tuple[str, str, str]] = {
    "imports sglang": ("import sglang.srt.utils\ndef activate(): return None", "callback_does_not_import_sglang", "while half-imported itself"),
    "imports sglang inside": ("def activate():\n    import sglang\n    return None", "callback_does_not_import_sglang", "imports sglang at"),
    "module missing": ("import no_such_driver\ndef activate(): return None", "callback_loads", "No module named 'no_such_driver'"),
    "raises": ("def activate(): raise OSError('no device')", "callback_does_not_raise", "no device"),
    "ends": ("import os\ndef activate(): os._exit(3)", "callback_returns", "ends its process: exit"),
    "class": ("class P: pass\ndef activate(): return P", "callback_returns_a_name_or_none", "returned a type"),
    "empty": ("def activate(): return ''", "callback_returns_a_name_or_none", "cannot resolve"),
    "coroutine": ("async def activate(): return 'a.B'", "callback_returns_a_name_or_none", "coroutine"),
    "prints": ("def activate(): print('hello')", "callback_prints_nothing", "hello"),
    "fickle": ("n = []\ndef activate():\n    n.append(1)\n    return f'a.B{len(n)}'", "callback_always_says_the_same", "different platforms"),
    "sets variables": (
        "import os\ndef activate(): os.environ['MY_CHIP'] = '1'", "callback_leaves_the_environment_alone", "set-up belongs in init_backend()",
    ),
    "class missing": ("def activate(): return 'c_class_missing:Nope'", "class_is_a_platform", "Nope"),
    "no class": ("x = 1\ndef activate(): return 'c_no_class:x'", "class_is_a_platform", "no class but 1"),
    "wrong base": ("class P: pass\ndef activate(): return 'c_wrong_base:P'", "class_is_a_platform", "no subclass of SRTPlatform"),
    "local class": (
        ("def made():\n    from sglang.srt.platforms.interface import SRTPlatform\n    class P(SRTPlatform): pass\n    return P\n"
        "def __getattr__(name):\n    if name == 'P': return made()\n    raise AttributeError(name)\ndef activate(): return 'c_local_class:P'"),
        "class_is_found_by_its_name", "imports the class by name",
    ),
}  # fmt: skip

TEST = """
from sglang_plug.testing import PlatformContract

class Test_{name}(PlatformContract):
    runtime = "{runtime}"
    entry_point = "{name}"
"""


def module(case: str, prefix: str = "p") -> str:
    return f"{prefix}_{case}".replace(" ", "_").replace("-", "_")


def install(site: Site, name: str, runtime: str, text: str, files: dict[str, str]) -> None:
    site.add(f"{name}-dist", {GROUPS[runtime]: {name: f"{name}:activate"}}, {f"{name}.py": text, **files})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """Outcome and message of each test, `case::test`."""
    folder = tmp_path_factory.mktemp("contracts")
    site = Site(folder / "site")
    wanted, tests = [], []
    for case, (runtime, body, test, _) in {**WRONG, "sound srt": ("srt", "", "", ""), "sound diffusion": ("diffusion", "", "", "")}.items():
        name = module(case)
        sound = SRT if runtime == "srt" else DIFFUSION
        wrong = f"{sound}\nclass Wrong(Sound):\n    device_name = 'wrong'\n    {body}\n"
        install(site, name, runtime, f"def activate(): return '{name}_class:Wrong'\n", {f"{name}_class.py": wrong})
        tests.append(TEST.format(name=name, runtime=runtime))
        wanted.append(f"test_all.py::Test_{name}" + (f"::test_{test_name(test)}" if test else ""))
    (folder / "test_all.py").write_text("".join(tests))
    return run(folder, site, wanted)


@pytest.fixture(scope="module")
def callback_results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """The same for the callbacks, in a place of their own: some of them end whoever calls them."""
    folder = tmp_path_factory.mktemp("callbacks")
    site = Site(folder / "site")
    wanted, tests = [], []
    for case, (text, test, _) in CALLBACKS.items():
        name = module(case, "c")
        install(site, name, "srt", text, {})
        tests.append(TEST.format(name=name, runtime="srt"))
        wanted.append(f"test_all.py::Test_{name}::test_{test}")
    (folder / "test_all.py").write_text("".join(tests))
    return run(folder, site, wanted)


FULL_NAMES = {
    "capability_is_two": "capability_is_two_numbers_or_none",
    "compile_options_are": "compile_options_are_a_dict_or_none",
    "memory_use_is_within": "memory_use_is_within_the_total",
    "available_memory_is_free": "available_memory_is_free_and_total",
    "pinned_memory_answers": "pinned_memory_answers_yes_or_no",
    "predicates_answer": "predicates_answer_yes_or_no",
    "quantization_is_a_class": "quantization_is_a_class_or_none",
    "switches_answer": "switches_answer_yes_or_no",
    "class_methods_stay": "class_methods_stay_class_methods",
}


def test_name(short: str) -> str:
    return FULL_NAMES.get(short, short)


test_name.__test__ = False  # type: ignore[attr-defined] # a helper


def run(folder: Path, site: Site, wanted: list[str]) -> dict[str, tuple[str, str]]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml", "out.xml", *wanted]
    done = subprocess.run(
        command, cwd=folder, env=site.env(SGLANG_PLATFORM="p_sound_srt"), capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode in {0, 1}, done.stdout[-3000:] + done.stderr[-3000:]
    found = {}
    for case in ET.parse(folder / "out.xml").iter("testcase"):
        bad = next((child for child in case if child.tag in {"failure", "error", "skipped"}), None)
        name = f"{case.get('classname').rpartition('Test_')[2]}::{case.get('name').removeprefix('test_')}"
        found[name] = ("passed", "") if bad is None else (bad.tag, f"{bad.get('message')}\n{bad.text}")
    return found


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_fails_its_test(results: dict[str, tuple[str, str]], case: str) -> None:
    _, _, test, words = WRONG[case]
    outcome, message = results[f"{module(case)}::{test_name(test)}"]
    assert outcome == "failure", message
    assert words in message
    assert "SGLang: " in message


@pytest.mark.parametrize("case", CALLBACKS)
def test_a_wrong_callback_fails_its_test(callback_results: dict[str, tuple[str, str]], case: str) -> None:
    _, test, words = CALLBACKS[case]
    outcome, message = callback_results[f"{module(case, 'c')}::{test}"]
    assert outcome in {"failure", "error"}, message
    assert words in message


@pytest.mark.parametrize("runtime", GROUPS)
def test_a_sound_platform_passes_all(results: dict[str, tuple[str, str]], runtime: str) -> None:
    mine = {name: result for name, result in results.items() if name.startswith(f"p_sound_{runtime}::")}
    assert not {name: result for name, result in mine.items() if result[0] in {"failure", "error"}}
    assert sum(result[0] == "passed" for result in mine.values()) >= 40


def test_every_test_has_a_case(results: dict[str, tuple[str, str]]) -> None:
    """A conformance test that nothing wrong can fail would be worth nothing."""
    tests = {name.partition("::")[2].partition("[")[0] for name in results if name.startswith("p_sound_")}
    covered = {test_name(test).partition("[")[0] for _, _, test, _ in WRONG.values()} | {test for _, test, _ in CALLBACKS.values()}
    needs_more_than_one_install = {
        "entry_point_is_installed", "entry_point_name_is_unique", "entry_point_name_can_be_selected", "callback_leaves_no_processes",
        "callback_initialises_no_device", "platform_tells_its_name", "worker_runs_on_this_platform", "flags_answer_yes_or_no",
    }  # fmt: skip
    assert tests - covered == needs_more_than_one_install & tests - covered
