"""The diffusion runtime's public names. Importing this package, and binding `DiffGenerator`, imports nothing of the runtime (S7.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .lazy import LazyImport

if TYPE_CHECKING:
    from .configs.pipeline_configs import PipelineConfig
    from .configs.sample import SamplingParams

__all__ = ["DiffGenerator", "PipelineConfig", "SamplingParams"]

DiffGenerator = LazyImport("sglang.multimodal_gen.runtime.entrypoints.diffusion_generator", "DiffGenerator")


def __getattr__(name: str) -> Any:
    if name == "PipelineConfig":
        from .configs.pipeline_configs import PipelineConfig

        return PipelineConfig
    if name == "SamplingParams":
        from .configs.sample import SamplingParams

        return SamplingParams
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
