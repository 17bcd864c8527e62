"""The pipeline: prompt to latents to pixels, by flow matching with classifier-free guidance."""

from __future__ import annotations

import logging
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .. import platforms
from ..layers.attention.selector import backend_name_to_enum, global_force_attn_backend
from ..loader.component_loader import LayerwiseOffload, load_component
from ..utils.torch_compile import build_torch_compile_kwargs
from .schedule_batch import OutputBatch, Req

if TYPE_CHECKING:
    from ..server_args import ServerArgs

logger = logging.getLogger(__name__)

_PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def choose_precision(asked: str) -> torch.dtype:
    """Return the type of the weights: what was asked for, else bf16 from capability 8.0 on, else fp32.

    Raises:
        ValueError: `asked` is no precision.
    """
    if asked == "auto":
        platform = platforms.current_platform
        return torch.bfloat16 if platform.is_amp_supported() and platform.has_device_capability((8, 0)) else torch.float32
    if asked not in _PRECISIONS:
        raise ValueError(f"precision must be auto or one of {', '.join(_PRECISIONS)}, not {asked!r}")
    return _PRECISIONS[asked]


class DiffusionPipeline:
    """The components of one model folder on this rank's device."""

    def __init__(self, server_args: ServerArgs) -> None:
        folder, config = Path(server_args.model_path), server_args.pipeline_config
        self.device = platforms.current_platform.get_local_torch_device()
        self.dtype = choose_precision(config.precision)
        wanted = server_args.attention_backend
        global_force_attn_backend(backend_name_to_enum(wanted) if wanted else None)
        parts = ("tokenizer", "text_encoder", "transformer", "vae", "scheduler")
        self.modules: dict[str, Any] = {part: load_component(folder, part, self.device, self.dtype) for part in parts}
        if config.flow_shift is not None:
            self.modules["scheduler"].shift = config.flow_shift
        transformer = self.modules["transformer"]
        self.offload = LayerwiseOffload(transformer.blocks, self.device) if server_args.dit_layerwise_offload else None
        if server_args.enable_torch_compile:
            kwargs = build_torch_compile_kwargs(mode=server_args.torch_compile_mode, module=transformer)
            logger.info("Compiling the transformer with %s", kwargs)
            transformer.compile(**kwargs)

    def forward(self, req: Req) -> OutputBatch:
        """Return the images of one request."""
        params = req.sampling_params
        prompt = params.prompt if isinstance(params.prompt, str) else ""
        marks = [time.perf_counter()]
        with platforms.current_platform.inference_mode():
            text = self.encode([params.negative_prompt or "", prompt] if params.guidance_scale > 1 else [prompt])
            marks.append(time.perf_counter())
            images = []
            for i in range(params.num_outputs_per_prompt):
                latents = self.denoise(self.noise(params.seed + i, params.height, params.width), text, params)
                images.append(self.decode(latents))
            platforms.current_platform.synchronize()  # so that the seconds are the device's
            marks.append(time.perf_counter())
        return OutputBatch(output=images, metrics={"text_encoding": marks[1] - marks[0], "denoising_and_decoding": marks[2] - marks[1]})

    def encode(self, texts: list[str]) -> torch.Tensor:
        """Return the texts' features."""
        tokens = self.modules["tokenizer"](texts).to(self.device)
        encoded: torch.Tensor = self.modules["text_encoder"](tokens)
        return encoded

    def noise(self, seed: int, height: int, width: int) -> torch.Tensor:
        """Return the start of a run, drawn on the host so that a seed means the same noise on every device."""
        platforms.current_platform.seed_everything(seed)
        vae = self.modules["vae"]
        shape = (1, vae.latent_channels, height // vae.scale, width // vae.scale)
        generator = torch.Generator("cpu").manual_seed(seed)
        return torch.randn(shape, generator=generator).to(device=self.device, dtype=self.dtype)

    def denoise(self, latents: torch.Tensor, text: torch.Tensor, params: Any) -> torch.Tensor:
        """Return the latents at the end of the flow."""
        scheduler, transformer = self.modules["scheduler"], self.modules["transformer"]
        sigmas = scheduler.sigmas(params.num_inference_steps)
        for sigma, sigma_next in pairwise(sigmas):
            timestep = torch.full((len(text),), sigma, device=self.device)
            velocity = transformer(latents.expand(len(text), -1, -1, -1), timestep, text)
            if len(text) == 2:
                without, with_prompt = velocity.chunk(2)
                velocity = without + params.guidance_scale * (with_prompt - without)
            latents = scheduler.step(velocity, latents, sigma, sigma_next)
        return latents

    def decode(self, latents: torch.Tensor) -> Any:
        """Return one image as a (height, width, 3) array of bytes."""
        pixels = self.modules["vae"].decode(latents)[0].float()
        return (pixels.permute(1, 2, 0) * 255).round().to(torch.uint8).cpu().numpy()
