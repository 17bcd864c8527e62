"""`POST /v1/images/generations`."""

from __future__ import annotations

import base64
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
    n: int = Field(1, ge=1, le=16)
    size: str = "64x64"
    response_format: Literal["b64_json"] | None = None
    output_format: Literal["png", "jpeg", "webp"] = "png"
    seed: int | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    negative_prompt: str | None = None
    width: int | None = None
    height: int | None = None

    def sampling_params(self) -> SamplingParams:
        """Return the parameters that the body asks for.

        Raises:
            BadRequest: the size is no size, or a value is out of range.
        """
        width, _, height = self.size.lower().partition("x")
        wanted: dict[str, Any] = {
            name: getattr(self, name) for name in ("seed", "num_inference_steps", "guidance_scale", "negative_prompt")
        }
        try:
            return SamplingParams(
                prompt=self.prompt,
                request_id=generate_request_id(),
                width=self.width or int(width),
                height=self.height or int(height),
                num_outputs_per_prompt=self.n,
                **{name: value for name, value in wanted.items() if value is not None},
            )
        except ValueError as error:
            raise BadRequest(f"size {self.size!r} or another parameter cannot be used: {error}") from error


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
    data = [{"b64_json": base64.b64encode(encode(pixels, body.output_format)).decode()} for pixels in answer.output]
    return {"created": int(time.time()), "output_format": body.output_format, "data": data}
