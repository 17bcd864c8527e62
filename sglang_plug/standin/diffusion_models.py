"""The stand-in's image model: a small diffusion transformer in diffusers' folder layout, written on first use from a fixed seed.

The weights come from numpy's generator, so that they do not depend on the torch that later loads them. Owns the folder under the
cache root and nothing else; the modules that read it are `sglang.multimodal_gen.runtime.models`.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

NAME = "tiny-dit"
PIPELINE = "TinyDiTPipeline"
SEED = 20260101
TEXT = {"vocab_size": 258, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "max_length": 64}
DIT = {
    "in_channels": 4,
    "patch_size": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_layers": 2,
    "text_dim": TEXT["hidden_size"],
}
VAE = {"latent_channels": 4, "block_channels": 32, "num_upsamples": 3, "out_channels": 3}

Shapes = dict[str, tuple[int, ...]]


def tiny_dit(cache: Path | None = None) -> Path:
    """Return the model's folder, writing it first where it is missing.

    Args:
        cache: the folder that holds it; default `$SGLANG_PLUG_CACHE`, else `~/.cache/sglang-plug`.

    Raises:
        OSError: the folder cannot be written.
    """
    root = cache or Path(os.environ.get("SGLANG_PLUG_CACHE") or Path.home() / ".cache" / "sglang-plug")
    target = root / NAME
    if (target / "model_index.json").is_file():
        return target
    root.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{NAME}-", dir=root))
    try:
        write(beside)
        beside.chmod(0o755)
        try:
            beside.replace(target)
        except OSError:  # another process was faster: a folder that holds files cannot be replaced
            if not (target / "model_index.json").is_file():
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def write(folder: Path) -> None:
    """Write the whole pipeline into an empty folder.

    Raises:
        OSError: the folder cannot be written.
    """
    import numpy as np
    from safetensors.numpy import save_file

    rng = np.random.default_rng(SEED)
    for part, config, shapes, weights in (
        ("text_encoder", {"_class_name": "TinyTextEncoder", **TEXT}, text_shapes(), "model.safetensors"),
        ("transformer", {"_class_name": "TinyDiT", **DIT}, dit_shapes(), "diffusion_pytorch_model.safetensors"),
        ("vae", {"_class_name": "TinyDecoder", **VAE}, vae_shapes(), "diffusion_pytorch_model.safetensors"),
    ):
        _write_json(folder / part / "config.json", config)
        save_file({name: _draw(rng, name, shape) for name, shape in shapes.items()}, folder / part / weights)
    _write_json(folder / "tokenizer" / "tokenizer_config.json", {"_class_name": "ByteTokenizer", "max_length": TEXT["max_length"]})
    _write_json(folder / "scheduler" / "scheduler_config.json", {"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0})
    parts = {
        "scheduler": "FlowMatchEulerDiscreteScheduler",
        "text_encoder": "TinyTextEncoder",
        "tokenizer": "ByteTokenizer",
        "transformer": "TinyDiT",
        "vae": "TinyDecoder",
    }
    index = {
        "_class_name": PIPELINE,
        "_diffusers_version": "0.37.0",
        **{part: ["sglang_plug", name] for part, name in parts.items()},
    }
    _write_json(folder / "model_index.json", index)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _draw(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return one parameter: norms start at one, biases near zero, the rest keeps the size of what passes through."""
    import numpy as np

    if name == "denoise_gain":
        return np.full(shape, 3.0, dtype=np.float32)  # the noise fades as exp(-3), so that the drawing shows
    if "norm" in name:
        return np.ones(shape, dtype=np.float32) if name.endswith("weight") else np.zeros(shape, dtype=np.float32)
    scale = 0.1 if len(shape) == 1 else 1.0 if "embed" in name else 1.4 / math.sqrt(math.prod(shape[1:]))
    if name.startswith("conv_out"):
        scale *= 0.35  # colours between the extremes
    drawn: np.ndarray[Any, Any] = (scale * rng.standard_normal(shape)).astype(np.float32)
    return drawn


def linear(name: str, inputs: int, outputs: int) -> Shapes:
    """Return the shapes of a linear layer's parameters."""
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def text_shapes() -> Shapes:
    """Return the text encoder's parameters."""
    width, inner = TEXT["hidden_size"], TEXT["intermediate_size"]
    return {
        "token_embed.weight": (TEXT["vocab_size"], width),
        "position_embed.weight": (TEXT["max_length"], width),
        "norm_attention.weight": (width,),
        **linear("qkv", width, 3 * width),
        **linear("attention_out", width, width),
        "norm_mlp.weight": (width,),
        **linear("mlp_in", width, 2 * inner),
        **linear("mlp_out", inner, width),
        "norm_out.weight": (width,),
    }


def dit_shapes() -> Shapes:
    """Return the transformer's parameters."""
    width, inner, patch = DIT["hidden_size"], DIT["intermediate_size"], DIT["in_channels"] * DIT["patch_size"] ** 2
    head = width // DIT["num_attention_heads"]
    shapes = {
        **linear("patch_in", patch, width),
        **linear("time_in", width, width),
        **linear("time_out", width, width),
        **linear("text_in", DIT["text_dim"], width),
    }
    for i in range(DIT["num_layers"]):
        block = f"blocks.{i}."
        shapes |= {
            **linear(block + "modulation", width, 6 * width),
            **linear(block + "qkv", width, 3 * width),
            block + "q_norm.weight": (head,),
            block + "k_norm.weight": (head,),
            **linear(block + "attention_out", width, width),
            block + "cross_norm.weight": (width,),
            **linear(block + "cross_q", width, width),
            **linear(block + "cross_kv", DIT["text_dim"], 2 * width),
            **linear(block + "cross_out", width, width),
            **linear(block + "mlp_in", width, 2 * inner),
            **linear(block + "mlp_out", inner, width),
        }
    return shapes | {**linear("modulation_out", width, 2 * width), **linear("patch_out", width, patch), "denoise_gain": (1,)}


def vae_shapes() -> Shapes:
    """Return the image decoder's parameters."""
    channels, latent, colours = VAE["block_channels"], VAE["latent_channels"], VAE["out_channels"]
    shapes: Shapes = {"conv_in.weight": (channels, latent, 3, 3), "conv_in.bias": (channels,)}
    for i in range(VAE["num_upsamples"]):
        shapes |= {
            f"blocks.{i}.norm.weight": (channels,),
            f"blocks.{i}.norm.bias": (channels,),
            f"blocks.{i}.conv.weight": (channels, channels, 3, 3),
            f"blocks.{i}.conv.bias": (channels,),
        }
    return shapes | {"conv_out.weight": (colours, channels, 3, 3), "conv_out.bias": (colours,)}
