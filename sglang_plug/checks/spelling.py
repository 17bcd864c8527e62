"""Names of backends and device types that are one slip away from those that torch and SGLang have. Others may be the plugin's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks.world import close

if TYPE_CHECKING:
    from collections.abc import Sequence

#: `torch.distributed.Backend.backend_list`
COLLECTIVES = ("gloo", "nccl", "xccl", "ucc", "mpi", "fake")
#: What torch.device takes before any backend is registered.
DEVICE_TYPES = ("cpu", "cuda", "ipu", "xpu", "hip", "xla", "mps", "meta", "hpu", "mtia", "vulkan", "maia", "privateuseone")
#: `ATTENTION_BACKEND_CHOICES` of the newest release.
ATTENTION = (
    "triton",
    "torch_native",
    "flex_attention",
    "dsa",
    "nsa",
    "qsa",
    "dsv4",
    "compressed",
    "fa3",
    "fa4",
    "flashinfer",
    "llada2_cfg_flashinfer",
    "flashmla",
    "trtllm_mla",
    "cutedsl_mla",
    "tokenspeed_mla",
    "trtllm_mha",
    "hpc_ops",
    "minicpm_flashattn",
    "minicpm_flashinfer",
    "aiter",
    "wave",
    "intel_amx",
    "ascend",
    "intel_xpu",
)
_OTHERS = frozenset({"ncclx", "rcclx"})  # of other distributions


def collective(text: str, known: Sequence[str] = COLLECTIVES) -> str | None:
    """Return the collective backend that a part of `gloo` or `cpu:gloo,cuda:nccl` may mean; None where all are known, or are like none."""
    names = [part.rpartition(":")[2].strip() for part in text.split(",")]
    strange = [name for name in names if name.lower() not in known and name.lower() not in _OTHERS]
    return next((near for name in strange if (near := close(name, known, cutoff=0.8))), None)


def attention(text: str) -> str | None:
    """Return the attention backend that a name may mean; None where it is one, is like none, or has one's name as a part."""
    near = close(text, ATTENTION, cutoff=0.92)
    return near if text not in ATTENTION and near is not None and (near == text.strip().lower() or near not in text.lower()) else None


def device_type(text: str, known: Sequence[str] = DEVICE_TYPES) -> tuple[str | None, bool]:
    """Return the device type that a name may mean, and whether it surely does: only capitals or blanks differ."""
    near = close(text, known, cutoff=0.8) if text not in known else None
    return near, near is not None and near == text.strip().lower()
