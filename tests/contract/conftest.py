"""A small make-believe SGLang, built into a catalogue of its own."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from sglang_plug.contract.build import build
from sglang_plug.contract.catalogue import Release
from sglang_plug.contract.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Maker = Callable[..., Release]


@pytest.fixture
def release(tmp_path: Path) -> Maker:
    """Build one release from module texts and return it."""

    def make(version: str = "1.0", **modules: str) -> Release:
        root = tmp_path / f"src-{version}"
        for name, text in {"sglang": "", **{key.replace("__", "."): value for key, value in modules.items()}}.items():
            parts = name.split(".")
            package = any(other != key and other.startswith(f"{key}__") for key in [name.replace(".", "__")] for other in modules)
            path = root.joinpath(*parts, "__init__.py") if package or name == "sglang" else root.joinpath(*parts[:-1], f"{parts[-1]}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        file = tmp_path / f"{version}.zip"
        build([str(root)], file, release=version)
        return Release(version, Store(file), 0)

    return make
