"""The shipped catalogue against facts that were measured on the releases, and the catalogue's own promises."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from sglang_plug.contract import catalogue
from sglang_plug.contract.build import build, build_into
from sglang_plug.contract.store import Store
from sglang_plug.errors import CatalogueError

if TYPE_CHECKING:
    from pathlib import Path

SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"


def test_every_release_of_the_plugin_system_is_known():
    known = set(catalogue.releases())
    assert {f"0.5.{minor}" for minor in range(11, 24)} <= known


def test_it_fits_in_the_wheel():
    assert catalogue.SHIPPED.stat().st_size < 4_000_000


# Read off the wheels; None: not there.
HISTORY = {
    f"{SCHEDULER}.run_batch": {"0.5.11": "method", "0.5.17": "method", "0.5.23": "method"},
    f"{SCHEDULER}.schedule": {"0.5.11": None, "0.5.23": None},
    "sglang.srt.server_args.ServerArgs.add_cli_args": {"0.5.11": "staticmethod", "0.5.19": "staticmethod", "0.5.23": "staticmethod"},
    "sglang.srt.server_args.ServerArgs.from_cli_args": {"0.5.11": "classmethod", "0.5.23": "classmethod"},
    "sglang.srt.server_args.ServerArgs.resolve_once": {"0.5.11": None, "0.5.18": None, "0.5.19": "method", "0.5.23": "method"},
    "sglang.srt.distributed.get_pp_group": {"0.5.20": "function", "0.5.21": None, "0.5.22": None, "0.5.23": None},
    "sglang.srt.distributed.parallel_state.get_pp_group": {"0.5.11": "function", "0.5.23": "function"},
    "sglang.srt.layers.utils.multi_platform.MultiPlatformOp.dispatch_forward": {"0.5.17": "method", "0.5.22": "method", "0.5.23": None},
    "sglang.srt.platforms.current_platform": {"0.5.11": "attribute", "0.5.23": "attribute"},
    "sglang.srt.entrypoints.engine.Engine.async_generate": {"0.5.11": "async method", "0.5.23": "async method"},
    "sglang.multimodal_gen.runtime.platforms.plugins.HookRegistry": {"0.5.20": None, "0.5.21": "class"},
    "sglang.srt.platforms.interface.PlatformCapabilities": {"0.5.21": None, "0.5.22": "class"},
}


@pytest.mark.parametrize("name", HISTORY)
def test_history(name):
    found = {version: (symbol.label if (symbol := catalogue.load(version).find(name)) else None) for version in HISTORY[name]}
    assert found == HISTORY[name]


def test_a_signature_that_grew():
    target = "sglang.srt.distributed.parallel_state.GroupCoordinator.all_gatherv"
    old, new = catalogue.load("0.5.14").find(target), catalogue.load("0.5.23").find(target)
    assert [p.name for p in old.parameters] == ["self", "input_", "sizes"]
    assert [p.name for p in new.parameters] == ["self", "input_", "sizes", "output"]


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("0.5.11", [""]),
        ("0.5.13", ["cuda", "rocm", ""]),
        ("0.5.14", ["cpu", "cuda", "rocm", ""]),
        ("0.5.17", ["cpu", "cuda", "rocm", "xpu", ""]),
        ("0.5.20", ["cpu", "cuda", "npu", "rocm", "xpu", ""]),
        ("0.5.22", ["cpu", "cuda", "npu", "rocm", "xpu", "musa", "mps", ""]),
        ("0.5.23", ["cpu", "sail", "cuda", "npu", "rocm", "xpu", "musa", "mps", ""]),
    ],
)
def test_the_srt_chain(version, names):
    assert [name for name, _ in catalogue.load(version).platform_contract("srt").chain] == names


@pytest.mark.parametrize("version", ["0.5.11", "0.5.20", "0.5.23"])
def test_the_diffusion_chain(version):
    chain = catalogue.load(version).platform_contract("diffusion").chain
    assert [name for name, _ in chain] == ["mps", "xpu", "rocm", "cuda", "npu", "musa", "cpu"]


def test_the_policies_agree_with_the_source():
    from sglang_plug.core.policy import policy

    for version in catalogue.releases():
        for runtime in ("srt", "diffusion"):
            told = [entry.name for entry in policy(runtime, version).builtins]
            read = [name for name, _ in catalogue.load(version).platform_contract(runtime).chain if name]
            assert told == read, (runtime, version)


# [documented status, how often the core uses it], measured on 0.5.23
USES = {
    "get_device": ("Planned", 3),
    "synchronize": ("Planned", 50),
    "empty_cache": ("Planned", 27),
    "get_device_uuid": ("Planned", 10),
    "get_communicator_class": ("Planned", 0),
    "seed_everything": ("Planned", 0),
    "is_pin_memory_available": ("Active", None),
    "apply_server_args_defaults": (None, 1),
    "init_backend": (None, 1),
}


@pytest.mark.parametrize("name", USES)
def test_what_is_documented_and_what_is_called(name):
    member = catalogue.load("0.5.23").platform_contract("srt").members[name]
    status, uses = USES[name]
    assert member.documented == status
    assert uses is None or member.uses == uses


def test_capabilities_and_plugins_came_later():
    assert catalogue.load("0.5.21").platform_contract("srt").capabilities == ()
    assert "graph_capture" in catalogue.load("0.5.22").platform_contract("srt").capabilities
    assert not catalogue.load("0.5.20").platform_contract("diffusion").accepts_plugins
    assert catalogue.load("0.5.21").platform_contract("diffusion").accepts_plugins


@pytest.mark.parametrize(
    ("role", "before", "since"),
    [
        ("detokenizer", "no", "yes"),
        ("data-parallel controller", "no", "yes"),
        ("Ray scheduler actor", "no", "no"),
        ("scheduler (one a rank)", "yes", "yes"),
    ],
)
def test_processes(role, before, since):
    told = [{p.role: p.plugins for p in catalogue.load(version).processes("srt")}[role] for version in ("0.5.21", "0.5.22")]
    assert told == [before, since]


def test_variables_are_known():
    known = catalogue.load("0.5.23").environment
    assert {"SGLANG_PLATFORM", "SGLANG_PLUGINS", "SGLANG_USE_CPU_ENGINE"} <= known
    assert "SGLANG_DIFFUSION_PLATFORM_OVERRIDE" in known
    assert "SGLANG_DIFFUSION_PLATFORM_OVERRIDE" not in catalogue.load("0.5.12").environment


@pytest.mark.parametrize(
    ("specifier", "first", "last"),
    [(">=0.5.17", "0.5.17", "0.5.23"), ("0.5.21", "0.5.21", "0.5.21"), ("<0.5.12", "0.5.11", "0.5.11"), ("~=0.5.22", "0.5.22", "0.5.23")],
)
def test_specifiers(specifier, first, last):
    found = catalogue.matching(specifier)
    assert (found[0], found[-1]) == (first, last)


@pytest.mark.parametrize("specifier", ["", ">=9", "soon", "==x"])
def test_specifiers_that_say_nothing(specifier):
    with pytest.raises(CatalogueError):
        catalogue.matching(specifier)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("0.5.23", "0.5.23"),
        ("0.5.23+cu130", "0.5.23"),
        ("0.5.23.dev252+g1", "0.5.23"),
        ("0.5.13.post9", "0.5.13.post1"),
        ("0.6.0", "0.5.23"),
    ],
)
def test_the_release_that_speaks_for_a_version(version, release):
    assert catalogue.nearest(version) == release


@pytest.mark.parametrize("version", ["0.5.10", "main"])
def test_versions_that_nobody_speaks_for(version):
    with pytest.raises(CatalogueError):
        catalogue.nearest(version)


def test_an_unknown_release_is_refused_with_the_command_to_add_it():
    with pytest.raises(CatalogueError) as caught:
        catalogue.load("0.5.99")
    assert caught.value.hint == "add it with `sglang-plug contract build 0.5.99`"


def tree(root: Path, version: str, body: str = "def f(a): ...\n") -> Path:
    (root / "sglang").mkdir(parents=True)
    (root / "sglang/__init__.py").write_text("")
    (root / "sglang/_version.py").write_text(f"__version__ = version = '{version}'\n")
    (root / "sglang/m.py").write_text(body)
    return root


def test_a_users_release_is_found_after_a_build(tmp_path, monkeypatch):
    monkeypatch.setenv("SGLANG_PLUG_CACHE", str(tmp_path / "cache"))
    catalogue.forget()
    build_into(catalogue.cache_folder(), str(tree(tmp_path / "src", "0.9.1")))
    catalogue.forget()
    assert catalogue.newest() == "0.9.1"
    assert catalogue.load("0.9.1").find("sglang.m.f").signature == "(a)"
    assert catalogue.load("0.5.23").find("sglang.m.f") is None
    catalogue.forget()


def test_a_build_is_reproducible_and_keeps_releases_apart(tmp_path):
    sources = [str(tree(tmp_path / "b", "2.0", "def f(a, b): ...\n")), str(tree(tmp_path / "a", "1.0"))]
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    assert build(sources, one) == ("1.0", "2.0")
    build(reversed(sources), other)
    assert one.read_bytes() == other.read_bytes()
    rows = {row.mask: row.text for row in Store(one).rows("sglang.m") if row.name == "f"}
    assert rows == {1: "(a)", 2: "(a, b)"}


def test_wheels_are_sources(tmp_path):
    wheel = tmp_path / "sglang-3.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("sglang/__init__.py", "def f(): ...\n")
        archive.writestr("sglang/fast.cpython-311-x86_64-linux-gnu.so", b"")
        archive.writestr("sglang-3.0.dist-info/METADATA", "Name: sglang\nVersion: 3.0\n")
    assert build([str(wheel)], tmp_path / "c.zip") == ("3.0",)
    from sglang_plug.contract.catalogue import Release

    found = Release("3.0", Store(tmp_path / "c.zip"), 0)
    assert found.find("sglang.f") is not None
    assert found.find("sglang.fast.anything").kind == "unknown"


@pytest.mark.parametrize("what", ["nope", "./nope", "empty"])
def test_sources_that_are_none(tmp_path, what):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CatalogueError):
        build([str(tmp_path / "empty") if what == "empty" else what], tmp_path / "c.zip")
    assert not (tmp_path / "c.zip").exists()


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + b"\0" * 18])
def test_a_damaged_file_is_named(tmp_path, content):
    file = tmp_path / "bad.zip"
    file.write_bytes(content)
    with pytest.raises(CatalogueError) as caught:
        _ = Store(file).releases
    assert caught.value.subject == str(file)


def test_reading_the_catalogue_imports_no_builder():
    code = (
        "import sys\nfrom sglang_plug.contract import catalogue\n"
        "assert catalogue.load('0.5.23').find('sglang.srt.managers.scheduler.Scheduler')\n"
        "print(sorted({'griffe', 'torch', 'sglang', 'rich', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_members_history_groups_releases_that_say_the_same(capsys):
    from sglang_plug.cli.app import run

    assert run(["contract", "show", "--method", "get_device", "--runtime", "srt"]) == 0
    heads = [line.split(":")[0] for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert heads == ["0.5.11 to 0.5.12.post1 srt", "0.5.13 to 0.5.16 srt", "0.5.17 to 0.5.21 srt", "0.5.22 to 0.5.23 srt"]


def test_everything_that_can_be_hooked_is_counted_once():
    from sglang_plug.contract.targets import targets

    found, total = targets(catalogue.load("0.5.23"), "*", limit=3)
    assert len(found) == 3
    assert total > 60_000


def test_many_missing_names_are_answered_as_few_are():
    release = catalogue.load("0.5.23")
    again = [release.near("sglang.srt.layers.attention.fla.chunk", limit=2) for _ in range(12)]  # searched first, then from the index
    assert set(again) == {("sglang.kernels.ops.attention.fla.chunk",)}


def test_a_source_that_is_none_is_said_and_nothing_is_written(tmp_path, monkeypatch, capsys):
    import zipfile

    from sglang_plug.cli.app import run

    monkeypatch.setenv("SGLANG_PLUG_CACHE", str(tmp_path / "cache"))
    other, damaged = tmp_path / "other-1.0-py3-none-any.whl", tmp_path / "sglang-0.5.30-py3-none-any.whl"
    for path, name in ((other, "other/__init__.py"), (damaged, "sglang/__init__.py")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, "VALUE = 1\n" * 50, zipfile.ZIP_DEFLATED)
            archive.writestr("a.dist-info/METADATA", "Name: sglang\nVersion: 0.5.30\n")
    raw = bytearray(damaged.read_bytes())
    raw[50:56] = b"\xff" * 6
    damaged.write_bytes(raw)
    for source, words in ((other, "own distribution"), (damaged, "download it again"), (tmp_path, "holds `sglang/`")):
        assert run(["contract", "build", str(source)]) == 1
        assert words in capsys.readouterr().err
    assert run(["contract", "build", str(other), "--output", str(tmp_path)]) == 2
    assert not (tmp_path / "cache").exists()


MANAGERS = "sglang.srt.managers"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (f"{MANAGERS}.tokenizer_manager.TokenizerManager.flush_cache", ["tokenizer_manager.TokenizerManager.flush_cache"]),  # inherited
        (f"{MANAGERS}.tokenizer_manager.TokenizerManager.flush_c*", ["tokenizer_manager.TokenizerManager.flush_cache"]),
        (f"{MANAGERS}.schedule_batch.Modality*", ["schedule_batch.Modality"]),  # imported
        (f"{MANAGERS}.scheduler.logger", []),
        (f"{MANAGERS}.scheduler.time", []),
        (f"{MANAGERS}.*.flush_cachet", []),
    ],
)
def test_targets_that_are_defined_elsewhere_are_found(pattern, names):
    from sglang_plug.contract.targets import targets

    assert [target.name.removeprefix(f"{MANAGERS}.") for target in targets(catalogue.load("0.5.23"), pattern)[0]] == names


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        (f"{MANAGERS}.scheduler.logger", True),  # logging.getLogger(…)
        ("sglang.multimodal_gen.runtime.managers.gpu_worker.logger", True),  # what SGLang's own function says it returns
        ("sglang.srt.environ.Envs.SGLANG_USE_MODELSCOPE", True),  # an object of a class that cannot be called
        (f"{MANAGERS}.scheduler.Scheduler.run_batch", False),
        (f"{MANAGERS}.scheduler.Scheduler", False),
        ("sglang.srt.utils.common.is_cuda", False),
        ("sglang.srt.layers.quantization.fp8.is_layer_skipped", False),
    ],
)
def test_what_is_certainly_no_function(name, constant):
    from sglang_plug.contract.constants import is_constant

    release = catalogue.load("0.5.23")
    symbol = release.find(name)
    assert symbol is not None
    assert is_constant(release, symbol) is constant
