"""Scaffolded packages on real SGLang: their own conformance tests, requests served, an image made. Template form × release."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.server import SMALL, serving
from tests.scaffold.environments import ROOT, Environment, run
from tests.scaffold.making import FORMS, make

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]

BORROWED = (
    "pytest",
    "_pytest",
    "py.py",
    "pluggy",
    "iniconfig",
    "pygments",
    "packaging",
)  # what the engine's environment lacks to run tests
PROMPT = "hello world"
# What is started on each release: a package for the newest, and one for another release.
SERVED = [
    ("0.5.23", "srt"),
    ("0.5.23", "srt-0.5.17"),
    ("0.5.22", "srt"),
    ("0.5.22", "both-0.5.22"),
    ("0.5.21", "srt"),
    ("0.5.21", "both-0.5.21"),
]
DRAWN = [("0.5.23", "diffusion"), ("0.5.22", "both-0.5.22"), ("0.5.21", "diffusion"), ("0.5.21", "both-0.5.21")]
NO_HARDWARE = ("both-mlu", "both-cuda-plain")
WAYS = ("wheel", "editable", "sdist")
FIRST = {form: ">=0.5.21" if options.get("diffusion") else ">=0.5.17" for form, options in FORMS.items()}  # the releases it is for


ENGINES = {"0.5.23": "real_sglang", "0.5.22": "real_sglang_0522", "0.5.21": "real_sglang_0521"}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Path:
    """The python of an environment with the release."""
    found: Path = request.getfixturevalue(ENGINES[request.param])
    return found


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that brings pytest, and nothing else of this environment."""
    folder = tmp_path_factory.mktemp("runner")
    for name in BORROWED:
        (folder / name).symlink_to(Path(sysconfig.get_path("purelib")) / name)
    return folder


@pytest.fixture(scope="module")
def model() -> str:
    from sglang_plug.standin.models import tiny_llama

    return str(tiny_llama())


def install(folder: Path, form: str) -> tuple[Path, Path]:
    """Make the package, install its wheel into a folder, and return the project and that folder."""
    project = make(folder, **FORMS[form])
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "--target", folder / "site", project], check=True, capture_output=True)
    return project, folder / "site"


def way_of(form: str, engine: Path) -> str:
    """How a form is installed on an engine: over the releases, each form is installed in each way."""
    release = next((number for number, name in enumerate(ENGINES) if name in str(engine)), 0)
    return WAYS[(list(FORMS).index(form) + release) % len(WAYS)]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_clean_and_its_own_tests_pass(engine: Path, runner: Path, tmp_path: Path, form: str) -> None:
    """In an environment of its own, on top of the engine's libraries."""
    project = make(tmp_path, **FORMS[form])
    here = Environment.make(tmp_path / "v", runner, libraries(engine))
    here.install_built(project, way_of(form, engine))
    done = here.run("-m", "pytest", "-q", "-p", "sglang_plug.testing.plugin", "-p", "no:cacheprovider", "-rs", cwd=project)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert ("the hardware is absent" in done.stdout) == (form in NO_HARDWARE)
    doctor = run([sys.executable, "-m", "sglang_plug", "doctor", "--python", here.python], cwd=tmp_path, check=False)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    checked = run([sys.executable, "-m", "sglang_plug", "check", str(project), "--sglang", FIRST[form]], check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def libraries(engine: Path) -> Path:
    """The folder of the engine's libraries."""
    return engine.parent.parent / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def test_the_fixtures_do_there_what_they_do_on_the_standin(engine: Path, runner: Path, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, runner)))}
    command = [engine, "-m", "pytest", "-q", "-c", tmp_path / "pytest.ini", "--rootdir", ROOT, "-p", "sglang_plug.testing.plugin"]
    command += [
        "-p",
        "no:cacheprovider",
        "--noconftest",
        "tests/testing/test_fixtures.py",
        "-k",
        "not standin and not inert and not setting",
    ]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


@pytest.mark.parametrize(("engine", "form"), SERVED, indirect=["engine"])
def test_it_serves_the_tokens_that_transformers_does(engine: Path, tmp_path: Path, model: str, form: str) -> None:
    _, site = install(tmp_path, form)
    arguments = ("--python", str(engine), "--platform", "my_chip", "--model-path", model, *SMALL, "--sleep-on-idle")
    with serving(*arguments, env={"PYTHONPATH": str(site)}) as server:
        server.wait_ready(300)
        body = {"text": PROMPT, "sampling_params": {"max_new_tokens": 8, "temperature": 0}}
        request = urllib.request.Request(f"{server.url}/generate", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            tokens = json.load(answer)["output_ids"]
        assert "my_chip: scheduler ready in process" in server.log
    assert tokens == greedy(model, 8)


def greedy(model: str, count: int) -> list[int]:
    """What transformers generates from the same weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    inputs = tokenizer(PROMPT, return_tensors="pt")
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    made = network.generate(**inputs, max_new_tokens=count, do_sample=False)
    return [int(token) for token in made[0][inputs["input_ids"].shape[1] :]]


@pytest.mark.parametrize(("engine", "form"), DRAWN, indirect=["engine"])
def test_it_makes_an_image(engine: Path, tmp_path: Path, form: str) -> None:
    _, site = install(tmp_path, form)
    subprocess.run([engine, ROOT / "tests" / "sglang" / "tiny_sd3.py", tmp_path / "sd3"], check=True, capture_output=True, timeout=300)
    command = [Path(engine).parent / "sglang", "generate", "--model-path", tmp_path / "sd3", "--model-id", "stable-diffusion-3-medium"]
    command += ["--prompt", "a red cube", "--num-inference-steps", "2", "--height", "64", "--width", "64", "--seed", "1"]
    env = {**os.environ, "PYTHONPATH": str(site), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*command, "--save-output", "--output-path", tmp_path / "out"], env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    assert "my_chip: worker ready in process" in done.stdout + done.stderr
    picture = next((tmp_path / "out").glob("*.png"))
    assert picture.read_bytes().startswith(b"\x89PNG")
