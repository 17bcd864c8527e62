"""Arrays of bytes to image files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any


def encode(pixels: Any, kind: str = "png") -> bytes:
    """Return (height, width, 3) bytes as the bytes of a file; equal pixels give equal files."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, format=kind)
    return out.getvalue()


def save(pixels: Any, folder: str, name: str) -> Path:
    """Write an image and return its path; the name's ending says which kind, PNG where it has none.

    Raises:
        OSError: it cannot be written.
    """
    path = Path(folder) / name
    if path.suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        path = path.with_name(f"{path.name}.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(pixels, {".png": "png", ".webp": "webp"}.get(path.suffix.lower(), "jpeg")))
    return path
