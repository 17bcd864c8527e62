"""A plugin in a running engine: every method of the platform contract is called and counts, every documented target fires (S8, S9)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sglang_plug import standin
from sglang_plug.standin import calls
from tests.plugins.install import SRT_PLATFORMS, SRT_PLUGINS, Site

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "standin-srt.md"
PROMPTS = ["The capital of France", "x", "안녕"]

# One platform with everything overridden; each call is written down with its process.
PLATFORM = """
import functools, json, os
from sglang.srt.platforms.device_mixin import DeviceCapability, DeviceMixin, PlatformEnum
from sglang.srt.platforms.interface import PlatformCapabilities, SRTPlatform

def note(name):
    with open(os.environ["TRACE"], "a") as file:
        file.write(json.dumps([os.getpid(), name]) + "\\n")

class Base(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = "traced"
    device_type = "cpu"
    def get_device(self, device_id=0): return "cpu"
    def set_device(self, device): pass
    def get_device_name(self, device_id=0): return "Traced Mk I"
    def get_device_uuid(self, device_id=0): return f"uuid-{device_id}"
    def get_device_capability(self, device_id=0): return DeviceCapability(7, 5)
    def get_device_total_memory(self, device_id=0): return 64 << 20
    def get_current_memory_usage(self, device=None): return float(8 << 20)
    def get_available_memory(self, device_id=0): return 1, 2
    def is_pin_memory_available(self): return False          # the older signature
    def get_torch_distributed_backend_str(self): return "gloo"
    def get_communicator_class(self):
        from parts import Communicator
        return Communicator
    def support_cuda_graph(self): return True                 # the older generation
    def support_piecewise_cuda_graph(self): return True
    def supports_fp8(self): return True
    def get_default_attention_backend(self): return "traced_attention"
    def get_graph_runner_cls(self):
        from parts import Runner
        return Runner
    def get_mha_kv_pool_cls(self):
        from parts import Pool
        return Pool
    def get_paged_allocator_cls(self):
        from parts import Allocator
        return Allocator
    def get_quantization_config(self, quantization):
        from parts import Quantization
        return Quantization if quantization == "halved" else None
    def get_full_graph_backend_cls(self):
        from parts import Graphs
        return Graphs
    def get_piecewise_backend_cls(self):
        from parts import Piece
        return Piece
    def get_compile_backend(self, mode=None): return "eager"
    def get_dispatch_key_name(self): return "traced"
    def apply_server_args_defaults(self, server_args): server_args.page_size = 4
    def init_backend(self):
        import parts
        parts.register()
    def post_load_model(self, model): model.lm_head.weight.data *= 2     # the order of logits stays
    def supports_speculative_algorithm(self, algorithm): return algorithm == "GUESS"
    def supports_speculative_draft_attention_backend(self, algorithm, backend): return backend == "draft_attention"
    def get_default_speculative_draft_attention_backend(self, algorithm): return "draft_attention"
    def get_speculative_worker_cls(self, algorithm):
        from parts import Worker
        return Worker
    def support_mamba_cache_extra_buffer(self): return True
    def get_torch_profiler_activity_str(self): return "TRACED"
    def get_torch_profiler_activity(self):
        import torch
        return torch.profiler.ProfilerActivity.CPU

class Traced(Base):
    pass

def traced(name, method):
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        note(name)
        return getattr(super(Traced, self), name)(*args, **kwargs)
    return call

for owner in (DeviceMixin, SRTPlatform, Base):
    for name, member in list(vars(owner).items()):
        if callable(member) or isinstance(member, classmethod):
            if not name.startswith("__"):
                setattr(Traced, name, traced(name, getattr(owner, name)))
"""

# What the factories offer: the engine's own parts, each leaving a note when it works.
PARTS = '''
import functools, torch
import torch.distributed as dist
from plat import note
from sglang.kernels.fused_op import BaseFusedOp
from sglang.srt.layers.activation import SiluAndMul
from sglang.srt.layers.attention.attention_registry import register_attention_backend
from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.linear import LinearBase, UnquantizedLinearMethod
from sglang.srt.layers.quantization.base_config import QuantizationConfig
from sglang.srt.managers.tp_worker import TpModelWorker
from sglang.srt.mem_cache.allocator import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
from sglang.srt.model_executor.graph_runner import GraphRunner

@functools.cache
def once(name):
    note("part:" + name)

class Communicator:
    def __init__(self, group, device): self.group = group
    def all_reduce(self, tensor):
        once("Communicator.all_reduce"); dist.all_reduce(tensor); return tensor
    def all_gather(self, tensor, dim):
        once("Communicator.all_gather")
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts, dim=dim)
class Runner(GraphRunner):
    def replay(self, forward_batch):
        once("Runner.replay"); return super().replay(forward_batch)
class Graphs:
    """Replays with the shapes of the capture, as a device graph does."""
    def capture(self, function): return function, function().clone()
    def replay(self, graph):
        once("Graphs.replay"); return graph()
class Pool(MHATokenToKVPool):
    def _create_buffers(self):
        once("Pool._create_buffers"); super()._create_buffers()
class Allocator(PagedTokenToKVPoolAllocator):
    def alloc_decode(self, *args):
        once(f"Allocator.alloc_decode page_size={self.page_size}"); return super().alloc_decode(*args)
class Attention(TorchNativeAttnBackend):
    def forward_extend(self, *args, **kwargs):
        once("Attention.forward_extend"); return super().forward_extend(*args, **kwargs)
class Halved(UnquantizedLinearMethod):
    """Keeps halves of the weights and doubles the result: exact."""
    def process_weights_after_loading(self, layer): layer.weight.data /= 2
    def apply(self, layer, x, bias=None):
        once("Halved.apply"); return 2 * super().apply(layer, x, None) + (0 if bias is None else bias)
class Quantization(QuantizationConfig):
    @classmethod
    def from_config(cls, config): return cls()
    def get_quant_method(self, layer, prefix): return Halved() if isinstance(layer, LinearBase) else None
class Piece:
    def __init__(self, graph, config, inductor, pool, index, total, *rest): self.graph = graph
    def __call__(self, *args):
        once("Piece.__call__"); return self.graph(*args)
class Worker(TpModelWorker):
    def forward_batch_generation(self, batch):
        once("Worker.forward_batch_generation"); return super().forward_batch_generation(batch)

def register():
    register_attention_backend("traced_attention")(Attention)
    def norm(op, x, residual=None):
        once("registered RMSNorm"); return op.forward_native(x, residual)
    BaseFusedOp.register_oot_forward(RMSNorm, norm, "traced")
    def activate(self, x):
        once("SiluAndMul.forward_traced"); return self.forward_native(x)
    SiluAndMul.forward_traced = activate
'''

SCRIPT = """
import asyncio, json, sys
if __name__ == "__main__":
    import sglang
    arguments, profile = json.loads(sys.argv[1]), sys.argv[2]
    with sglang.Engine(**arguments) as engine:
        def ask(what, **more): return vars(engine._loop.run_until_complete(engine.tokenizer_manager.control(what, **more)))
        if profile: assert ask("start_profile", output_dir=profile, activities=["TRACED"])["success"]
        answers = engine.generate(json.loads(sys.argv[3]), {"temperature": 0, "max_new_tokens": 12})
        if profile: assert ask("stop_profile")["success"]
        print(json.dumps([[a["output_ids"] for a in answers], engine.tokenizer_manager.scheduler_info]))
"""


@pytest.fixture(scope="module")
def reference() -> list[list[int]]:
    """What `transformers` says."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from sglang_plug.standin.models import tiny_llama

    tokenizer, model = AutoTokenizer.from_pretrained(tiny_llama()), AutoModelForCausalLM.from_pretrained(tiny_llama(), dtype=torch.float32)
    answers = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt")
        answers.append(model.generate(**ids, max_new_tokens=12, do_sample=False)[0, ids["input_ids"].shape[1] :].tolist())
    return answers


def run(
    site: Site, trace: Path, profile: str = "", **arguments: Any
) -> tuple[list[list[int]], list[dict[str, Any]], list[tuple[int, str]]]:
    site.add(
        "traced-dist", {SRT_PLATFORMS: {"traced": "traced:activate"}},
        {"traced.py": "def activate(): return 'plat:Traced'", "plat.py": PLATFORM, "parts.py": PARTS},
    )  # fmt: skip
    script = site.root / "script.py"
    script.write_text(SCRIPT)
    env = standin.environment(site.env(TRACE=str(trace), SGLANG_PLATFORM="traced"))
    command = [sys.executable, str(script), json.dumps(arguments), profile, json.dumps(PROMPTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=110)
    assert done.returncode == 0, done.stderr
    tokens, infos = json.loads(done.stdout.splitlines()[-1])
    return tokens, infos, [tuple(json.loads(line)) for line in trace.read_text().splitlines()]


# Asked for only where a run is arranged for it; the test below this one arranges.
SECOND_RUN = {
    "get_quantization_config", "verify_quantization", "get_piecewise_backend_cls", "support_piecewise_cuda_graph",
    "supports_speculative_algorithm", "supports_speculative_draft_attention_backend", "get_default_speculative_draft_attention_backend",
    "get_speculative_worker_cls", "get_speculative_cache_locs_fn", "get_speculative_graph_runner_cls", "support_mamba_cache_extra_buffer",
    "get_torch_profiler_activity", "get_torch_profiler_activity_str",
}  # fmt: skip
# fp8 is the engine's own method, judged with the model folders; two pools are of models that the stand-in does not have.
ELSEWHERE = {"supports_fp8", "get_mla_kv_pool_cls", "get_dsa_kv_pool_cls"}


def test_every_method_takes_effect_on_two_ranks(site: Site, tmp_path: Path, reference: list[list[int]]) -> None:
    tokens, infos, trace = run(site, tmp_path / "trace", tp_size=2, enable_torch_compile=True)
    assert tokens == reference
    called = {name for _, name in trace}
    assert calls.contract().keys() - {"capabilities", "cpu_arch"} - SECOND_RUN - ELSEWHERE - called == set()
    parts = {name.removeprefix("part:") for name in called if name.startswith("part:")}
    assert parts == {
        "Communicator.all_reduce", "Communicator.all_gather", "Runner.replay", "Graphs.replay", "Pool._create_buffers",
        "Attention.forward_extend", "Allocator.alloc_decode page_size=4", "registered RMSNorm", "SiluAndMul.forward_traced",
    }  # fmt: skip
    initialised = [pid for pid, name in trace if name == "init_backend"]
    assert len(initialised) == len(set(initialised)) == 2, "init_backend runs once in each worker, and nowhere else"
    assert [pid for pid, name in trace if name == "apply_server_args_defaults"] == [trace[0][0]], "once, in the main process"
    first = infos[0]
    assert (first["device_name"], first["dispatch_key"]) == ("Traced Mk I", "traced")
    assert first["device_capability"] == "DeviceCapability(major=7, minor=5)"
    assert [info["device_uuid"] for info in infos] == ["uuid-0", "uuid-1"]
    # 56 MB free of 64, 0.2 of it, two ranks share: tokens of 4 bytes x 16 wide x 1 head x 2 layers x 2
    assert first["max_total_num_tokens"] == int((56 << 20) // 2 * 0.2) // 256 // 4 * 4


def test_what_is_asked_for_takes_effect_too(site: Site, tmp_path: Path, reference: list[list[int]]) -> None:
    tokens, _, trace = run(
        site,
        tmp_path / "trace",
        str(tmp_path / "profile"),
        quantization="halved",
        enable_piecewise_cuda_graph=True,
        speculative_algorithm="GUESS",
        mamba_scheduler_strategy="extra_buffer",
    )
    assert tokens == reference
    called = {name for _, name in trace}
    assert SECOND_RUN - called == set()
    assert {"part:Halved.apply", "part:Piece.__call__", "part:Worker.forward_batch_generation"} <= called
    assert list((tmp_path / "profile").glob("*.trace.json"))


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    assert DOCS.read_text(encoding="utf-8") == calls.page()


def test_the_page_leaves_no_method_without_a_place() -> None:
    members = calls.contract()
    assert {name for name, member in members.items() if not member.sites} == set(calls._BY_WAY_OF)
    assert len(members) > 50


# -- hooks

TARGETS = {
    "sglang.srt.server_args.ServerArgs.add_cli_args": "main",
    "sglang.srt.server_args.ServerArgs.__post_init__": "main",
    "sglang.srt.server_args.ServerArgs.check_server_args": "main",
    "sglang.srt.server_args.ServerArgs.from_cli_args": "main",
    "sglang.srt.server_args.ServerArgs.resolve_once": "main",
    "sglang.srt.managers.tokenizer_manager.TokenizerManager.__init__": "main",
    "sglang.srt.managers.scheduler.run_scheduler_process": "scheduler",
    "sglang.srt.managers.scheduler.Scheduler.__init__": "scheduler",
    "sglang.srt.managers.scheduler.Scheduler.event_loop": "scheduler",
    "sglang.srt.managers.scheduler.Scheduler.process_input_requests": "scheduler",
    "sglang.srt.managers.scheduler.Scheduler.handle_generate_request": "scheduler",
    "sglang.srt.managers.scheduler:Scheduler.get_next_batch_to_run": "scheduler",
    "sglang.srt.managers.scheduler.Scheduler.run_batch": "scheduler",
    "sglang.srt.managers.scheduler.Scheduler.process_batch_result": "scheduler",
    "sglang.srt.managers.tp_worker.TpModelWorker.__init__": "scheduler",
    "sglang.srt.managers.tp_worker.TpModelWorker.forward_batch_generation": "scheduler",
    "sglang.srt.model_executor.model_runner.ModelRunner.__init__": "scheduler",
    "sglang.srt.model_executor.model_runner.ModelRunner.load_model": "scheduler",
    "sglang.srt.model_executor.model_runner.ModelRunner.forward": "scheduler",
    "sglang.srt.managers.detokenizer_manager.DetokenizerManager.__init__": "detokenizer",
    "sglang.srt.managers.detokenizer_manager.DetokenizerManager.event_loop": "detokenizer",
}
HOOKS = f"""
import json, os
from multiprocessing import current_process
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

def register():
    for target in {list(TARGETS)!r}:
        def around(original, *args, _target=target, **kwargs):
            role = current_process().name.partition("_")[0].replace("MainProcess", "main")
            with open(os.environ["TRACE"], "a") as file:
                file.write(json.dumps([role, _target]) + "\\n")
            return original(*args, **kwargs)
        HookRegistry.register(target, around, HookType.AROUND)
    from sglang.srt.managers.scheduler import Scheduler
    class Mine(Scheduler):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            with open(os.environ["TRACE"], "a") as file:
                file.write(json.dumps(["replaced", self.gpu_id]) + "\\n")
    HookRegistry.register("sglang.srt.managers.scheduler.Scheduler", Mine, HookType.REPLACE)
"""


def test_every_documented_target_fires_in_its_process(site: Site, tmp_path: Path) -> None:
    import httpx

    from tests.standin.server import Server

    site.add("hooks-dist", {SRT_PLUGINS: {"hooks": "hooks:register"}}, {"hooks.py": HOOKS})
    trace = tmp_path / "trace"
    with Server("--base-gpu-id", "3", env=site.env(TRACE=str(trace), SGLANG_USE_CPU_ENGINE="1")) as server:
        assert (
            httpx.post(f"{server.url}/generate", json={"text": "x", "sampling_params": {"max_new_tokens": 3}}, timeout=60).status_code
            == 200
        )
    fired = {tuple(json.loads(line)) for line in trace.read_text().splitlines()}
    assert {(role, target) for target, role in TARGETS.items()} - fired == set()
    assert ("replaced", 3) in fired
