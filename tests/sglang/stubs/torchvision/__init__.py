"""Stands in for torchvision where no picture is ever transformed."""

import enum
import importlib

from hollow import hollow_out

hollow_out(__name__, __version__="0.0.0")

# transformers builds a table from these members when it is imported.
InterpolationMode = enum.Enum("InterpolationMode", "NEAREST NEAREST_EXACT BILINEAR BICUBIC BOX HAMMING LANCZOS")
for _name in ("transforms", "transforms.functional", "transforms.v2", "transforms.v2.functional"):
    importlib.import_module(f"{__name__}.{_name}").InterpolationMode = InterpolationMode
