"""Fake installed distributions: real `*.dist-info` folders on `sys.path`, seen by this process and by its children."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class FakeInstalls:
    """One folder of fake distributions, first on `sys.path` and PYTHONPATH.

    Whoever makes one puts the plugin world back: see `world.restored`.

    Args:
        root: where to put them.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        sys.path.insert(0, str(root))
        others = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = f"{root}{os.pathsep}{others}" if others else str(root)

    def __call__(
        self,
        name: str,
        entry_points: Mapping[str, Mapping[str, str]] | None = None,
        files: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
    ) -> Path:
        """Install a distribution and return its metadata folder.

        Args:
            name: the distribution's name.
            entry_points: group to name to `module:attribute`.
            files: path below the folder to text, dedented.
            version: the distribution's version.
        """
        for path, text in (files or {}).items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(textwrap.dedent(text), encoding="utf-8")
        info = self.root / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
        groups = (
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in names.items()) for group, names in (entry_points or {}).items()
        )
        (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
        importlib.invalidate_caches()
        return info
