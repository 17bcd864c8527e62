"""What travels between client and workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...configs.sample import SamplingParams


class InvalidRequest(ValueError):
    """What was asked for cannot be made here, whatever the platform; the request is at fault, not the worker."""


@dataclass
class Req:
    """One request: one prompt, one or more images."""

    sampling_params: SamplingParams

    @property
    def request_id(self) -> str | None:
        return self.sampling_params.request_id


@dataclass
class OutputBatch:
    """The answer to one request.

    Attributes:
        output: images as (height, width, 3) arrays of bytes, one an output; or what a control request asked for.
        error: what failed; then there is no output.
        error_type: `invalid_request` where the request is at fault, else `server`.
        metrics: seconds of each stage.
    """

    output: Any = None
    error: str | None = None
    error_type: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ControlReq:
    """A request to the engine itself: `shutdown` or `info`."""

    action: str
