"""`/generate` as its clients write it, and as `Engine.generate` takes it. Values only; no server."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from ..managers.io_struct import GenerateReqInput
from ..sampling.sampling_params import FieldError, SamplingParams

Prompt: TypeAlias = str | list[int]


def each(prompts: str | list[str] | list[int] | list[list[int]]) -> list[Prompt]:
    """Return one prompt or several as a list of prompts."""
    single = isinstance(prompts, str) or (prompts and isinstance(prompts[0], int))
    return [prompts] if single else list(prompts)  # type: ignore[list-item, arg-type]


def requests(field: str, prompts: list[Prompt], params: SamplingParams) -> list[GenerateReqInput]:
    """Return what the engine is asked: `n` answers to each prompt, with different seeds where one is given.

    Args:
        field: what the client calls the prompts.
        prompts: texts or tokens.
        params: how to go on from each.
    """
    seed = params.sampling_seed
    return [
        GenerateReqInput(
            text=prompt if isinstance(prompt, str) else None,
            input_ids=None if isinstance(prompt, str) else prompt,
            sampling_params=params if seed is None else params.model_copy(update={"sampling_seed": seed + number}),
            field=field,
        )
        for prompt in prompts
        for number in range(params.n)
    ]


class GenerateRequest(BaseModel):
    """A text or its tokens, or a list of either.

    Raises:
        ValidationError: naming the field.
    """

    model_config = ConfigDict(strict=True, extra="forbid")

    text: str | list[str] | None = None
    input_ids: list[int] | list[list[int]] | None = None
    sampling_params: SamplingParams | None = None
    stream: bool = False
    rid: str | None = Field(default=None, min_length=1)
    return_logprob: Literal[False] = False
    model: str = ""

    def inputs(self) -> tuple[list[GenerateReqInput], bool]:
        """Return the engine's requests, and whether one answer is wanted instead of a list.

        Raises:
            FieldError: the fields do not fit together.
        """
        field, given = ("input_ids", self.input_ids) if self.text is None else ("text", self.text)
        if given is None or (self.text is not None and self.input_ids is not None):
            raise FieldError("text", "give either text or input_ids")
        prompts = each(given)
        if not prompts:
            raise FieldError(field, "there is none")
        found = requests(field, prompts, self.sampling_params or SamplingParams())
        if self.stream and len(found) > 1:
            raise FieldError("stream", "a stream gives one answer to one prompt")
        if self.rid is not None and len(found) > 1:
            raise FieldError("rid", "goes with one answer to one prompt")
        for item in found:
            item.stream, item.rid = self.stream, self.rid
        return found, len(found) == 1 and prompts[0] is given
