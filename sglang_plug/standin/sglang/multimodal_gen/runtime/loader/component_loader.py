"""Components of a model folder, built and filled on the platform's device."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file
from torch import nn

from .. import platforms
from ..models.registry import resolve_model_cls

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)

GIB = 1 << 30


def read_config(folder: Path, part: str) -> dict[str, Any]:
    """Return a component's configuration.

    Raises:
        ValueError: the folder has no such component.
    """
    found = sorted((folder / part).glob("*config.json"))
    if not found:
        raise ValueError(f"{folder}: component {part!r} has no configuration file")
    config: dict[str, Any] = json.loads(found[0].read_text(encoding="utf-8"))
    return config


def load_component(folder: Path, part: str, device: torch.device, dtype: torch.dtype) -> Any:
    """Return a component, its weights on `device` where it has any.

    Raises:
        ValueError: the component is missing, of an unknown class, or does not fit the device's free memory.
    """
    config = {k: v for k, v in read_config(folder, part).items() if k != "_diffusers_version"}
    architecture = config.pop("_class_name")
    component = resolve_model_cls(architecture)(**config)
    if not isinstance(component, nn.Module):
        return component
    platform, files = platforms.current_platform, sorted((folder / part).glob("*.safetensors"))
    needed, free = sum(f.stat().st_size for f in files) / GIB, platform.get_available_gpu_memory()
    if needed > free:
        raise ValueError(f"component {part!r} needs {needed:.2f} GiB; {platform.device_name} has {free:.2f} GiB free")
    weights = {name: tensor for file in files for name, tensor in load_file(file).items()}
    component.load_state_dict(weights)
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
