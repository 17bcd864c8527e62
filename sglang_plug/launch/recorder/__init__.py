"""A hook plugin that watches the other hooks of its process: registered, applied or failed, how often each fires, and at what cost.

The folder is copied into a temporary distribution for one launch (`distribution.py`) and runs inside the engine's processes: standard
library and Python 3.10 only, nothing of sglang-plug. It looks at the registries' public faces and listens to the loaders' log, and changes
no hook's behaviour. A full disk ends the recording, never the engine.
"""

from __future__ import annotations

import logging
import os

from . import host
from .failures import LOGGERS, Ear
from .record import Record

FOLDER = "SGLANG_PLUG_RECORD"
COUNTING = "SGLANG_PLUG_RECORD_COUNTS"
PROMISED = host.PROMISED

ear = Ear()
for _name in LOGGERS if os.environ.get(FOLDER) else ():
    logging.getLogger(_name).addHandler(ear)

_records: dict[str, Record] = {}


def srt() -> None:
    """Entry point of `sglang.srt.plugins`."""
    _watch("srt")


def diffusion() -> None:
    """Entry point of `sglang.multimodal_gen.plugins`."""
    _watch("diffusion")


def _watch(runtime: str) -> None:
    folder = os.environ.get(FOLDER)
    if folder and runtime not in _records:
        record = _records[runtime] = Record(runtime, folder, ear, counting=os.environ.get(COUNTING) == "1")
        record.stand_before_application()
