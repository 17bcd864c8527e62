"""Each trap: a launch that steps into it, and one that does not."""

from __future__ import annotations

import dataclasses
import json
import re
import socket
import struct
from pathlib import Path

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.contract import catalogue
from sglang_plug.core.entrypoints import Candidate
from sglang_plug.core.resolution import Resolution, Step
from sglang_plug.core.selection import Choice
from sglang_plug.launch import traps
from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.hooktraps import foreign_device, target_traps
from sglang_plug.launch.modelfiles import broken_model
from sglang_plug.launch.plan import Plan
from sglang_plug.launch.traps import Situation
from sglang_plug.probe.environment import Environment

PLUGIN = Resolution("srt", "plugin", "acme", "acme.Plat", "acme-dist")
BASE = Resolution("srt", "builtin", "base", "sglang.srt.platforms.interface.SRTPlatform")
CUDA = Resolution("srt", "builtin", "cuda", "sglang.srt.platforms.cuda.CudaSRTPlatform")


def at(
    text: str = "",
    *,
    resolution: Resolution = PLUGIN,
    hooks: tuple[Choice, ...] = (),
    release: str = "0.5.23",
    engine: str = "sglang",
    **env,
):
    arguments = EngineArguments(tuple(text.split()))
    plan = Plan(engine, release if engine == "sglang" else None, "srt", Environment("python", env, "/"), (), {}, arguments)
    return Situation(plan, resolution, hooks)


def choice(name: str = "acme_hooks", dist: str = "acme-dist", verdict: str = "load", why: str = "installed") -> Choice:
    return Choice(Candidate(name, f"{name}:register", "sglang.srt.plugins", dist, "1.0"), verdict, why)


def codes(trap, situation) -> list[tuple[str, Level]]:
    return [(finding.code, finding.level) for finding in trap(situation)]


def test_a_port_that_is_taken():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        port = door.getsockname()[1]
        (finding,) = traps.port_in_use(at(f"--port {port}"))
    assert finding.code == "SP053"
    assert str(port) in finding.message
    assert f"--port {port + 1}" in finding.hint
    assert codes(traps.port_in_use, at(f"--port {port}")) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--host 203.0.113.7 --port 31999", "203.0.113.7 is no address of this machine"),
        ("--host nowhere.invalid --port 31999", "nowhere.invalid is no address of this machine"),
    ],
)
def test_a_host_that_is_not_this_machine(arguments, said):
    (finding,) = traps.port_in_use(at(arguments))
    assert said in finding.hint
    assert "stop the other server" not in finding.hint


def test_no_model(tmp_path):
    assert codes(traps.model_missing, at("")) == [("SP054", Level.ERROR)]
    assert codes(traps.model_missing, at("", engine="standin")) == []  # it has one built in
    assert codes(traps.model_missing, at("--config serve.yaml")) == []  # may name it
    assert codes(traps.model_missing, at("--model-path /no/such/folder")) == [("SP054", Level.ERROR)]
    assert codes(traps.model_missing, at("--model-path ./models/x")) == [("SP054", Level.ERROR)]
    assert codes(traps.model_missing, at("--model-path meta-llama/Llama-3.1-8B")) == []  # the hub's business


def weights(path: Path, *, missing: int = 0) -> None:
    """Write a safetensors file of one tensor with four float32, `missing` bytes short."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    path.write_bytes((struct.pack("<Q", len(header)) + header + b"\0" * 16)[: 8 + len(header) + 16 - missing])


def test_a_whole_model(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    weights(tmp_path / "model.safetensors")
    assert broken_model(tmp_path) is None


def broken_models():
    def no_config(folder: Path) -> None:
        (folder / "config.json").unlink()

    def bad_config(folder: Path) -> None:
        (folder / "config.json").write_text('{"model_type":')

    def no_weights(folder: Path) -> None:
        (folder / "model.safetensors").unlink()

    def cut_data(folder: Path) -> None:
        weights(folder / "model.safetensors", missing=1)

    def cut_header(folder: Path) -> None:
        weights(folder / "model.safetensors", missing=40)

    def empty(folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"")

    def missing_shard(folder: Path) -> None:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "m-2.safetensors"}}))

    return [
        (no_config, "neither config.json nor model_index.json"),
        (bad_config, "config.json cannot be read"),
        (no_weights, "no file with weights"),
        (cut_data, "cut short"),
        (cut_header, "cut short"),
        (empty, "cannot be read|cut short"),
        (missing_shard, "1 of 2 weight files are missing, the first is m-2.safetensors"),
    ]


def test_the_stand_in_needs_a_tokenizer_that_it_can_read(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "params.bin").touch()
    tokens = f"--model-path {tmp_path}"
    assert codes(traps.model_missing, at(tokens, engine="standin")) == [("SP054", Level.ERROR)]
    assert codes(traps.model_missing, at(f"{tokens} --tokenizer-path /elsewhere", engine="standin")) == []
    assert codes(traps.model_missing, at(tokens)) == []  # SGLang knows other tokenizers, too
    (tmp_path / "tokenizer.json").touch()
    assert codes(traps.model_missing, at(tokens, engine="standin")) == []


@pytest.mark.parametrize(("break_it", "why"), broken_models())
def test_a_broken_model(tmp_path, break_it, why):
    (tmp_path / "config.json").write_text("{}")
    weights(tmp_path / "model.safetensors")
    break_it(tmp_path)
    (finding,) = traps.model_missing(at(f"--model-path {tmp_path}"))
    assert any(part in finding.cause for part in why.split("|"))


def test_dummy_weights_need_no_file(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert codes(traps.model_missing, at(f"--model-path {tmp_path} --load-format dummy")) == []


def fallback(rule: str, verdict: str) -> Resolution:
    return Resolution("srt", "builtin", "base", BASE.qualname, steps=(Step(rule, "acme", verdict, "why", data={"dist": "acme-dist"}),))


@pytest.mark.parametrize(
    ("step", "code"), [(("activate", "failed"), "SP051"), (("allowlist", "skipped"), "SP105")], ids=["failed", "filtered away"]
)
def test_a_built_in_in_place_of_a_platform_plugin(step, code):
    (finding,) = traps.silent_fallback(at(resolution=fallback(*step)))
    assert (finding.code, finding.level) == (code, Level.ERROR)
    assert "acme" in finding.message
    assert f"--allow {code}" in finding.hint


def test_no_fallback_no_finding():
    assert codes(traps.silent_fallback, at(resolution=CUDA)) == []
    assert (
        codes(traps.silent_fallback, at(resolution=Resolution("srt", "plugin", "b", "b.B", "b", fallback("activate", "failed").steps)))
        == []
    )


def test_absent_hardware_is_a_warning():
    assert codes(traps.hardware_absent, at(resolution=fallback("activate", "inactive"))) == [("SP309", Level.WARNING)]
    assert codes(traps.hardware_absent, at(resolution=BASE)) == []


@pytest.mark.parametrize(
    ("why", "code"),
    [("not in SGLANG_PLUGINS", "SP106"), ("its distribution provides a platform that SGLANG_PLATFORM does not select", "SP601")],
)
def test_own_hooks_that_are_not_loaded(why, code):
    assert codes(traps.own_plugins_skipped, at(hooks=(choice(verdict="skipped", why=why),))) == [(code, Level.ERROR)]
    assert codes(traps.own_plugins_skipped, at(hooks=(choice(verdict="skipped", why=why, dist="other"),))) == []
    assert codes(traps.own_plugins_skipped, at(hooks=(choice(),))) == []


@pytest.mark.parametrize("text", ["--tp-size 2", "--dp-size 2", "--pp-size 2"])
def test_ranks_on_a_cpu_want_cores(text, monkeypatch):
    monkeypatch.setattr(traps, "numa_nodes", lambda: 1)
    assert codes(traps.ranks_without_cores, at(text)) == [("SP055", Level.WARNING)]  # a plugin's device may be another
    assert codes(traps.ranks_without_cores, at(text, resolution=BASE)) == [("SP055", Level.ERROR)]
    assert codes(traps.ranks_without_cores, at(text, resolution=CUDA)) == []
    assert codes(traps.ranks_without_cores, at(text, SGLANG_CPU_OMP_THREADS_BIND="0|1")) == []
    assert codes(traps.ranks_without_cores, at(text, SGLANG_CPU_OMP_THREADS_BIND="0-1")) == [("SP055", Level.WARNING)]
    assert codes(traps.ranks_without_cores, at("")) == []
    monkeypatch.setattr(traps, "numa_nodes", lambda: 2)
    assert codes(traps.ranks_without_cores, at(text)) == []


def test_processes_without_plugins():
    assert codes(traps.tokenizers_without_hooks, at("--tokenizer-worker-num 2")) == [("SP056", Level.WARNING)]
    assert codes(traps.tokenizers_without_hooks, at("--tokenizer-worker-num 1")) == []
    assert codes(traps.ray_without_hooks, at("--use-ray")) == [("SP057", Level.WARNING)]
    assert codes(traps.ray_without_hooks, at("--use-ray", hooks=(choice(),))) == [("SP057", Level.ERROR)]
    assert codes(traps.ray_without_hooks, at("")) == []
    chosen = at("--use-ray")
    chosen = dataclasses.replace(chosen, plan=dataclasses.replace(chosen.plan, changes={"SGLANG_PLATFORM": "acme", "PYTHONPATH": "/x"}))
    (finding,) = traps.ray_without_hooks(chosen)
    assert finding.level is Level.ERROR  # the actor's variables are those of `ray start`
    assert "SGLANG_PLATFORM=acme of this launch may not reach it" in finding.cause
    assert "`SGLANG_PLATFORM=acme ray start …`" in finding.hint
    assert codes(traps.old_release_without_hooks, at(release="0.5.21", hooks=(choice(),))) == [("SP058", Level.INFO)]
    assert codes(traps.old_release_without_hooks, at(release="0.5.22", hooks=(choice(),))) == []
    assert codes(traps.old_release_without_hooks, at(release="0.5.21")) == []
    assert codes(traps.many_nodes, at("--nnodes 2")) == [("SP059", Level.WARNING)]
    assert codes(traps.many_nodes, at("--nnodes 1")) == []


def test_nodes_are_compared_by_their_fingerprint():
    def nodes(mine: str, wanted: str | None) -> list:
        return list(traps.many_nodes(dataclasses.replace(at("--nnodes 2"), fingerprint=mine, expected=wanted)))

    assert nodes("aaa", "aaa") == []
    assert [finding.level for finding in nodes("aaa", "bbb")] == [Level.ERROR]
    assert "--expect-fingerprint aaa" in (nodes("aaa", None)[0].hint or "")


@pytest.mark.parametrize(
    ("target", "codes"),
    [
        ("sglang.srt.managers.scheduler.run_scheduler_process", ["SP060"]),
        ("sglang.srt.managers.detokenizer_manager:run_detokenizer_process", ["SP060"]),
        ("sglang.srt.entrypoints.engine.run_scheduler_process", ["SP060"]),  # the name that the engine imported
        ("sglang.srt.model_executor.model_runner.ModelRunner.forward", ["SP061"]),
        ("sglang.srt.managers.scheduler.Scheduler.get_next_batch_to_run", ["SP062"]),
        ("sglang.srt.managers.scheduler:Scheduler.on_idle", ["SP062"]),
        ("sglang.srt.managers.scheduler.Scheduler.event_loop_normal", []),  # holds the loop: called once
        ("sglang.srt.managers.scheduler.Scheduler.run_batch", []),
        ("sglang.multimodal_gen.runtime.managers.gpu_worker.run_scheduler_process", []),
    ],
)
def test_targets_that_are_traps(target, codes):
    assert [finding.code for finding in target_traps(catalogue.load("0.5.23"), target, "around", "p")] == codes


def test_a_device_of_its_own():
    assert [finding.code for finding in foreign_device("mydev", "m.P")] == ["SP063"]
    assert list(foreign_device("cpu", "m.P")) == []


def test_every_code_is_in_the_table():
    from sglang_plug.checks.table import RULES

    known = {rule.code for rule in RULES}
    package = Path(traps.__file__).parent
    used = {code for path in package.glob("*.py") for code in re.findall(r'"(SP\d{3})"', path.read_text())}
    assert used <= known
