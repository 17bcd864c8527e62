"""Reads a model folder's safetensors into a model on the device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..layers.quantization import get_quantization_config
from ..models.registry import model_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..configs.model_config import ModelConfig


def weight_files(folder: Path) -> list[Path]:
    """Return the folder's safetensors files, by its index where there is one.

    Raises:
        ValueError: there are none, or the index names one that is missing.
    """
    index = folder / "model.safetensors.index.json"
    if index.exists():
        files = sorted({folder / name for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()})
        missing = [file.name for file in files if not file.exists()]
        if missing:
            raise ValueError(f"{index} names files that are missing: {', '.join(missing)}")
        return files
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"{folder} has no *.safetensors file")
    return files


def iterate_weights(folder: Path) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield every weight with its name.

    Raises:
        ValueError: a file is damaged.
    """
    from safetensors import SafetensorError, safe_open

    for file in weight_files(folder):
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 - no mapping: it has no iterator
                    yield name, opened.get_tensor(name)
        except SafetensorError as error:
            raise ValueError(f"{file} is damaged: {error}") from error


def load_model(config: ModelConfig, quantization: str | None, device: Any) -> torch.nn.Module:
    """Return the model, loaded, quantized and on the device.

    Raises:
        ValueError: the folder cannot be used.
    """
    given = config.hf_config.get("quantization_config") or {}
    method = quantization or given.get("quant_method")
    quant_config = get_quantization_config(method).from_config(given) if method else None
    before = torch.get_default_dtype()
    torch.set_default_dtype(config.dtype)
    try:
        model = model_class(config.hf_config)(config, quant_config)
    finally:
        torch.set_default_dtype(before)
    model.load_weights(iterate_weights(Path(config.path)))
    model = model.to(device).eval()
    for module in model.modules():
        if getattr(module, "quant_method", None) is not None:
            module.quant_method.process_weights_after_loading(module)
    return model
