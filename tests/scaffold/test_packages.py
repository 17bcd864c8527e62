"""Generated packages are good packages: clean, built, installed both ways, found, and true to their own tests on the stand-in."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from sglang_plug.scaffold import hook, tree
from sglang_plug.scaffold.answers import MAX_NAME, judge_name
from tests.scaffold.environments import Environment, run
from tests.scaffold.making import FORMS, make
from tests.scaffold.test_snapshots import HOOKS

TOOLS = Path(sys.executable).parent


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


def lint(folder: Path, cache: Path) -> None:
    run([str(TOOLS / "ruff"), "check", "--no-cache", "."], cwd=folder)
    run([str(TOOLS / "ruff"), "format", "--no-cache", "--check", "."], cwd=folder)
    run([str(TOOLS / "mypy"), "--cache-dir", str(cache)], cwd=folder)


@pytest.mark.parametrize("form", FORMS)
def test_platforms_are_clean(tmp_path: Path, cache: Path, form: str) -> None:
    lint(make(tmp_path, **FORMS[form]), cache)


@pytest.mark.parametrize("form", HOOKS)
def test_hooks_are_clean(tmp_path: Path, cache: Path, form: str) -> None:
    target, kind = HOOKS[form]
    tree.write(hook.package(hook.judge_target(target, kind, None, "0.5.23"), judge_name("my-hook")), tmp_path / "x")
    lint(tmp_path / "x", cache)


@pytest.mark.parametrize("form", FORMS)
def test_a_name_of_the_greatest_length_is_clean_too(tmp_path: Path, form: str) -> None:
    folder = make(tmp_path, "a-" + "b" * (MAX_NAME - 2), **FORMS[form])
    run([str(TOOLS / "ruff"), "check", "--no-cache", "."], cwd=folder)
    run([str(TOOLS / "ruff"), "format", "--no-cache", "--check", "--diff", "."], cwd=folder)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package for both runtimes."""
    return make(tmp_path_factory.mktemp("both"), diffusion=True)


@pytest.fixture(scope="module")
def built(both: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with its sdist, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(both)])
    return out


def test_wheel_and_sdist_hold_everything(both: Path, built: Path) -> None:
    modules = {f"my_chip/{path.name}" for path in (both / "my_chip").iterdir() if path.is_file()}
    wheel = next(built.glob("*.whl"))
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == modules
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert modules | {"pyproject.toml", "README.md"} <= inside


def environment(folder: Path, *what: str) -> Environment:
    made = Environment.make(folder / "v")
    made.install(*what)
    return made


@pytest.fixture(scope="module")
def from_wheel(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the package's wheel in it."""
    return environment(tmp_path_factory.mktemp("wheel"), str(next(built.glob("*.whl"))))


@pytest.fixture(scope="module")
def editable(both: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the package in it as it lies there."""
    return environment(tmp_path_factory.mktemp("editable"), "--editable", str(both))


@pytest.fixture(params=["from_wheel", "editable"])
def installed(request: pytest.FixtureRequest) -> Environment:
    """Installed one way, then the other."""
    found: Environment = request.getfixturevalue(request.param)
    return found


def test_it_is_found_from_the_folder_that_holds_the_project(installed: Environment, tmp_path: Path) -> None:
    """There, a folder of the package's own name is first on the path."""
    (tmp_path / "my_chip").mkdir()
    done = installed.run("-c", "import my_chip; print(my_chip.activate(), my_chip.activate_diffusion())", cwd=tmp_path)
    assert done.stdout.split() == ["my_chip.platform:MyChipPlatform", "my_chip.diffusion_platform:MyChipDiffusionPlatform"], done.stderr


def test_activation_imports_nothing_heavy(installed: Environment) -> None:
    code = "import sys, my_chip as p; p.activate(); p.activate_diffusion(); print({'torch', 'sglang', 'numpy'} & sys.modules.keys())"
    assert installed.run("-c", code).stdout.strip() == "set()"


def test_its_own_tests_pass_on_the_standin(from_wheel: Environment, both: Path) -> None:
    done = from_wheel.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", cwd=both)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_doctor_and_check_find_nothing(from_wheel: Environment, both: Path) -> None:
    doctor = from_wheel.tool("doctor", cwd=both.parent)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    check = from_wheel.tool("check", str(both), "--sglang", ">=0.5.21")
    assert check.returncode == 0, check.stdout + check.stderr


def test_both_runtimes_choose_it(from_wheel: Environment, tmp_path: Path) -> None:
    import json

    done = from_wheel.tool("resolve", "--format", "json", cwd=tmp_path)
    runtimes = json.loads(done.stdout)["runtimes"]
    assert {name: (found["outcome"], found["name"], found["dist"]) for name, found in runtimes.items()} == {
        "srt": ("plugin", "my_chip", "my-chip"),
        "diffusion": ("plugin", "my_chip", "my-chip"),
    }


MLU = """
import types
import torch

torch.utils.rename_privateuse1_backend("mlu")
_memory = {"used": 0}
module = types.SimpleNamespace(
    is_available=lambda: True, current_device=lambda: 0, device_count=lambda: 1, set_device=lambda index: None, synchronize=lambda: None,
    empty_cache=lambda: None, get_device_name=lambda index=0: "MLU test", mem_get_info=lambda index=0: (3 << 30, 4 << 30),
    max_memory_allocated=lambda index=0: 1 << 20, _is_in_bad_fork=lambda: False,
)
torch._register_device_module("mlu", module)
"""


def test_a_device_type_of_its_own_passes_where_its_torch_extension_is(tmp_path: Path) -> None:
    """In an editable install. A torch extension without kernels stands for the vendor's: enough for the contract, which runs no model."""
    folder = make(tmp_path, **FORMS["both-mlu"])
    here = environment(tmp_path, "--editable", str(folder))
    (tmp_path / "extension").mkdir()
    absent = here.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", "-k", "total_memory_is_bytes or callback_loads", cwd=folder)
    assert absent.returncode == 0, absent.stdout
    assert "the hardware is absent" in absent.stdout
    (tmp_path / "extension" / "torch_mlu.py").write_text(MLU)
    present = here.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", cwd=folder, PYTHONPATH=str(tmp_path / "extension"))
    assert present.returncode == 0, present.stdout
    assert "the hardware is absent" not in present.stdout
    assert int(present.stdout.splitlines()[-1].split(" passed")[0].split()[-1]) > 100


def test_the_tests_fail_when_the_platform_is_wrong(tmp_path: Path) -> None:
    """One wrong answer, one failing test, with what SGLang does about it."""
    folder = make(tmp_path)
    hardware = folder / "my_chip" / "hardware.py"
    hardware.write_text(hardware.read_text().replace('os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # VENDOR', "16"))
    done = environment(tmp_path, "--editable", str(folder)).run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "total_memory_is_bytes", cwd=folder
    )
    assert done.returncode == 1
    assert "get_device_total_memory() is 16, which cannot be bytes (MiB or GiB?)" in done.stdout
    assert "SGLang: sizes the KV cache by bytes" in done.stdout


def test_python_3_10_can_read_it(both: Path) -> None:
    """SGLang runs on 3.10 too: no syntax of later versions."""
    import ast

    for path in both.rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 10))


def test_the_workflow_is_yaml_with_the_steps(both: Path) -> None:
    text = (both / ".github/workflows/ci.yml").read_text()
    import yaml

    steps = yaml.safe_load(text)["jobs"]["test"]["steps"]
    commands = [step["run"] for step in steps if "run" in step]
    assert {'sglang-plug check . --sglang ">=0.5.23"', "sglang-plug doctor", "pytest"} <= set(commands)
