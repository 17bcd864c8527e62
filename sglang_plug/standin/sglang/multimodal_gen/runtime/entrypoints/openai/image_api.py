"""`POST /v1/images/generations`."""

from __future__ import annotations

import base64
import re
import time
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ....configs.sample.sampling_params import SamplingParams, generate_request_id
from ...pipelines_core.schedule_batch import Req
from ..images import encode

router = APIRouter()


class BadRequest(ValueError):
    """The request asks for what cannot be made."""


class GenerationFailed(RuntimeError):
    """The workers could not make it."""


class ImageGenerationsRequest(BaseModel):
    """The body of a request; fields that only other servers know are accepted and have no effect."""

    model_config = ConfigDict(extra="allow")

    prompt: str
    model: str | None = None
    n: int | None = Field(1, ge=1, le=16)
    size: str | None = None
    response_format: Literal["b64_json"] | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    seed: int | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    negative_prompt: str | None = None
    width: int | None = None
    height: int | None = None

    def sampling_params(self) -> SamplingParams:
        """Return the parameters that the body asks for.

        Raises:
            BadRequest: the size is no size, or a value is out of range; the message begins with the field's name.
        """
        sides = self._sides()
        fields = ("seed", "num_inference_steps", "guidance_scale", "negative_prompt", "width", "height")
        given = {name: value for name in fields if (value := getattr(self, name)) is not None}
        try:
            return SamplingParams(
                prompt=self.prompt, request_id=generate_request_id(), num_outputs_per_prompt=self.n or 1, **{**sides, **given}
            )
        except ValueError as error:
            where = f"size {self.size!r}: " if str(error).startswith(tuple(sides.keys() - given)) else ""
            raise BadRequest(f"{where}{error}") from error

    def _sides(self) -> dict[str, Any]:
        if self.size in (None, "auto"):
            return {}
        sides = re.fullmatch(r"(?P<width>\d+)x(?P<height>\d+)", self.size or "", re.ASCII | re.IGNORECASE)
        if sides is None:
            raise BadRequest(f"size must be auto or WIDTHxHEIGHT, for instance 64x64, not {self.size!r}")
        return {name: int(digits) for name, digits in sides.groupdict().items()}


@router.post("/v1/images/generations")
def generations(body: ImageGenerationsRequest, request: Request) -> dict[str, Any]:
    """Return the images, each as base64 of a file.

    Raises:
        BadRequest: the request is at fault.
        GenerationFailed: the workers are.
    """
    answer = request.app.state.scheduler.forward(Req(body.sampling_params()))
    if answer.error is not None:
        raise (BadRequest if answer.error_type == "invalid_request" else GenerationFailed)(answer.error)
    kind = body.output_format or "png"
    data = [{"b64_json": base64.b64encode(encode(pixels, kind)).decode()} for pixels in answer.output]
    return {"created": int(time.time()), "output_format": kind, "data": data}
