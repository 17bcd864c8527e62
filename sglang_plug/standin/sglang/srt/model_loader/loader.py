"""Reads a model folder's safetensors into a model on the device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..configs.model_config import weight_files
from ..layers.quantization import get_quantization_config
from ..models.llama import LlamaForCausalLM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..configs.model_config import ModelConfig


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
    torch.set_default_dtype(getattr(torch, config.dtype))
    try:
        model = LlamaForCausalLM(config, quant_config)
    finally:
        torch.set_default_dtype(before)
    model.load_weights(iterate_weights(Path(config.path)))
    model = model.to(device).eval()
    for module in model.modules():
        if getattr(module, "quant_method", None) is not None:
            module.quant_method.process_weights_after_loading(module)
    return model
