"""Model folders: what can be served, computed as `transformers` does, and what is refused with its reason."""

from __future__ import annotations

import json
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
import transformers
from sglang.srt.configs.model_config import ModelConfig, end_token_ids, weight_files
from sglang.srt.distributed import parallel_state
from sglang.srt.layers.quantization.fp8 import Fp8Config
from sglang.srt.layers.rotary_embedding import inverse_frequencies
from sglang.srt.model_loader.loader import load_model
from sglang.srt.server_args import ServerArgs, prepare_server_args
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from sglang_plug.standin.models import tiny_llama

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Plain:
    """An attention backend and batch in one: causal attention over one sequence, written out."""

    def __init__(self, ids: list[int]) -> None:
        from sglang.srt.model_executor.forward_batch_info import ForwardMode

        self.forward_mode = ForwardMode.EXTEND
        self.extend_lens = [len(ids)]
        self.attn_backend = self

    def forward(self, q: Any, k: Any, v: Any, layer: Any, batch: Any, save: bool) -> torch.Tensor:
        q = q.view(-1, layer.tp_q_head_num, layer.head_dim)
        share = layer.tp_q_head_num // layer.tp_k_head_num
        k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k) * layer.scaling
        scores = scores.masked_fill(torch.ones(len(q), len(q)).triu(1).bool(), -torch.inf)
        return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(len(q), -1)


def config_of(folder: Path, **arguments: Any) -> ModelConfig:
    return ModelConfig.from_server_args(ServerArgs(model_path=str(folder), **arguments))


def next_logits(folder: Path, ids: list[int], quantization: str | None = None) -> torch.Tensor:
    model = load_model(config_of(folder), quantization, "cpu")
    with torch.no_grad():
        return model(torch.tensor(ids), torch.arange(len(ids)), Plain(ids)).next_token_logits[0]


def random_model(folder: Path, architecture: str, **extra: Any) -> Path:
    kind = architecture.removesuffix("ForCausalLM")
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, initializer_range=0.3, **extra,
    )  # fmt: skip
    torch.manual_seed(3)
    model = getattr(transformers, architecture)(config)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    model.save_pretrained(folder)
    return folder


FAMILY = [
    ("LlamaForCausalLM", {}),
    ("LlamaForCausalLM", {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
    ("LlamaForCausalLM", {"head_dim": 12, "rope_theta": 5000.0}),
    ("MistralForCausalLM", {"sliding_window": None}),
    ("Qwen2ForCausalLM", {}),
]


@pytest.mark.parametrize(("architecture", "extra"), FAMILY)
def test_the_family_computes_what_transformers_computes(tmp_path: Path, architecture: str, extra: Any) -> None:
    folder = random_model(tmp_path, architecture, **extra)
    ids = [5, 17, 3, 80, 41, 5]
    reference = getattr(transformers, architecture).from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        want = reference(torch.tensor([ids])).logits[0, -1]
    torch.testing.assert_close(next_logits(folder, ids), want, rtol=1e-4, atol=1e-4)


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}


@pytest.mark.parametrize("scaling", [LLAMA3, {"rope_type": "linear", "factor": 4.0}])
def test_rope_scaling_equals_transformers(scaling: dict[str, Any]) -> None:
    given = {"rope_theta": 10000.0, **scaling}
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=2, max_position_embeddings=1024, rope_parameters=given)
    want, _ = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, "cpu")
    torch.testing.assert_close(inverse_frequencies(32, 10000.0, scaling), want)


def test_fp8_weights_stay_close_and_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.platforms import current_platform

    with pytest.raises(ValueError, match="supports_fp8"):
        next_logits(tiny_llama(), [1, 2, 3], "fp8")
    monkeypatch.setattr(type(current_platform), "supports_fp8", lambda self: True)
    exact, coarse = next_logits(tiny_llama(), [54, 74, 71]), next_logits(tiny_llama(), [54, 74, 71], "fp8")
    assert not torch.equal(exact, coarse)
    assert torch.nn.functional.cosine_similarity(exact, coarse, dim=0) > 0.98
    model = load_model(config_of(tiny_llama()), "fp8", "cpu")
    assert model.model.layers[0].mlp.down_proj.weight.dtype is torch.float8_e4m3fn
    assert Fp8Config.from_config({}).get_quant_method(torch.nn.Linear(1, 1), "x") is None


@pytest.mark.parametrize("size", [2, 4])
def test_each_ranks_parts_make_the_whole(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more ranks than key-value heads, neighbours share one."""
    whole = load_model(config_of(tiny_llama()), None, "cpu").model.layers[1].self_attn.qkv_proj.weight
    q, k, v = whole.split([64, 32, 32])
    parts = []
    for rank in range(size):
        group = parallel_state.GroupCoordinator.__new__(parallel_state.GroupCoordinator)
        group.rank, group.world_size = rank, size
        monkeypatch.setattr(parallel_state, "_tp_group", group)
        attention = load_model(config_of(tiny_llama(), tp_size=size), None, "cpu").model.layers[1].self_attn
        parts.append(attention.qkv_proj.weight.split(attention.sizes))
    assert torch.equal(torch.cat([part[0] for part in parts]), q)
    shared = max(1, size // 2)
    assert torch.equal(torch.cat([part[1] for part in parts[::shared]]), k)
    assert torch.equal(torch.cat([part[2] for part in parts[::shared]]), v)
    assert all(torch.equal(parts[rank][1], parts[rank - rank % shared][1]) for rank in range(size))


# -- the built-in model


def test_the_tiny_model_is_made_once_and_always_the_same(tmp_path: Path) -> None:
    one, two = tiny_llama(tmp_path / "one"), tiny_llama(tmp_path / "two")
    files = sorted(path.name for path in one.iterdir())
    assert [(one / name).read_bytes() == (two / name).read_bytes() for name in files] == [True] * len(files)
    stamp = (one / "model.safetensors").stat().st_mtime_ns
    assert tiny_llama(tmp_path / "one") == one
    assert (one / "model.safetensors").stat().st_mtime_ns == stamp
    assert [path.name for path in one.parent.iterdir()] == [one.name]


def test_the_cache_folder_follows_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_PLUG_CACHE", str(tmp_path / "here"))
    assert tiny_llama().parent == tmp_path / "here"


def test_end_tokens_come_from_both_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"eos_token_id": 1}')
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    assert end_token_ids(str(tmp_path)) == {1, 7, 8}


# -- refused


def _truncate(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])


def _index(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"x": "gone.safetensors"}}')


def _configure(**changes: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.json"
        given = {**json.loads(path.read_text()), **changes}
        path.write_text(json.dumps({key: value for key, value in given.items() if value is not ...}))

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_truncate, "is damaged"),
        (_index, r"names files that are missing: gone\.safetensors"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"has no \*\.safetensors file"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot read"),
        (lambda folder: (folder / "config.json").write_text("[]"), "no JSON object"),
        (_configure(architectures=["MambaForCausalLM"]), "architecture 'MambaForCausalLM'"),
        (_configure(vocab_size=...), "lacks 'vocab_size'"),
        (_configure(hidden_act="gelu"), "activation 'gelu'"),
        (_configure(architectures=["MistralForCausalLM"], sliding_window=16), "sliding-window"),
        (_configure(torch_dtype="float8"), "data type 'float8'"),
        (_configure(num_hidden_layers=3), "lacks 9 weights"),
        (_configure(num_hidden_layers=1), "does not know"),
        (_configure(hidden_size=32), "does not fit"),
        (_configure(rope_scaling={"rope_type": "yarn", "factor": 2.0}), "rope_scaling 'yarn'"),
    ],
)
def test_a_broken_folder_is_told(tmp_path: Path, damage: Callable[[Path], Any], words: str) -> None:
    folder = shutil.copytree(tiny_llama(), tmp_path / "model")
    damage(folder)
    with pytest.raises(ValueError, match=words):
        load_model(config_of(folder), None, "cpu")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tp_size": 3}, "--tp-size 3 does not divide"),
        ({"tp_size": 0}, "--tp-size must be at least 1"),
        ({"page_size": -1}, "--page-size must be at least 1"),
        ({"context_length": 9999}, "the model reaches 2048"),
        ({"mem_fraction_static": 1.5}, "--mem-fraction-static must lie"),
        ({"port": 70000}, "--port must lie"),
        ({"max_queued_requests": -1}, "--max-queued-requests"),
        ({"model_path": "/no/such"}, "--model-path: no folder"),
        ({"speculative_algorithm": "EAGLE", "speculative_draft_attention_backend": "x"}, "--speculative-algorithm EAGLE"),
        ({"mamba_scheduler_strategy": "extra_buffer"}, "--mamba-scheduler-strategy"),
    ],
)
def test_arguments_that_cannot_work_are_told(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ServerArgs(**{"model_path": str(tiny_llama()), **arguments}).check_server_args()


def test_weight_files_follow_the_index(tmp_path: Path) -> None:
    for name in ("a.safetensors", "b.safetensors", "other.safetensors"):
        (tmp_path / name).touch()
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "b.safetensors"}}'
    )
    assert [path.name for path in weight_files(tmp_path)] == ["a.safetensors", "b.safetensors"]


def test_defaults_for_arguments_that_do_not_exist_are_told(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """SGLang drops them silently."""
    from sglang.srt.platforms import current_platform

    def defaults(self: Any, server_args: Any) -> None:
        server_args.page_size, server_args.pagesize = 8, 16

    monkeypatch.setattr(type(current_platform), "apply_server_args_defaults", defaults)
    arguments = ServerArgs(model_path=str(tiny_llama()))
    arguments.resolve_once()
    assert arguments.page_size == 8
    assert "pagesize" in caplog.text


def test_a_cache_that_cannot_be_written_is_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SGLANG_PLUG_CACHE", str(tmp_path / "file"))
    with pytest.raises(ValueError, match="set SGLANG_PLUG_CACHE"):
        ServerArgs(model_path="tiny").resolve_once()


@pytest.mark.parametrize(("device", "fits"), [("cpu", True), ("acme", True), ("bogus", False), ("cuda", False)])
def test_another_device_than_the_platforms_is_refused(monkeypatch: pytest.MonkeyPatch, device: str, fits: bool) -> None:
    from sglang.srt import server_args

    platform = SimpleNamespace(device_type="acme", is_out_of_tree=lambda: True, get_device=lambda number: "cpu:0")
    monkeypatch.setattr(server_args, "current_platform", platform)
    if fits:
        assert server_args._same_device(device) == device
    else:
        with pytest.raises(ValueError, match=f"--device {device}: .*whose device is acme or cpu"):
            server_args._same_device(device)


def test_the_command_line_has_every_field_and_tells_what_it_ignores(caplog: pytest.LogCaptureFixture) -> None:
    argv = ["--model-path", str(tiny_llama()), "--tp", "2", "--page-size", "4", "--disable-cuda-graph", "--sleep-on-idle"]
    arguments = prepare_server_args(argv)
    assert (arguments.tp_size, arguments.page_size, arguments.disable_cuda_graph) == (2, 4, True)
    assert (arguments.attention_backend, arguments.device, arguments.random_seed) == ("torch_native", "cpu", 42)
    assert "--sleep-on-idle" in caplog.text
    for near, meant in (("--prot", "--port"), ("--page-szie=4", "--page-size")):
        with pytest.raises(ValueError, match=f"no such option: {near.partition('=')[0]}; did you mean {meant}"):
            prepare_server_args([near, "1"])
    others = ["--dp-size", "2", "--dp", "2", "--data-parallel-size", "2", "--expert-parallel-size=2", "--no-such-thing-here", "x"]
    assert prepare_server_args(["--model", str(tiny_llama()), *others]).model_path == str(tiny_llama())
