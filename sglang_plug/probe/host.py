"""The host-order rehearsal, run by path in a fork of the probe's child. The work is in `inside/stage.py`; this file is its door."""

from __future__ import annotations

import importlib
from typing import Any

PACKAGE = "_sglang_plug_probe"


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Rehearse what the request names and return the facts."""
    stage = importlib.import_module(PACKAGE + ".stage")
    facts: dict[str, Any] = stage.Stage(request).play()
    return facts
