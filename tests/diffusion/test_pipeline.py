"""The model and the pipeline in this process, one rank: what the platform's answers change."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pytest
import torch
from sglang.multimodal_gen.configs.pipeline_configs import PipelineConfig
from sglang.multimodal_gen.configs.sample import SamplingParams
from sglang.multimodal_gen.runtime.distributed import parallel_state
from sglang.multimodal_gen.runtime.entrypoints.diffusion_generator import DiffGenerator
from sglang.multimodal_gen.runtime.launch_server import WorkerFailed, _await_ready
from sglang.multimodal_gen.runtime.layers.attention.backends.sdpa import SDPABackend, SDPAImpl
from sglang.multimodal_gen.runtime.layers.custom_op import CustomOp
from sglang.multimodal_gen.runtime.layers.layernorm import RMSNorm
from sglang.multimodal_gen.runtime.managers.gpu_worker import GPUWorker
from sglang.multimodal_gen.runtime.models.dits import tiny_dit
from sglang.multimodal_gen.runtime.models.encoders.tiny_text import ByteTokenizer
from sglang.multimodal_gen.runtime.models.registry import BadModel
from sglang.multimodal_gen.runtime.models.schedulers.flow_match import FlowMatchEulerDiscreteScheduler
from sglang.multimodal_gen.runtime.pipelines_core.pipeline import DiffusionPipeline
from sglang.multimodal_gen.runtime.pipelines_core.schedule_batch import ControlReq, Req
from sglang.multimodal_gen.runtime.platforms.cpu import CpuPlatform
from sglang.multimodal_gen.runtime.platforms.interface import DeviceCapability, PlatformEnum
from sglang.multimodal_gen.runtime.scheduler_client import SchedulerUnreachable
from sglang.multimodal_gen.runtime.server_args import ServerArgs, prepare_server_args
from sglang.multimodal_gen.runtime.server_args.server_args import free_port
from sglang.multimodal_gen.runtime.utils.torch_compile import build_torch_compile_kwargs

from sglang_plug.standin import diffusion_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Acme(CpuPlatform):
    """An external platform on the CPU."""

    _enum = PlatformEnum.OOT
    device_name = "acme"

    def get_device(self, local_rank: int) -> torch.device:
        return torch.device("cpu")

    def get_torch_distributed_backend_str(self) -> str:
        return "gloo"

    def get_dispatch_key_name(self) -> str:
        return "acme"


@pytest.fixture(scope="module")
def _alone() -> Iterator[None]:
    """A process group of one."""
    from sglang.multimodal_gen.runtime import platforms

    platforms._current_platform = Acme()
    parallel_state.maybe_init_distributed_environment_and_model_parallel(
        sp_size=1, distributed_init_method=f"tcp://127.0.0.1:{free_port()}"
    )
    yield
    parallel_state.destroy_model_parallel()
    platforms._current_platform = None


@pytest.fixture
def draw(_alone: None, model: Path, current: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function that builds a pipeline on a platform, makes one image and returns its pixels."""

    def run(platform: Any = None, *, config: PipelineConfig | None = None, params: dict[str, Any] | None = None, **args: Any) -> Any:
        current(platform or Acme())
        server_args = ServerArgs(**{"model_path": str(model), "pipeline_config": config or PipelineConfig(), **args})
        run.pipeline = DiffusionPipeline(server_args)  # type: ignore[attr-defined]
        asked = {"prompt": "a red cube", "num_inference_steps": 2, "seed": 5, "height": 32, "width": 32, **(params or {})}
        return run.pipeline.forward(Req(SamplingParams(**asked))).output[0]  # type: ignore[attr-defined]

    return run


def test_the_model_folder_is_a_diffusers_pipeline_of_known_weights(model: Path, tmp_path: Path):
    index = json.loads((model / "model_index.json").read_text())
    assert index["_class_name"] == "TinyDiTPipeline"
    assert {part for part in index if not part.startswith("_")} == {"scheduler", "text_encoder", "tokenizer", "transformer", "vae"}
    again = diffusion_models.tiny_dit(tmp_path / "elsewhere")
    for file in model.rglob("*.*"):
        assert file.read_bytes() == (again / file.relative_to(model)).read_bytes()


def test_a_folder_half_written_is_not_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(diffusion_models, "_write_json", lambda path, value: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        diffusion_models.tiny_dit(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_seed_one_image(draw: Callable[..., Any]):
    first = draw()
    assert first.shape == (32, 32, 3)
    assert first.dtype == np.uint8
    assert first.std() > 5  # a picture, not one colour
    assert np.array_equal(first, draw())
    assert not np.array_equal(first, draw(params={"seed": 6}))
    assert not np.array_equal(first, draw(params={"prompt": "a blue sphere"}))


def test_guidance_at_one_ignores_the_negative_prompt_and_above_does_not(draw: Callable[..., Any]):
    plain = draw(params={"guidance_scale": 1.0})
    assert np.array_equal(plain, draw(params={"guidance_scale": 1.0, "negative_prompt": "blur"}))
    guided = draw(params={"guidance_scale": 3.0})
    assert np.array_equal(guided, draw(params={"guidance_scale": 3.0, "negative_prompt": None}))
    assert not np.array_equal(guided, draw(params={"guidance_scale": 3.0, "negative_prompt": "blur"}))


def test_sigmas_and_steps_by_hand(current: Callable[[Any], Any]):
    current(Acme())
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    # 3 s / (1 + 2 s) for s = 1, 3/4, 1/2, 1/4, 0
    assert scheduler.sigmas(4) == pytest.approx([1.0, 0.9, 0.75, 0.5, 0.0])
    stepped = scheduler.step(torch.tensor([2.0]), torch.tensor([1.0]), 0.9, 0.75)
    assert stepped.item() == pytest.approx(1.0 + (0.75 - 0.9) * 2.0)


def test_the_shift_can_be_set(draw: Callable[..., Any]):
    assert not np.array_equal(draw(), draw(config=PipelineConfig(flow_shift=1.0)))


def test_tokens_are_bytes():
    (row,) = ByteTokenizer(max_length=6)(["hé"])
    assert row.tolist() == [104, 195, 169, 256, 257, 257]
    (cut,) = ByteTokenizer(max_length=3)(["abcdef"])
    assert cut.tolist() == [97, 98, 256]


def test_patches_go_there_and_back(draw: Callable[..., Any]):
    draw()
    transformer = draw.pipeline.modules["transformer"]  # type: ignore[attr-defined]
    latents = torch.arange(2 * 4 * 4 * 6.0).reshape(2, 4, 4, 6)
    tokens = transformer.to_tokens(latents, 2, 3)
    assert tokens.shape == (2, 6, 16)
    assert tokens[0, 1, :4].tolist() == [2.0, 3.0, 8.0, 9.0]  # second patch of the first row, first channel
    assert torch.equal(transformer.to_latents(tokens, 2, 3), latents)


def test_a_registered_forward_changes_the_image(draw: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CustomOp, "_oot_forward_registry", {})
    plain = draw()
    calls: list[Any] = []

    def doubled(op: Any, x: torch.Tensor, residual: Any = None) -> Any:
        calls.append(op)
        return 2 * op.forward_native(x, residual)

    CustomOp.register_oot_forward(RMSNorm, fn=doubled, platform_key="acme")
    assert not np.array_equal(plain, draw())
    assert calls


class CountingImpl(SDPAImpl):
    calls = 0

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        type(self).calls += 1
        return super().forward(*args, **kwargs)


class CountingBackend(SDPABackend):
    @staticmethod
    def get_impl_cls() -> type[SDPAImpl]:
        return CountingImpl


def test_the_platforms_attention_backend_computes(draw: Callable[..., Any]):
    asked: list[Any] = []

    class Attending(Acme):
        @classmethod
        def get_attn_backend_cls_str(cls, selected_backend: Any, head_size: int, dtype: Any) -> str:
            asked.append(str(selected_backend))
            return f"{__name__}.CountingBackend"

    plain = draw()
    CountingImpl.calls = 0
    assert np.array_equal(plain, draw(Attending(), attention_backend="torch_sdpa"))
    assert CountingImpl.calls == 1 + 2 * 2 * 2  # text once; two steps of two blocks with self- and cross-attention
    assert set(asked) == {"torch_sdpa"}


def test_no_attention_backend_is_refused(draw: Callable[..., Any]):
    nothing = type("Nothing", (Acme,), {"get_attn_backend_cls_str": classmethod(lambda cls, *args: "")})
    with pytest.raises(ValueError, match="acme"):
        draw(nothing())


def test_the_platform_may_change_the_decoder_and_refuse_a_class(draw: Callable[..., Any]):
    class Inverting(Acme):
        @classmethod
        def optimize_vae(cls, vae: Any) -> Any:
            original = vae.decode
            vae.decode = lambda latents: 1 - original(latents)
            return vae

    plain, inverted = draw().astype(int), draw(Inverting()).astype(int)
    assert abs(plain + inverted - 255).max() <= 1

    class Choosy(Acme):
        @classmethod
        def verify_model_arch(cls, model_arch: str) -> None:
            if model_arch == "TinyDiT":
                raise ValueError(f"acme cannot run {model_arch}")

    with pytest.raises(ValueError, match="acme cannot run TinyDiT"):
        draw(Choosy())


def test_requests_run_in_the_platforms_context_and_are_seeded(draw: Callable[..., Any]):
    seen: list[Any] = []

    class Watching(Acme):
        @classmethod
        @contextlib.contextmanager
        def inference_mode(cls) -> Iterator[None]:
            seen.append("in")
            with torch.inference_mode():
                yield
            seen.append("out")

        @classmethod
        def seed_everything(cls, seed: int | None = None) -> None:
            seen.append(seed)

    draw(Watching())
    assert seen == ["in", 5, "out"]


def test_layers_wait_in_host_memory_where_the_platform_says_so(draw: Callable[..., Any]):
    plain = draw()
    assert draw.pipeline.offload is None  # type: ignore[attr-defined]
    eager = type("Eager", (Acme,), {"enable_dit_layerwise_offload_by_default": classmethod(lambda cls: True)})
    assert np.array_equal(plain, draw(eager()))
    assert draw.pipeline.offload.moves == 2 * 2  # type: ignore[attr-defined]  # two blocks, two steps
    draw(eager(), dit_layerwise_offload=False)
    assert draw.pipeline.offload is None  # type: ignore[attr-defined]
    sharing = type("Sharing", (eager,), {"device_shares_host_memory": classmethod(lambda cls: True)})
    draw(sharing())
    assert draw.pipeline.offload is None  # type: ignore[attr-defined]


def test_the_transformer_is_compiled_as_the_platform_says(draw: Callable[..., Any], current: Callable[[Any], Any]):
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any, options: Any = None) -> Any:
        graphs.append(options)
        return graph.forward

    class Compiling(Acme):
        def get_compile_backend(self, mode: str | None = None) -> Any:
            return backend

        def get_compile_options(self, module: Any) -> dict[str, object] | None:
            return {"level": 3}

    plain = draw()
    assert np.abs(draw(Compiling(), enable_torch_compile=True).astype(int) - plain).max() <= 1
    assert graphs
    assert set(map(str, graphs)) == {"{'level': 3}"}
    current(CpuPlatform())
    assert build_torch_compile_kwargs(mode="max-autotune") == {"fullgraph": False, "dynamic": None, "mode": "max-autotune"}
    current(Acme())
    assert build_torch_compile_kwargs(mode="m")["mode"] == "m"  # the default backend is inductor


def test_precision_follows_the_capability(draw: Callable[..., Any]):
    modern = type("Modern", (Acme,), {"get_device_capability": classmethod(lambda cls, device_id=0: DeviceCapability(8, 0))})
    draw(modern())
    assert draw.pipeline.dtype is torch.bfloat16  # type: ignore[attr-defined]
    older = type("Older", (modern,), {"is_amp_supported": classmethod(lambda cls: False)})
    draw(older())
    assert draw.pipeline.dtype is torch.float32  # type: ignore[attr-defined]


def test_what_does_not_fit_is_refused(draw: Callable[..., Any]):
    small = type("Small", (Acme,), {"get_device_total_memory": classmethod(lambda cls, device_id=0: 1000)})
    with pytest.raises(ValueError, match="do not fit acme"):
        draw(small())
    full = type("Full", (Acme,), {"get_available_gpu_memory": classmethod(lambda cls, *args, **kwargs: 0.0)})
    with pytest.raises(ValueError, match=r"'text_encoder' needs .* acme has 0.00 GiB free"):
        draw(full())


def drop_class(folder: Path) -> None:
    (folder / "vae" / "config.json").write_text("{}")


def break_json(folder: Path) -> None:
    (folder / "vae" / "config.json").write_text("{")


def add_argument(folder: Path) -> None:
    (folder / "vae" / "config.json").write_text('{"_class_name": "TinyDecoder", "depth": 1}')


def swap_weights(folder: Path) -> None:
    shutil.copy(folder / "text_encoder" / "model.safetensors", folder / "vae" / "diffusion_pytorch_model.safetensors")


def spoil_weights(folder: Path) -> None:
    (folder / "vae" / "diffusion_pytorch_model.safetensors").write_bytes(b"garbage")


def lose_component(folder: Path) -> None:
    shutil.rmtree(folder / "vae")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (drop_class, "vae/config.json: there is no _class_name"),
        (break_json, "vae/config.json: Expecting property name"),
        (add_argument, "vae: TinyDecoder cannot be made from its configuration: missing a required argument"),
        (swap_weights, "vae: Error.* in loading state_dict for TinyDecoder"),
        (spoil_weights, "vae/diffusion_pytorch_model.safetensors: Error while deserializing header"),
        (lose_component, "component 'vae' has no configuration file"),
    ],
)
def test_a_broken_model_folder_is_told_file_by_file(
    draw: Callable[..., Any], model: Path, tmp_path: Path, spoil: Callable[[Path], None], words: str
):
    shutil.copytree(model, tmp_path / "model")
    spoil(tmp_path / "model")
    with pytest.raises(BadModel, match=words):
        draw(model_path=str(tmp_path / "model"))


@pytest.mark.parametrize(
    ("index", "words"),
    [('{"_class_name": "StableDiffusion3Pipeline"}', "not StableDiffusion3Pipeline"), ("[]", "does not name"), ("{", "does not name")],
)
def test_other_pipelines_are_refused_before_a_worker_starts(tmp_path: Path, index: str, words: str, current: Callable[[Any], Any]):
    current(Acme())
    (tmp_path / "model_index.json").write_text(index)
    with pytest.raises(ValueError, match=words):
        ServerArgs(model_path=str(tmp_path))


def test_a_worker_says_what_is_wrong_with_its_model():
    reader, writer = multiprocessing.Pipe(duplex=False)
    gone, end = multiprocessing.Pipe(duplex=False)
    process = mock.Mock(sentinel=gone.fileno())
    process.name = "worker-0"
    writer.send({"status": "failed", "error": "vae: no weights"})
    end.close()  # it has ended, too
    with reader, writer, gone, pytest.raises(WorkerFailed, match=r"^worker-0: vae: no weights$"):
        _await_ready({reader: process}, [process])


def test_platform_defaults_yield_to_the_user(model: Path, current: Callable[[Any], Any]):
    class Opinionated(Acme):
        def apply_server_args_defaults(self, server_args: Any) -> None:
            if not server_args.is_arg_explicitly_set("port"):
                server_args.port = 4444

    current(Opinionated())
    for argv, port in (([], 4444), (["--port", "5555"], 5555), (["--port", "30000"], 30000)):
        server_args = prepare_server_args(["--model-path", str(model), *argv])
        assert server_args.port == port


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"model_path": "/nowhere"}, "no model_index.json"),
        ({"num_gpus": 0}, "--num-gpus"),
        ({"tp_size": 2}, "--tp-size"),
        ({"port": 99999}, "--port"),
        ({"log_level": "loud"}, "--log-level"),
        ({"attention_backend": "magic"}, "magic"),
        ({"no_such": 1}, "no_such"),
    ],
)
def test_wrong_arguments_are_named(kwargs: dict[str, Any], words: str, model: Path, current: Callable[[Any], Any]):
    current(Acme())
    with pytest.raises(ValueError, match=words):
        ServerArgs.from_kwargs(**{"model_path": str(model), **kwargs})


WRONG = [
    {"height": 50},
    {"width": 0},
    {"width": 4096},
    {"num_inference_steps": 0},
    {"num_inference_steps": 10**9},
    {"seed": -1},
    {"seed": 2**63},
    {"seed": "1"},
    {"guidance_scale": -1.0},
    {"guidance_scale": float("nan")},
    {"guidance_scale": float("inf")},
    {"guidance_scale": "3"},
    {"prompt": 5},
    {"prompt": ["x", None]},
    {"prompt": "\udc80"},
    {"negative_prompt": 5},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_requests_are_named(wrong: dict[str, Any]):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} "):
        SamplingParams(**wrong)


@pytest.mark.parametrize(
    ("request_", "kwargs", "words"),
    [
        (None, {}, "prompt"),
        ({"prompt": []}, {}, "prompt"),
        ({"prompt": "x", "colour": 1}, {}, "colour"),
        ({"prompt": "x"}, {"height": 50}, "height"),
        ({"prompt": ["x", "y"], "output_file_name": "z.png"}, {}, "output_file_name"),
        ("x", {}, "prompt=…"),
    ],
)
def test_a_generator_refuses_before_it_asks_the_workers(
    request_: Any, kwargs: dict[str, Any], words: str, model: Path, current: Callable[[Any], Any]
):
    current(Acme())
    generator = DiffGenerator(ServerArgs(model_path=str(model)))
    with pytest.raises(ValueError, match=words):
        generator.generate(request_, **kwargs)


def test_nobody_waits_for_workers_that_are_not_there(model: Path, current: Callable[[Any], Any]):
    current(Acme())
    generator = DiffGenerator(ServerArgs(model_path=str(model)))
    with pytest.raises(SchedulerUnreachable, match="there are no workers"):
        generator.generate(prompt="x")
    generator.server_args.settle()
    generator.client.ended = lambda: ["worker 0 ended"]
    with pytest.raises(SchedulerUnreachable, match="worker 0 ended"):
        generator.generate(prompt="x")
    generator.client.ended = list
    with pytest.raises(SchedulerUnreachable, match="within 1 ms"):
        generator.client.forward(ControlReq("info"), 1)
    generator.server_args.release()
    assert not generator.client.endpoint
    generator.shutdown()


def test_a_request_at_fault_is_told_from_a_broken_worker(draw: Callable[..., Any], caplog: pytest.LogCaptureFixture):
    draw()
    worker = object.__new__(GPUWorker)
    worker.rank, worker.pipeline = 0, draw.pipeline  # type: ignore[attr-defined]
    asked = [Req(SamplingParams(prompt="x", height=16, width=16, num_inference_steps=1))]
    transformer = worker.pipeline.modules["transformer"]
    alone = SimpleNamespace(world_size=2, rank_in_group=0)
    with mock.patch.object(tiny_dit, "get_sp_group", return_value=alone):  # one token for two ranks
        assert worker.execute_forward(asked).error_type == "invalid_request"
    with mock.patch.object(transformer, "to_tokens", side_effect=ValueError("bad kernel")):
        answer = worker.execute_forward(asked)
    assert (answer.error_type, answer.error) == ("server", "ValueError: bad kernel")
    assert "bad kernel" in caplog.text
