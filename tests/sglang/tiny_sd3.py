"""Writes a random Stable Diffusion 3 pipeline of two megabytes, in diffusers' layout and without the network.

Run by the engine's python, which has diffusers: `python tiny_sd3.py FOLDER`. Sizes are the least that SGLang's SD3 pipeline takes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

WIDTH = 32
SPECIAL = {"<pad>": 0, "</s>": 1, "<s>": 2}


def write_tokenizer(folder: Path, length: int) -> int:
    """Write a byte-level tokenizer without merges and return the size of its vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = SPECIAL | {letter: len(SPECIAL) + number for number, letter in enumerate(letters)}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 1)])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=length)
    wrapped.save_pretrained(folder)
    return len(vocabulary)


def write_text_encoders(folder: Path, vocabulary: int) -> None:
    """Write the two CLIP encoders and the T5 encoder."""
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection, T5Config, T5EncoderModel

    clip = CLIPTextConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_attention_heads=4,
        num_hidden_layers=3,
        max_position_embeddings=77,
        projection_dim=WIDTH,
        bos_token_id=2,
        eos_token_id=1,
        pad_token_id=0,
    )
    for name in ("text_encoder", "text_encoder_2"):
        CLIPTextModelWithProjection(clip).save_pretrained(folder / name)
    t5 = T5Config(
        vocab_size=vocabulary,
        d_model=WIDTH,
        d_kv=8,
        d_ff=2 * WIDTH,
        num_layers=2,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    T5EncoderModel(t5).save_pretrained(folder / "text_encoder_3")


def write_image_models(folder: Path) -> None:
    """Write the transformer, the autoencoder and the scheduler."""
    from diffusers import AutoencoderKL, FlowMatchEulerDiscreteScheduler, SD3Transformer2DModel

    SD3Transformer2DModel(
        sample_size=32,
        patch_size=2,
        in_channels=16,
        out_channels=16,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        caption_projection_dim=64,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=2 * WIDTH,
        pos_embed_max_size=32,
    ).save_pretrained(folder / "transformer")
    AutoencoderKL(
        sample_size=32,
        block_out_channels=(8, 8, 8, 8),
        layers_per_block=1,
        latent_channels=16,
        norm_num_groups=4,
        use_quant_conv=False,
        use_post_quant_conv=False,
        shift_factor=0.0609,
        scaling_factor=1.5035,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
    ).save_pretrained(folder / "vae")
    FlowMatchEulerDiscreteScheduler(shift=3.0).save_pretrained(folder / "scheduler")


def write(folder: Path) -> None:
    """Write the whole pipeline, the same weights each time."""
    import torch

    torch.manual_seed(0)
    vocabulary = [write_tokenizer(folder / name, length) for name, length in (("tokenizer", 77), ("tokenizer_2", 77), ("tokenizer_3", 256))]
    write_text_encoders(folder, vocabulary[0])
    write_image_models(folder)
    parts = {
        "scheduler": ("diffusers", "FlowMatchEulerDiscreteScheduler"),
        "text_encoder": ("transformers", "CLIPTextModelWithProjection"),
        "text_encoder_2": ("transformers", "CLIPTextModelWithProjection"),
        "text_encoder_3": ("transformers", "T5EncoderModel"),
        "tokenizer": ("transformers", "PreTrainedTokenizerFast"),
        "tokenizer_2": ("transformers", "PreTrainedTokenizerFast"),
        "tokenizer_3": ("transformers", "PreTrainedTokenizerFast"),
        "transformer": ("diffusers", "SD3Transformer2DModel"),
        "vae": ("diffusers", "AutoencoderKL"),
    }
    index = {"_class_name": "StableDiffusion3Pipeline", "_diffusers_version": "0.37.0", **parts}
    (folder / "model_index.json").write_text(json.dumps(index, indent=1), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
