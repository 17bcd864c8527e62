"""`SamplingParams`: what a client may ask about sampling, judged field by field when it is made."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

DEFAULT_MAX_NEW_TOKENS = 128
NO_LIMIT = 1 << 30
_SEEDS = 1 << 63


class FieldError(ValueError):
    """A request names something impossible. Attributes: field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _not_zero(value: int) -> int:
    if value == 0:
        raise ValueError("must be at least 1, or -1 for no limit")
    return value


class Sampling(BaseModel):
    """What every interface offers, under the same names. `temperature` 0 takes the likeliest token; penalties count the answer's tokens.

    A field that is null is as good as left out.

    Raises:
        ValidationError: naming the field.
    """

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    n: int = Field(default=1, ge=1, le=128)
    temperature: float = Field(default=1.0, ge=0, le=100)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: Annotated[int, Field(ge=-1), AfterValidator(_not_zero)] = -1
    min_p: float = Field(default=0.0, ge=0, le=1)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float = Field(default=1.0, gt=0, le=2)
    stop: Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], BeforeValidator(_listed), Field(max_length=16)] = []
    stop_token_ids: list[int] = []
    ignore_eos: bool = False
    skip_special_tokens: bool = True

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


class SamplingParams(Sampling):
    """How to go on from a prompt."""

    max_new_tokens: int = Field(default=DEFAULT_MAX_NEW_TOKENS, ge=0)
    sampling_seed: int | None = Field(default=None, ge=-_SEEDS, lt=_SEEDS)

    @property
    def penalizes(self) -> bool:
        """Whether tokens that the answer has already had are less likely."""
        return (self.frequency_penalty, self.presence_penalty, self.repetition_penalty) != (0, 0, 1)
