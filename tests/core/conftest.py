"""The registries of both runtimes under one bench."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglang_plug.core import policy
from sglang_plug.core.hooks import HookType, current_source
from sglang_plug.core.runtime import Runtime
from tests.core.registry_cases import Bench, collected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=["srt", "diffusion"])
def runtime(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    """A fresh runtime under the document's rules, one of each kind; its patches are taken back."""
    made = Runtime(policy.policy(request.param))
    yield made
    made.hooks.revert()


@pytest.fixture
def bench(runtime: Runtime, tmp_path: Path) -> Iterator[Bench]:
    """A bench around the runtime's registry."""
    hooks = runtime.hooks
    made = Bench(hooks, HookType.__members__, hooks.decorator, current_source, tmp_path)
    with collected(made):
        yield made
