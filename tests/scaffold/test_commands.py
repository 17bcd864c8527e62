"""`new-platform` and `new-hook` as they are typed: what they write, print, ask and refuse."""

from __future__ import annotations

import ast
import os
import pty
import select
import sys
import tomllib
from pathlib import Path

import pytest

from sglang_plug.cli.app import run
from tests.scaffold.making import make

NEXTN = "sglang.srt.models.deepseek_nextn.DeepseekV3ForCausalLMNextN"
RUN_BATCH = "sglang.srt.managers.scheduler.Scheduler.run_batch"
SERVER_ARGS = "sglang.srt.server_args.ServerArgs"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("runtime", ["srt", "diffusion", "both"])
def test_each_runtime_has_a_line_to_serve_with(capsys: pytest.CaptureFixture[str], tmp_path: Path, runtime: str) -> None:
    assert run(["new-platform", "my-chip", "--runtime", runtime, "--output", str(tmp_path)]) == 0
    lines = {"srt": "sglang-plug serve --platform my_chip", "diffusion": "sglang-plug serve --runtime diffusion --platform my_chip"}
    for told in (capsys.readouterr().err, (tmp_path / "my-chip" / "README.md").read_text()):
        said = {name for name, line in lines.items() if line in [row.strip() for row in told.splitlines()]}
        assert said == ({"srt", "diffusion"} if runtime == "both" else {runtime})


def test_a_platform_is_made_and_what_to_do_next_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new-platform", "My.Chip"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "my-chip"
    assert "  + my_chip/platform.py" in out.splitlines()
    assert "pip install -e 'my-chip[test]'" in err
    assert "sglang-plug serve --platform my_chip" in err
    project = tomllib.loads(Path("my-chip/pyproject.toml").read_text())
    assert project["project"]["entry-points"] == {
        "sglang.srt.platforms": {"my_chip": "my_chip:activate"},
        "sglang.srt.plugins": {"my_chip": "my_chip.hooks:register"},
    }
    assert project["project"]["dependencies"] == []
    assert project["tool"]["setuptools"]["packages"]["find"]["include"] == ["my_chip", "my_chip.*"]


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        (["--runtime", "diffusion", "--no-hooks"], {"sglang.multimodal_gen.platforms"}),
        (["--runtime", "both", "--no-hooks"], {"sglang.srt.platforms", "sglang.multimodal_gen.platforms"}),
        (
            ["--runtime", "both", "--hooks"],
            {"sglang.srt.platforms", "sglang.multimodal_gen.platforms", "sglang.srt.plugins", "sglang.multimodal_gen.plugins"},
        ),
    ],
)
def test_options_choose_the_entry_points(options: list[str], groups: set[str]) -> None:
    assert run(["new-platform", "x1", *options, "--output", "deep/er"]) == 0
    assert tomllib.loads(Path("deep/er/x1/pyproject.toml").read_text())["project"]["entry-points"].keys() == groups


def test_a_dry_run_shows_everything_and_writes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["new-platform", "x1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "  x1/platform.py\n" in out
    assert "--- x1/pyproject.toml\n[build-system]" in out
    assert content(tmp_path) == {}


def test_a_name_is_taken_by_another_project_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["new-hook", "x1", "--target", RUN_BATCH]) == 0
    monkeypatch.syspath_prepend(tmp_path / "x1")
    assert run(["new-hook", "x1", "--target", RUN_BATCH, "--dry-run"]) == 0
    assert run(["new-hook", "x1", "--target", RUN_BATCH, "--output", "other", "--dry-run"]) == 1
    assert run(["new-hook", "x1", "--target", RUN_BATCH, "--output", "other", "--force"]) == 0


@pytest.mark.parametrize(("device", "told"), [("cpu", False), ("mps", False), ("bogus", True)])
def test_a_device_that_torch_lacks_is_told_what_brings_it(device: str, told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new-platform", "x1", "--device-type", device]) == 0
    assert ("active where torch_bogus can be imported" in capsys.readouterr().err) is told


def test_an_existing_folder_is_refused_and_force_lists_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["new-platform", "x1"]) == 0
    Path("x1/x1/hardware.py").write_text("mine")
    before = content(tmp_path)
    assert run(["new-platform", "x1"]) == 1
    err = capsys.readouterr().err
    assert "would change: x1/hardware.py" in err
    assert "--force" in err
    assert content(tmp_path) == before
    assert run(["new-platform", "x1", "--force"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("these files in x1 will be overwritten:\n  x1/hardware.py\n")
    assert "  ~ x1/hardware.py" in out.splitlines()
    assert Path("x1/x1/hardware.py").read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["new-platform", "class"], 1, "keyword"),
        (["new-platform", "cuda"], 1, "cuda-device"),
        (["new-platform", "x\x1b[31m"], 1, r"x\x1b[31m"),
        (["new-platform"], 2, "a name is missing"),
        (["new-platform", "x1", "--sglang", "0.5.99"], 1, "0.5.99"),
        (["new-platform", "x1", "--sglang", "0.5.20", "--runtime", "both"], 1, "--sglang 0.5.21"),
        (["new-platform", "x1", "--device-type", "cuda:0"], 1, "--device-type cuda"),
        (["new-platform", "x1", "--output", "/proc/none"], 1, "--output"),
        (["new-hook", "x1"], 2, "a target is missing"),
        (["new-hook", "--target", RUN_BATCH], 2, "a name is missing"),
        (["new-hook", "x1", "--target", RUN_BATCH + "s"], 1, f"`--target {RUN_BATCH}`"),
        (["new-hook", "x1", "--target", "sglang.srt.managers.scheduler.Scheduler"], 1, "Scheduler.__init__"),
        (["new-hook", "x1", "--target", RUN_BATCH, "--into", "nowhere"], 1, "no project to add to"),
        (["new-hook", "x1", "--target", RUN_BATCH, "--into", "a", "--output", "b"], 2, "exclude each other"),
        (["new-hook", "x1", "--target", "sglang.srt.managers.scheduler"], 1, "contract targets 'sglang.srt.managers.scheduler.*'"),
        (["new-hook", "x1", "--target", "sglang.srt.server_args.ServerArgs.launch_command"], 1, "a property cannot be hooked"),
        (["new-hook", "x1", "--target", f"{NEXTN}.num_fusable_shared_experts"], 1, "DeepseekV2ForCausalLM.num_fusable_shared_experts`"),
        (["new-hook", "x1", "--target", '{{ 7*7 }}"); import os; ("'], 1, '{{ 7*7 }}"); import os; ("'),
        (["new-platform", "x1", "--device-type", "privateuse1"], 1, "--device-type privateuseone"),
        (["new-platform", "torch-mlu", "--device-type", "mlu"], 1, "torch-mlu-device"),
        (["new-platform", "pluggy"], 1, "new-platform pluggy-device`"),
        (["new-hook", "pluggy", "--target", RUN_BATCH, "--dry-run"], 1, "`import pluggy` finds"),
        (["new-hook", "numpy", "--target", RUN_BATCH], 1, "new-hook numpy-hooks`"),
        (["new-hook", "x1", "--target", "Scheduler.run_batch"], 1, f"hint: `--target {RUN_BATCH}`"),
        (["new-hook", "x1", "--target", f"{SERVER_ARGS}.__post_init__", "--type", "after"], 1, f"`--target {SERVER_ARGS}.resolve_once`"),
        (["new-hook", "x1", "--target", "sglang.srt.managers.scheduler.run_scheduler_process"], 1, "PicklingError"),
    ],
)
def test_refusals_write_nothing(arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(arguments) == status
    err = capsys.readouterr().err
    assert words in err
    assert "hint:" in err
    assert "\x1b" not in err
    assert content(tmp_path) == {}


def test_a_member_of_a_class_that_the_module_imports_is_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    target = "sglang.srt.managers.schedule_batch.Modality.from_str"
    assert run(["new-hook", "x1", "--target", target, "--dry-run"]) == 0
    assert not capsys.readouterr().err.startswith("error")


def ask(answers: bytes, *arguments: str) -> tuple[int, str]:
    """Run the command on a terminal, type `answers`, and return its status and what the terminal showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "sglang_plug", *arguments])
    os.write(terminal, answers)
    shown = b""
    while select.select([terminal], [], [], 30)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_a_terminal_is_asked() -> None:
    status, shown = ask(b"my-chip\nboth\n\nn\n", "new-platform")
    assert status == 0, shown
    for question in ("Name of the package", "Runtime (srt, diffusion, both) [srt]", "Torch device type", "With a hook plugin?"):
        assert question in shown
    made = content(Path("my-chip"))
    assert {"my_chip/platform.py", "my_chip/diffusion_platform.py"} <= made.keys()
    assert "my_chip/hooks.py" not in made


def test_yes_asks_nothing_on_a_terminal() -> None:
    status, shown = ask(b"", "new-platform", "my-chip", "--yes")
    assert status == 0, shown
    assert "?" not in shown


def test_a_wrong_answer_to_a_question_is_refused_in_words() -> None:
    status, shown = ask(b"everything\n", "new-platform", "my-chip")
    assert status == 2, shown
    assert "everything" in shown
    assert "srt, diffusion or both" in shown


def test_an_overwrite_is_asked_on_a_terminal() -> None:
    assert run(["new-platform", "x1", "--yes"]) == 0
    Path("x1/README.md").write_text("mine")
    status, shown = ask(b"n\n", "new-platform", "x1", "--runtime", "srt", "--device-type", "cpu", "--hooks", "--force")
    assert status == 130
    assert "Overwrite them? [y/N]" in shown
    assert Path("x1/README.md").read_text() == "mine"


def test_a_hook_package_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new-hook", "my-metrics", "--target", RUN_BATCH.replace(".Scheduler", ":Scheduler")]) == 0
    project = tomllib.loads(Path("my-metrics/pyproject.toml").read_text())
    assert project["project"]["entry-points"] == {"sglang.srt.plugins": {"my_metrics": "my_metrics.hooks:register"}}
    module = ast.parse(Path("my-metrics/my_metrics/hooks.py").read_text())
    function = next(node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == "around_run_batch")
    assert [argument.arg for argument in function.args.args] == ["original", "self", "batch"]


@pytest.mark.parametrize("target", [RUN_BATCH.replace(".Scheduler", ":Scheduler"), RUN_BATCH.replace(".run_batch", ":run_batch")])
def test_a_target_is_written_with_dots(target: str) -> None:
    """Of colon forms, SGLang takes some only."""
    assert run(["new-hook", "x1", "--target", target, "--type", "BEFORE"]) == 0
    assert f'TARGET = "{RUN_BATCH}"' in Path("x1/x1/hooks.py").read_text()


def test_diffusion_targets_take_diffusions_registry() -> None:
    assert run(["new-hook", "x1", "--target", "sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.execute_forward"]) == 0
    text = Path("x1/x1/hooks.py").read_text()
    assert "from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry" in text
    assert '[project.entry-points."sglang.multimodal_gen.plugins"]' in Path("x1/pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("target", "release", "words"),
    [
        (f"{SERVER_ARGS}.__post_init__", "0.5.23", "hook sglang.srt.server_args.ServerArgs.resolve_once instead"),
        ("sglang.srt.managers.scheduler.run_scheduler_process", "0.5.23", "PicklingError"),
        ("sglang.srt.managers.scheduler.Scheduler.get_next_batch_to_run", "0.5.23", "idle loop"),
        ("sglang.srt.model_executor.model_runner.ModelRunner.forward", "0.5.23", "init_backend()"),
        ("sglang.srt.managers.detokenizer_manager.DetokenizerManager.event_loop", "0.5.21", "loads no plugins in the process"),
        ("sglang.srt.entrypoints.http_server.set_trace_level", "0.5.23", "requests pass a hook by"),
    ],
)
def test_targets_with_a_catch_are_warned_of(target: str, release: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new-hook", "x1", "--target", target, "--sglang", release, "--force"]) == 0
    err = capsys.readouterr().err
    assert "warning: " in err
    assert words in err


@pytest.mark.parametrize(
    ("target", "release"),
    [
        (RUN_BATCH, "0.5.23"),
        (f"{SERVER_ARGS}.__post_init__", "0.5.18"),
        ("sglang.srt.managers.detokenizer_manager.DetokenizerManager.event_loop", "0.5.23"),
    ],
)
def test_targets_without_one_are_not(target: str, release: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new-hook", "x1", "--target", target, "--sglang", release]) == 0
    assert "warning" not in capsys.readouterr().err


def test_the_wrong_runtime_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["new-hook", "x1", "--target", RUN_BATCH, "--runtime", "diffusion"]) == 0
    assert "--runtime srt is likely what is meant" in capsys.readouterr().err


def test_a_hook_is_added_to_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path)
    before = content(folder)
    assert run(["new-hook", "--into", "my-chip", "--target", RUN_BATCH, "--type", "before"]) == 0
    after = content(folder)
    assert after.keys() - before.keys() == {"my_chip/before_run_batch.py"}
    changed = [name for name in before if before[name] != after[name]]
    assert changed == ["pyproject.toml"]
    old, new = (text["pyproject.toml"].decode().splitlines() for text in (before, after))
    assert [line for line in new if line not in old] == ['my_chip_before_run_batch = "my_chip.before_run_batch:register"']
    assert (
        new.index('my_chip_before_run_batch = "my_chip.before_run_batch:register"') == new.index('my_chip = "my_chip.hooks:register"') + 1
    )
    assert run(["new-hook", "--into", "my-chip", "--target", RUN_BATCH, "--type", "before"]) == 0  # again: nothing changes
    assert content(folder) == after


def test_a_long_target_gets_a_module_of_bearable_length(tmp_path: Path) -> None:
    folder = make(tmp_path)
    long = "sglang.srt.managers.scheduler.Scheduler._record_scheduler_state_for_paused_engine"
    assert run(["new-hook", "--into", "my-chip", "--target", long]) == 0
    (module,) = (folder / "my_chip").glob("around_*.py")
    assert module.stem == "around_record_scheduler_state_for_paused"
    assert "def around_record_scheduler_state_for_paused_engine(" in module.read_text()


def test_a_module_of_another_content_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path)
    before = content(folder)
    assert run(["new-hook", "hooks", "--into", "my-chip", "--target", RUN_BATCH]) == 1
    assert "would change: my_chip/hooks.py" in capsys.readouterr().err
    assert content(folder) == before


def test_a_dry_run_into_a_project_shows_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path)
    before = content(folder)
    assert run(["new-hook", "--into", "my-chip/pyproject.toml", "--target", RUN_BATCH, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert '+my_chip_around_run_batch = "my_chip.around_run_batch:register"' in out
    assert "def around_run_batch(" in out
    assert content(folder) == before


def test_a_package_under_src_is_found(tmp_path: Path) -> None:
    (tmp_path / "p" / "src" / "other").mkdir(parents=True)
    (tmp_path / "p" / "src" / "other" / "__init__.py").touch()
    (tmp_path / "p" / "pyproject.toml").write_text('[project]\nname = "something-else"\n')
    assert run(["new-hook", "--into", "p", "--target", RUN_BATCH]) == 0
    assert (tmp_path / "p" / "src" / "other" / "around_run_batch.py").is_file()


@pytest.mark.parametrize("command", ["new-platform", "new-hook"])
def test_help_tells_purpose_examples_and_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.count(f"sglang-plug {command} ") >= 3
    assert "Exit status:" in out
