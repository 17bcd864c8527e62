"""One run of doctor for many plugins: a gallery is installed once and examined once."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from sglang_plug.checks.doctor import Report, examine
from sglang_plug.checks.rehearsal import Limits
from sglang_plug.probe.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sglang_plug.checks.model import Finding
    from tests.plugins.install import Site


def run(
    site: Site, cwd: Path, names: tuple[str, ...] = (), *, limits: Limits | None = None, env: Mapping[str, str] | None = None, **more
) -> Report:
    """Examine a fake installation with this interpreter."""
    import sys

    cwd.mkdir(parents=True, exist_ok=True)
    return examine(
        Environment(sys.executable, site.env(**(env or {})), str(cwd), "script"), names, limits=limits or Limits(timeout=10), **more
    )


def by_name(report: Report) -> dict[str, list[Finding]]:
    """Return the findings by entry point, those of targets included."""
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        found[finding.subject.get("name", "")].append(finding)
    return found


@pytest.fixture
def doctor(site: Site, tmp_path: Path):
    """Return a function that examines `site`."""

    def examine_site(*names: str, **more) -> Report:
        return run(site, tmp_path / "cwd", names, **more)

    return examine_site
