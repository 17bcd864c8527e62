"""Is a folder a whole model? Reads names and headers on the local disk, never weights."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".npz")


def broken_model(folder: Path, *, weights: bool = True) -> str | None:
    """Return what a model folder lacks; None where it looks whole. Reads headers only."""
    index = folder / "model_index.json"
    config = index if index.exists() else folder / "config.json"
    if not config.exists():
        return (
            None
            if list(folder.glob("*.gguf")) or (folder / "params.json").exists()
            else "neither config.json nor model_index.json is there"
        )
    try:
        json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        return f"{config.name} cannot be read: {exc}"
    if config is index or not weights:
        return None
    files = [path for path in folder.iterdir() if path.suffix in _WEIGHTS]
    if not files:
        return "no file with weights is there"
    return _missing_shards(folder) or next((why for path in files if (why := _broken_weights(path))), None)


def _missing_shards(folder: Path) -> str | None:
    try:
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        wanted = sorted(set(index["weight_map"].values()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, AttributeError) as exc:
        return f"model.safetensors.index.json cannot be read: {exc}"
    missing = [name for name in wanted if not (folder / name).exists()]
    return f"{len(missing)} of {len(wanted)} weight files are missing, the first is {missing[0]}" if missing else None


def _broken_weights(path: Path) -> str | None:
    """Check a safetensors file's length against its own header."""
    if path.suffix != ".safetensors":
        return None
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = os.fstat(file.fileno()).st_size
            if length > size - 8:
                return f"{path.name} is cut short: its header alone needs {length + 8} bytes, the file has {size}"
            header = json.loads(file.read(length))
    except (OSError, ValueError) as exc:
        return f"{path.name} cannot be read: {exc}"
    end = max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
    return f"{path.name} is cut short: it should have {8 + length + end} bytes and has {size}" if size < 8 + length + end else None
