"""`PipelineConfig`: how a model is run, as far as its folder does not say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PipelineConfig:
    """How the pipeline runs.

    Attributes:
        flow_shift: the scheduler's shift; None takes it from the model's folder.
        precision: `fp32`, `fp16`, `bf16`, or `auto`: bf16 where the device's capability is at least 8.0, else fp32.
    """

    flow_shift: float | None = None
    precision: str = "auto"
