"""Small plugins as text, checked for real against the shipped catalogue."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from sglang_plug.checks.source.run import CheckReport, check

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sglang_plug.checks.model import Finding

NEWEST = "0.5.23"


class Plugins:
    """Lays out plugins and checks them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def lay(self, files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return self.root

    def report(self, files: dict[str, str] | str, *releases: str, **options: tuple[str, ...]) -> CheckReport:
        """Check files (or one module's text) against releases."""
        self.lay({"plug/mod.py": files, "plug/__init__.py": ""} if isinstance(files, str) else files)
        return check(self.root, releases or (NEWEST,), **options)

    def findings(self, files: dict[str, str] | str, *releases: str) -> list[Finding]:
        return [finding for finding in self.report(files, *releases).findings if finding.code != "SP803"]

    def codes(self, files: dict[str, str] | str, *releases: str) -> list[str]:
        return [finding.code for finding in self.findings(files, *releases)]


@pytest.fixture
def plugins(tmp_path: Path) -> Plugins:
    return Plugins(tmp_path / "project")


@pytest.fixture
def codes(plugins: Plugins) -> Callable[..., list[str]]:
    return plugins.codes


@pytest.fixture
def findings(plugins: Plugins) -> Callable[..., list[Finding]]:
    return plugins.findings
