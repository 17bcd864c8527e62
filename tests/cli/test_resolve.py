"""`sglang-plug resolve` and `list` as they are typed: exit status, the one document on stdout, the warnings on stderr, the pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.cli.app import run
from tests.plugins import install
from tests.plugins.install import DIFFUSION_PLATFORM, DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from collections.abc import Callable

RAISES = "def activate():\n    raise OSError('libacme.so.3')\n"


class Answer:
    """What a command said."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@pytest.fixture
def tool(site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Answer]:
    """Run a command in an environment that sees the site."""

    def call(*argv: str, **variables: str) -> Answer:
        site.root.mkdir(parents=True, exist_ok=True)
        env = site.env(**variables)
        for name in [name for name in os.environ if name not in env]:
            monkeypatch.delenv(name)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        status = run(argv)
        said = capsys.readouterr()
        return Answer(status, said.out, said.err)

    return call


def test_the_sentence_says_which_platform_and_by_what(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    answer = tool("resolve", "--runtime", "srt", SGLANG_PLATFORM="pa")
    assert answer.status == 0
    assert "SRT will use pa (pa.plat.Plat) of pa-dist, selected by SGLANG_PLATFORM" in answer.out
    assert "by the rules of SGLang 0.5.23, the newest known" in answer.out
    assert answer.err == ""


def test_a_fallback_after_a_failure_says_what_failed_and_what_makes_it_fatal(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "pa", RAISES)
    answer = tool("resolve", "--runtime", "srt")
    assert answer.status == 0
    assert "falls back to the base SRTPlatform (device unknown), because 1 of 1 platform plugin failed: pa: " in answer.out
    assert "export SGLANG_PLATFORM=pa" in answer.out
    assert "warning: SRT: platform plugin 'pa': activate() failed: OSError: libacme.so.3" in answer.err
    assert tool("resolve", "--runtime", "srt", "--strict").status == 1


def test_a_failures_text_is_not_cut(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "pa", "def activate():\n    raise RuntimeError('driver is too old; install 550')\n")
    answer = tool("resolve", "--runtime", "srt")
    (line,) = [line for line in answer.out.splitlines() if "falls back" in line]
    assert "RuntimeError: driver is too old; install 550" in line
    assert "goes on" not in line


def test_an_endless_answer_is_not_printed_whole(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "pa", "def activate(): return 'pa.' * 100_000 + 'X'\n")
    answer = tool("resolve", "--runtime", "srt")
    assert answer.status == 1
    assert "(300001 characters)" in answer.out
    assert len(answer.out) + len(answer.err) < 20_000
    found = tool("resolve", "--runtime", "srt", "--format", "json").document["runtimes"]["srt"]
    assert max(len(step["why"]) for step in found["steps"]) > 300_000


def test_a_misspelt_variable_is_mentioned(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    answer = tool("resolve", "--runtime", "srt", SGLANG_PLATFROM="pa", SGLANG_PLUGIN="x", SGLANG_PORT="1")
    assert answer.err == (
        "warning: SGLANG_PLATFROM is read by nobody; did you mean SGLANG_PLATFORM?\n"
        "warning: SGLANG_PLUGIN is read by nobody; did you mean SGLANG_PLUGINS?\n"
    )


def test_json_is_one_document_with_the_promised_shape(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "pa", "print('{}')\ndef activate():\n    print('{' * 100)\n    return 'pa.plat.Plat'\n")
    install.hook(site, "def register(): pass\n")
    answer = tool("resolve", "--format", "json")
    found = answer.document
    assert (answer.status, found["schema"], set(found["runtimes"])) == (0, 1, {"srt", "diffusion"})
    srt = found["runtimes"]["srt"]
    assert {key: srt[key] for key in ("outcome", "name", "qualname", "dist", "error")} == {
        "outcome": "plugin",
        "name": "pa",
        "qualname": "pa.plat.Plat",
        "dist": "pa-dist",
        "error": None,
    }
    assert all({"rule", "subject", "verdict", "why"} <= set(step) for step in srt["steps"])
    assert srt["plugins"] == [{"name": "hk", "dist": "hk-dist", "version": "1.0", "verdict": "load", "why": "installed", "required": False}]
    assert found["runtimes"]["diffusion"]["hardware"]["cuda"]["present"] is False


def test_an_error_is_in_the_document_and_in_the_status(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    answer = tool("resolve", "--runtime", "srt", "--format", "json", SGLANG_PLATFORM="PA")
    error = answer.document["runtimes"]["srt"]["error"]
    assert answer.status == 1
    assert error["type"] == "RuntimeError"
    assert "SGLANG_PLATFORM='PA' not found in discovered platform plugins (available: 'pa')" in error["message"]
    assert "export SGLANG_PLATFORM=pa" in error["hint"]


def test_a_platform_that_the_allowlist_leaves_out_is_named(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    answer = tool("resolve", "--runtime", "srt", SGLANG_PLUGINS="hk")
    assert answer.status == 0
    assert "falls back to the base SRTPlatform (device unknown): SGLANG_PLUGINS leaves out the platform plugin pa" in answer.out
    assert "hint: add pa to SGLANG_PLUGINS, or: export SGLANG_PLATFORM=pa" in answer.out


def test_a_skipped_hook_aborts_nothing(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "da", group=DIFFUSION_PLATFORMS, plat=DIFFUSION_PLATFORM)
    entry_points = {DIFFUSION_PLATFORMS: {"db": "db:activate"}, DIFFUSION_PLUGINS: {"db_hooks": "db:register"}}
    site.add("db-dist", entry_points, {"db.py": "def register(): pass\ndef activate(): return 'da.plat:Plat'\n"})
    own = {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "db"}
    loaded = tool("resolve", "--runtime", "diffusion", **own).out.splitlines()[-1]
    skipped = tool("resolve", "--runtime", "diffusion", SGLANG_PLUGINS="other", **own).out.splitlines()[-1]
    assert "required: its failure aborts startup" in loaded
    assert skipped.endswith("not in SGLANG_PLUGINS")


@pytest.mark.parametrize("name", ["da.plat.Plta", "da.plat:Plta", "da.plta:Plat"])
def test_the_name_that_is_meant_has_a_colon(tool: Callable[..., Answer], site: Site, name: str) -> None:
    install.platform(site, "da", f"def activate(): return {name!r}\n")
    assert "hint: return 'da.plat:Plat' from activate()" in tool("resolve", "--runtime", "srt").out


def test_a_failing_platform_has_a_repair_and_a_way_out(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "da", RAISES, group=DIFFUSION_PLATFORMS)
    repair = "where its device is absent, its callback must return None; sglang-plug doctor da says what to correct"
    assert f"hint: {repair}" in tool("resolve", "--runtime", "diffusion").out
    install.platform(site, "db", group=DIFFUSION_PLATFORMS, plat=DIFFUSION_PLATFORM)
    found = tool("resolve", "--runtime", "diffusion").out
    assert f"hint: to go on without it: export SGLANG_DIFFUSION_PLATFORM_OVERRIDE=db; {repair}" in found


def test_hooks_of_an_inactive_vendor_run_and_are_mentioned(tool: Callable[..., Answer], site: Site) -> None:
    site.add(
        "pb-dist", {SRT_PLATFORMS: {"pb": "pb:activate"}, SRT_PLUGINS: {"pb_hooks": "pb:f"}}, {"pb.py": "def activate(): return None\n"}
    )
    answer = tool("resolve", "--runtime", "srt")
    assert "warning: SRT: hook plugin 'pb_hooks' of pb-dist runs although its platform is inactive here" in answer.err


def test_an_engine_elsewhere_on_the_path_is_mentioned(tool: Callable[..., Answer], tmp_path: Path) -> None:
    command = tmp_path / "venv" / "bin" / "sglang"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!{command.parent}/python\n")
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    assert f"add --python {command.parent}/python" in tool("resolve", PATH=path).err
    assert tool("resolve", "--python", sys.executable, PATH=path).err == ""


def test_what_if(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    install.platform(site, "pb")
    answer = tool("resolve", "--platform", "pb", "--format", "json", SGL_PLATFORM="pa")
    runtimes = answer.document["runtimes"]
    assert (runtimes["srt"]["name"], runtimes["diffusion"]["outcome"]) == ("pb", "builtin")
    assert tool("resolve", "--runtime", "srt", "--plugins", "pa", "--format", "json").document["runtimes"]["srt"]["name"] == "pa"
    found = tool(
        "resolve", "--runtime", "srt", "--env", "SGLANG_PLATFORM", "--plugins", "pb", "--format", "json", SGLANG_PLATFORM="pa"
    ).document
    assert found["runtimes"]["srt"]["name"] == "pb"
    assert tool("resolve", "--runtime", "srt", "--sglang", "0.5.10").status == 1


def test_text_of_strangers_cannot_move_the_cursor(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "pa", "def activate():\n    raise OSError('\\x1b[2Jgone\\x9b1m \\u202e')\n")
    for style in ("text", "json", "mermaid", "svg"):
        answer = tool("resolve", "--runtime", "srt", "--format", style)
        assert not {"\x1b", "\x9b", "\u202e"} & set(answer.out + answer.err)
    assert "\\x1b[2Jgone" in tool("resolve", "--runtime", "srt").out


def test_the_pictures_are_well_formed(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "pa", "def activate():\n    raise OSError('<b>&\"]')\n")
    picture = ET.fromstring(tool("resolve", "--format", "svg").out)
    words = [node.text or "" for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert any(word == "activate failed: pa" for word in words)
    assert "the runtime logs this and goes on" in "".join(words)  # a reason is as many lines as it needs, up to four
    tops = [int(box.attrib["y"]) for box in picture.iter("{http://www.w3.org/2000/svg}rect") if "y" in box.attrib and box.attrib.get("rx")]
    assert max(tops) < int(picture.attrib["height"])
    chart = tool("resolve", "--format", "mermaid").out
    assert chart.startswith("flowchart TD")
    assert chart.count("subgraph ") == chart.count("\n  end") == 2
    assert all(line.count('"') in {0, 2} for line in chart.splitlines())


def test_verify_runs_the_host_and_takes_its_word(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    install.hook(site, "def register(): pass\n")
    answer = tool("resolve", "--runtime", "srt", "--verify", "--format", "json")
    srt = answer.document["runtimes"]["srt"]
    assert answer.status == 0, srt["error"]
    assert [step["verdict"] for step in srt["steps"] if step["rule"] == "verify"] == ["agrees", "agrees"]
    assert (srt["host"]["engine"], srt["host"]["class"], srt["host"]["executed"]) == ("standin", "pa.plat.Plat", ["hk"])


def test_verify_runs_the_plugins_that_the_host_runs_and_no_others(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    install.platform(site, "pb", "import os\nos._exit(9)\n")
    install.hook(site, "def register(): pass\n")
    install.hook(site, "import os\nos._exit(9)\n", "other")
    for variables in ({"SGLANG_PLATFORM": "pa", "SGLANG_PLUGINS": "hk"}, {"SGLANG_PLUGINS": "pa,hk"}):
        answer = tool("resolve", "--runtime", "srt", "--verify", "--format", "json", **variables)
        srt = answer.document["runtimes"]["srt"]
        assert (srt["name"], srt["error"]) == ("pa", None)
        assert srt["host"]["executed"] == ["hk"]
        assert [step["verdict"] for step in srt["steps"] if step["rule"] == "verify"] == ["agrees", "agrees"]


def test_verify_of_diffusion_sees_the_import_that_ends_it(tool: Callable[..., Answer]) -> None:
    argv = ("resolve", "--runtime", "diffusion", "--sglang", "0.5.23", "--verify", "--format", "json")
    answer = tool(*argv, SGLANG_PLATFORM="nope")
    diffusion = answer.document["runtimes"]["diffusion"]
    assert (answer.status, diffusion["error"]["type"]) == (1, "RuntimeError")
    assert [step["verdict"] for step in diffusion["steps"] if step["rule"] == "verify"] == ["agrees"]


def test_verify_finds_what_only_loading_the_class_shows(tool: Callable[..., Answer], site: Site) -> None:
    bad = DIFFUSION_PLATFORM.replace("_enum = PlatformEnum.OOT", "_enum = PlatformEnum.CPU")
    install.platform(site, "da", plat=bad, group=DIFFUSION_PLATFORMS)
    assert tool("resolve", "--runtime", "diffusion").status == 0
    answer = tool("resolve", "--runtime", "diffusion", "--verify", "--format", "json")
    error = answer.document["runtimes"]["diffusion"]["error"]
    assert (answer.status, error["type"]) == (1, "TypeError")
    assert "PlatformEnum.OOT" in error["message"]


def test_a_plugin_that_needs_sglang_is_asked_in_the_hosts_order(tool: Callable[..., Answer], site: Site) -> None:
    body = "from sglang.srt.platforms.interface import SRTPlatform\ndef activate():\n    return 'pa.plat.Plat' if SRTPlatform else None\n"
    install.platform(site, "pa", body)
    answer = tool("resolve", "--runtime", "srt", "--format", "json")
    assert (answer.status, answer.document["runtimes"]["srt"]["name"]) == (0, "pa")


def test_where_a_hook_fires(tool: Callable[..., Answer]) -> None:
    target = "sglang.srt.managers.detokenizer_manager.DetokenizerManager.event_loop"
    for release, fires in (("0.5.21", "no"), ("0.5.22", "yes")):  # plugins load in the detokenizer since 0.5.22
        found = tool("resolve", "--hook", target, "--sglang", release, "--format", "json").document["hook"]
        places = {place["role"]: place["fires"] for place in found["processes"]}
        assert (places["detokenizer"], places["scheduler (one a rank)"]) == (fires, "no")
    dead = tool("resolve", "--hook", "sglang.srt.server_args:ServerArgs.__post_init__", "--sglang", "0.5.23")
    assert dead.status == 1
    assert "hook sglang.srt.server_args.ServerArgs.resolve_once instead" in dead.out
    worker = "sglang.multimodal_gen.runtime.managers.gpu_worker.run_scheduler_process"
    early = tool("resolve", "--hook", worker, "--sglang", "0.5.12")  # before diffusion plugins
    assert early.status == 1
    assert "fires in no process of SGLang 0.5.12" in early.out
    gone = tool("resolve", "--hook", "sglang.srt.managers.scheduler.Scheduler.run_bach", "--sglang", "0.5.23")
    assert gone.status == 1
    assert "did you mean sglang.srt.managers.scheduler.Scheduler.run_batch?" in gone.out


def test_a_class_that_only_an_import_can_find_is_not_promised(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site, "pa", "def activate():\n    return 'os.path.join'\n")
    answer = tool("resolve", "--runtime", "srt")
    assert answer.status == 0
    assert "SRT will try pa (os.path.join) of pa-dist, the only active platform plugin: only an import can tell" in answer.out
    assert "will use" not in answer.out


MAIN, SCHEDULER = "main: subprocess launcher, HTTP server, TokenizerManager", "scheduler (one a rank)"


@pytest.mark.parametrize(
    ("target", "main", "scheduler"),
    [  # by the calls in the wheel of 0.5.23
        ("sampling.sampling_params.SamplingParams.normalize", "yes", "no"),
        ("sampling.sampling_batch_info.SamplingBatchInfo.from_schedule_batch", "no", "yes"),
        ("lora.lora_registry.LoRARegistry.acquire", "yes", "no"),
        ("managers.tokenizer_control_mixin.TokenizerControlMixin.flush_cache", "yes", "no"),
        ("managers.tokenizer_manager.TokenizerManager.flush_cache", "yes", "no"),
        ("managers.disagg_service.start_disagg_service", "yes", "no"),
        ("managers.multi_tokenizer_mixin.TokenizerWorker.__init__", "no", "no"),
        ("managers.multimodal_processor.get_mm_processor", "maybe", "maybe"),
        ("managers.mm_utils.wrap_shm_features", "maybe", "maybe"),
        ("layers.moe.topk.select_experts", "maybe", "yes"),
        ("models.llama.LlamaForCausalLM.forward", "no", "yes"),
        ("managers.scheduler.Scheduler.run_batch", "no", "yes"),
        ("managers.scheduler.ServerArgs", "yes", "maybe"),  # a REPLACE goes wherever the class is held
    ],
)
def test_where_a_hook_fires_is_told_as_far_as_it_is_known(tool: Callable[..., Answer], target: str, main: str, scheduler: str) -> None:
    answer = tool("resolve", "--hook", f"sglang.srt.{target}", "--sglang", "0.5.23", "--format", "json")
    places = {place["role"]: place["fires"] for place in answer.document["hook"]["processes"]}
    assert (places[MAIN], places[SCHEDULER]) == (main, scheduler)
    assert answer.status == (1 if {*places.values()} == {"no"} else 0)


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (":Scheduler", "does not read the target 'sglang.srt.managers.scheduler:Scheduler'"),
        ("", "in the place of the module"),
        (".logger", "in the place of the value"),
    ],
)
def test_a_target_that_cannot_be_hooked_fires_nowhere(tool: Callable[..., Answer], target: str, word: str) -> None:
    answer = tool("resolve", "--hook", f"sglang.srt.managers.scheduler{target}", "--sglang", "0.5.23")
    assert (answer.status, "does not work in SGLang 0.5.23" in answer.out, word in answer.out) == (1, True, True), answer.out


def test_a_what_if_is_taken_as_it_is_written(tool: Callable[..., Answer], site: Site) -> None:
    """The alias wins, as in SGLang, whether it was set before or is a what-if too; --platform means what it says."""
    install.platform(site, "pa")
    install.platform(site, "pb")
    asked = ("resolve", "--runtime", "srt", "--format", "json", "--env", "SGLANG_PLATFORM=pb")
    for answer in (tool(*asked, SGL_PLATFORM="pa"), tool(*asked, "--env", "SGL_PLATFORM=pa")):
        assert answer.document["runtimes"]["srt"]["name"] == "pa"
        assert "SGL_PLATFORM is set too and wins" in answer.err
    assert (
        tool("resolve", "--runtime", "srt", "--format", "json", "--platform", "pb", SGL_PLATFORM="pa").document["runtimes"]["srt"]["name"]
        == "pb"
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["resolve", "--runtime", "cuda"],
        ["resolve", "--timeout", "soon"],
        ["resolve", "--python", "/nowhere"],
        ["resolve", "--env", "=1"],
        ["resolve", "--hook", "x.y", "--format", "svg"],
        ["resolve", "--hook", "torch.nn.Module"],
        ["resolve", "--hook", ""],
        ["list", "--format", "svg"],
    ],
)
def test_a_wrong_command_line_is_status_2(tool: Callable[..., Answer], argv: list[str]) -> None:
    answer = tool(*argv)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err


def test_a_working_directory_that_is_gone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for argv in (["list"], ["resolve"], ["serve", "--port", "31999"]):
        assert run(argv) == 2
        assert "the working directory no longer exists" in capsys.readouterr().err


def test_list_reads_metadata_alone(tool: Callable[..., Answer], site: Site) -> None:
    poison = "import os\nos._exit(9)\n"
    install.platform(site, "pa", poison)
    site.add(
        "sglang", None, {"sglang/__init__.py": poison, "sglang/srt/__init__.py": poison, "torch/__init__.py": poison}, version="0.5.17"
    )
    site.add("old-dist", {"sglang.platforms": {"old": "old:f"}})
    answer = tool("list")
    assert answer.status == 0
    assert "SGLang 0.5.17" in answer.out
    assert "pa  pa:activate  pa-dist 1.0" in answer.out
    assert "sglang.platforms  (SGLang reads no such group)" in answer.out
    found = tool("list", "--runtime", "srt", "--format", "json").document
    assert [(row["group"], row["name"], row["known"]) for row in found["entry_points"]] == [(SRT_PLATFORMS, "pa", True)]


def test_list_names_the_file_that_breaks_everything(tool: Callable[..., Answer], site: Site) -> None:
    install.platform(site)
    info = site.add("bad", "[x]\nno equals\n")
    answer = tool("list")
    assert answer.status == 1
    assert f"error: {info / 'entry_points.txt'}:2: has no '='" in answer.err
    assert "pa:activate" in answer.out


def test_the_installed_command_starts_its_child_first_and_leaves_nothing(site: Site, tmp_path: Path) -> None:
    install.platform(site)
    command = [str(Path(sys.executable).with_name("sglang-plug")), "resolve", "--runtime", "srt", "--format", "json"]
    done = subprocess.run(command, env=site.env(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["runtimes"]["srt"]["name"] == "pa"
    wrong = subprocess.run([*command, "--nonsense"], env=site.env(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")


@pytest.mark.parametrize(("old", "warns"), [("pa", False), ("old_name", True)])
def test_list_warns_of_hidden_metadata_that_says_something_else(tool: Callable[..., Answer], site: Site, old: str, *, warns: bool) -> None:
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {}, version="2.0")
    behind = site.root.parent / "behind"
    site.add("pa-dist", {SRT_PLATFORMS: {old: "pa:activate"}}, {}, version="1.0", kind="egg-info", path=behind)
    answer = tool("list", PYTHONPATH=f"{site.root}:{behind}")
    assert ("is hidden by" in answer.err) is warns


def test_pictures_stay_within_their_boxes_and_what_renderers_take(tool: Callable[..., Answer], site: Site) -> None:
    for index in range(30):
        install.platform(site, f"p{index}", "def activate():\n    raise OSError('플랫폼' * 900)\n")
    drawing = ET.fromstring(tool("resolve", "--runtime", "srt", "--format", "svg").out)
    texts = [node.text or "" for node in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert "activate failed: p0" in texts
    wide = [text for text in texts if "플랫폼" * 5 in text]
    assert len(wide) > 30
    assert all(
        text.count("플") + text.count("랫") + text.count("폼") <= 520 / 11 for text in wide
    )  # a wide letter is as broad as it is high
    assert len(tool("resolve", "--runtime", "srt", "--format", "mermaid").out) < 50_000


def test_somebody_at_a_terminal_is_told_what_is_waited_for(site: Site) -> None:
    install.platform(site, "pa", "import time\ndef activate(): time.sleep(60)\n")
    controller, terminal = os.openpty()
    argv = [sys.executable, "-m", "sglang_plug", "resolve", "--runtime", "srt", "--timeout", "2"]
    with subprocess.Popen(argv, env=site.env(), stdout=subprocess.PIPE, stderr=terminal, text=True) as process:
        os.close(terminal)
        out, _ = process.communicate(timeout=60)
    said = os.read(controller, 1 << 16).decode()
    os.close(controller)
    assert "… waiting for pa (pa:activate), 2 s at the most" in said
    assert "…" not in out
