"""The diffusion stand-in in this process and in processes of its own, on a model folder that the whole run shares."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug import standin
from sglang_plug.standin import finder
from tests.plugins.install import Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

if finder.elsewhere() is None:
    finder.install()
    before = os.environ.get("SGLANG_USE_CPU_ENGINE")
    os.environ["SGLANG_USE_CPU_ENGINE"] = "1"  # SRT's platform, which the import resolves, without probing hardware
    import sglang  # noqa: F401

    os.environ.pop("SGLANG_USE_CPU_ENGINE") if before is None else os.environ.update(SGLANG_USE_CPU_ENGINE=before)
else:
    pytest.skip("real SGLang is installed here", allow_module_level=True)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of generated models."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def model(cache: Path) -> Path:
    """The stand-in's own image model."""
    from sglang_plug.standin.diffusion_models import tiny_dit

    return tiny_dit(cache)


@pytest.fixture
def current(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """A function that makes an object this process's diffusion platform until the test ends."""
    from sglang.multimodal_gen.runtime import platforms

    def use(platform: Any) -> Any:
        monkeypatch.setattr(platforms, "_current_platform", platform)
        return platform

    return use


class World:
    """Runs programs with the stand-in and a fake installation on their path."""

    def __init__(self, site: Site, cache: Path, folder: Path) -> None:
        self.site, self.folder, self.cache = site, folder, cache

    def env(self, **variables: str) -> dict[str, str]:
        base = {"SGLANG_PLUG_CACHE": str(self.cache), "OMP_NUM_THREADS": "1", "SGLANG_USE_CPU_ENGINE": "1"}
        self.site.root.mkdir(parents=True, exist_ok=True)
        return standin.environment(self.site.env(**base) | variables)

    def start(self, *argv: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *argv],
            env=self.env(**variables),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def script(self, text: str, *argv: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = self.folder / "script.py"
        path.write_text(text, encoding="utf-8")
        with self.start(str(path), *argv, **variables) as process:
            out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def world(site: Site, cache: Path, tmp_path: Path, model: Path) -> World:
    """A place to run programs in; `model` is written, so that none of them has to."""
    return World(site, cache, tmp_path)


@pytest.fixture(scope="module")
def shared(cache: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A place that the tests of one module share."""
    folder = tmp_path_factory.mktemp("world")
    return World(Site(folder / "site"), cache, folder)
