from __future__ import annotations

import io
import os
import socket
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sglang_plug.launch.arguments import EngineArguments
from sglang_plug.launch.plan import Plan
from sglang_plug.probe.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SMALL_ENGINE = Path(__file__).with_name("small_engine.py")


@dataclass
class Ledger:
    """An audience that remembers; `when` runs something as soon as an event comes."""

    events: list[tuple[str, str]] = field(default_factory=list)
    when: dict[str, Callable[[], None]] = field(default_factory=dict)

    def _note(self, kind: str, what: str) -> None:
        self.events.append((kind, what))
        self.when.get(kind, lambda: None)()

    def reached(self, milestone: str, seconds: float) -> None:
        self._note("reached", milestone)

    def still_waiting(self, phase: str, seconds: float, line: str) -> None:
        self._note("still_waiting", phase)

    def ready(self, url: str, seconds: float, shown: str) -> None:
        self._note("ready", f"{url} {shown}")

    def not_answering(self, why: str) -> None:
        self._note("not_answering", why)

    def warned(self, what: str) -> None:
        self._note("warned", what)

    def lost(self, process: object) -> None:
        self._note("lost", process.title)  # type: ignore[attr-defined]

    def stopping(self, reason: str) -> None:
        self._note("stopping", reason)

    def killed(self, processes: Sequence[object]) -> None:
        self._note("killed", str(len(processes)))

    def said(self, kind: str) -> list[str]:
        return [what for name, what in self.events if name == kind]


@pytest.fixture(autouse=True)
def _nothing_stays_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


@pytest.fixture
def streams() -> tuple[io.BytesIO, io.BytesIO]:
    return io.BytesIO(), io.BytesIO()


@pytest.fixture
def small(port: int, tmp_path: Path) -> Callable[..., Plan]:
    """Return a maker of plans that start the small engine with more arguments."""

    def make(*more: str) -> Plan:
        tokens = ("--port", str(port), *more)
        environment = Environment(sys.executable, dict(os.environ), str(tmp_path))
        return Plan("sglang", "0.5.23", "srt", environment, (sys.executable, "-S", str(SMALL_ENGINE), *tokens), {}, EngineArguments(tokens))

    return make
