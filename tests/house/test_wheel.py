"""The wheel holds what the commands need, and nothing that would shadow SGLang."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_data_travels(names: set[str]):
    for part in ("_data/templates/", "_data/completions/", "_data/rules/", "contract/data/"):
        assert any(name.startswith(f"sglang_plug/{part}") for name in names), part


def test_nothing_shadows_sglang(names: set[str]):
    roots = {name.split("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"sglang_plug"}


def test_types_and_licence_travel(names: set[str]):
    assert "sglang_plug/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
