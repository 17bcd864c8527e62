"""Components of a model folder, built and filled on the platform's device."""

from __future__ import annotations

import inspect
import json
import logging
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from .. import platforms
from ..models.registry import BadModel, resolve_model_cls

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

GIB = 1 << 30


def read_config(folder: Path, part: str) -> dict[str, Any]:
    """Return a component's configuration, which names its class.

    Raises:
        BadModel: the folder has no such component, or its file cannot be used.
    """
    found = sorted((folder / part).glob("*config.json"))
    if not found:
        raise BadModel(f"{folder}: component {part!r} has no configuration file")
    try:
        config = json.loads(found[0].read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadModel(f"{found[0]}: {error}") from error
    if not isinstance(config, dict) or "_class_name" not in config:
        raise BadModel(f"{found[0]}: there is no _class_name in it")
    return config


def read_weights(files: list[Path]) -> dict[str, torch.Tensor]:
    """Return the tensors of all files.

    Raises:
        BadModel: a file cannot be read.
    """
    weights: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            weights |= load_file(file)
        except (OSError, SafetensorError) as error:
            raise BadModel(f"{file}: {error}") from error
    return weights


def load_component(folder: Path, part: str, device: torch.device, dtype: torch.dtype) -> Any:
    """Return a component, its weights on `device` where it has any.

    Raises:
        BadModel: the component is missing, of an unknown class, or does not fit the device's free memory, or its files do not agree.
    """
    config = {k: v for k, v in read_config(folder, part).items() if k != "_diffusers_version"}
    architecture = config.pop("_class_name")
    model_cls = resolve_model_cls(architecture)
    try:
        inspect.signature(model_cls).bind(**config)
    except TypeError as error:
        raise BadModel(f"{folder / part}: {architecture} cannot be made from its configuration: {error}") from error
    component = model_cls(**config)
    if not isinstance(component, nn.Module):
        return component
    platform, files = platforms.current_platform, sorted((folder / part).glob("*.safetensors"))
    needed, free = sum(f.stat().st_size for f in files) / GIB, platform.get_available_gpu_memory()
    if needed > free:
        raise BadModel(f"component {part!r} needs {needed:.2f} GiB; {platform.device_name} has {free:.2f} GiB free")
    try:
        component.load_state_dict(read_weights(files))
    except RuntimeError as error:
        raise BadModel(f"{folder / part}: {error}") from error
    component = component.to(device=device, dtype=dtype).eval().requires_grad_(False)
    logger.info("Loaded %s: %s. Free memory: %.2f GiB", part, architecture, free)
    return platform.optimize_vae(component) if part == "vae" else component


class LayerwiseOffload:
    """Keeps a module's layers in host memory, each on the device only while it runs."""

    def __init__(self, layers: nn.ModuleList, device: torch.device) -> None:
        self.device, self.moves = device, 0
        for layer in layers:
            layer.to("cpu")
            layer.register_forward_pre_hook(self._fetch)
            layer.register_forward_hook(self._put_back)

    def _fetch(self, layer: nn.Module, args: Any) -> None:
        layer.to(self.device)
        self.moves += 1

    def _put_back(self, layer: nn.Module, args: Any, output: Any) -> None:
        layer.to("cpu")
