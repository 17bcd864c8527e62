"""Both runtimes recorded in one process, as real SGLang has them: diffusion's registry inherits from SRT's."""

from __future__ import annotations

import logging
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sglang_plug.launch.recorder import record
from sglang_plug.launch.recorder.failures import Ear

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def registries() -> tuple[Any, Any]:
    def apply_hooks(cls: Any) -> None:
        cls.applied.append(cls.__name__)
        cls._patched.update(cls._hooks)

    srt = type("Srt", (), {"applied": [], "_hooks": {}, "_patched": set(), "apply_hooks": classmethod(apply_hooks)})
    return srt, type("Diffusion", (srt,), {"_hooks": {}, "_patched": set()})


def test_each_registry_applies_its_own_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    srt, diffusion = registries()
    names = {"srt": "recorded_srt", "diffusion": "recorded_diffusion"}
    for runtime, registry in (("srt", srt), ("diffusion", diffusion)):
        module = ModuleType(names[runtime])
        module.HookRegistry = registry  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, names[runtime], module)
    monkeypatch.setattr(record, "REGISTRIES", names)
    monkeypatch.setattr(record, "standin_registry", lambda runtime: None)
    watched = {runtime: record.Record(runtime, str(tmp_path), Ear(), counting=False) for runtime in names}
    for one in watched.values():
        one.stand_before_application()
    diffusion._hooks["some.target"] = []
    diffusion.apply_hooks()
    assert srt.applied == ["Diffusion"]
    assert diffusion._patched == {"some.target"}
    assert srt._patched == set()
    assert [path.name.rpartition("-")[2].partition(".")[0] for path in tmp_path.glob("*.json")] == ["diffusion"]
    srt.apply_hooks()
    assert srt.applied == ["Diffusion", "Srt"]


def test_an_error_that_nobody_else_hears_stays_on_stderr(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    logger = logging.getLogger("recorded.loader")
    monkeypatch.setattr(logger, "propagate", False)
    monkeypatch.setattr(logger, "handlers", [Ear()])
    logger.error("no module for %s", "some.target")
    assert "no module for some.target" in capsys.readouterr().err
    heard: list[logging.LogRecord] = []
    other = logging.Handler()
    other.emit = heard.append  # type: ignore[method-assign]
    logger.addHandler(other)
    logger.error("again")
    assert capsys.readouterr().err == ""
    assert len(heard) == 1
