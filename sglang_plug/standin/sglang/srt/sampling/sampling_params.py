"""`SamplingParams`: what a client may ask about sampling, judged field by field."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

DEFAULT_MAX_NEW_TOKENS = 128
_UNLIMITED = 1 << 30


class FieldError(ValueError):
    """A request names something impossible. Attributes: field."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


@dataclass
class SamplingParams:
    """How to go on from a prompt. `temperature` 0 takes the likeliest token."""

    max_new_tokens: int | None = DEFAULT_MAX_NEW_TOKENS
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    sampling_seed: int | None = None
    skip_special_tokens: bool = True

    @classmethod
    def from_client(cls, given: Any) -> SamplingParams:
        """Read a client's object.

        Raises:
            FieldError: an unknown name, or a value that makes no sense.
        """
        if given is None:
            given = {}
        if not isinstance(given, dict):
            raise FieldError("sampling_params", "must be an object")
        names = {entry.name for entry in dataclasses.fields(cls)}
        for name in given:
            if name not in names:
                raise FieldError(f"sampling_params.{name}", "the stand-in does not know it; it knows " + ", ".join(sorted(names)))
        params = cls(**given)
        params.verify("sampling_params.")
        return params

    def verify(self, prefix: str = "") -> None:
        """Judge every field.

        Raises:
            FieldError: naming the field, under `prefix`.
        """
        if self.max_new_tokens is None:
            self.max_new_tokens = _UNLIMITED

        def number(name: str, low: float, high: float = math.inf, whole: bool = False) -> None:
            value = getattr(self, name)
            kinds = int if whole else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
                raise FieldError(prefix + name, f"must be a {'whole ' if whole else ''}number from {low:g} to {high:g}, not {value!r}")

        number("max_new_tokens", 0, whole=True)
        number("temperature", 0, 100)
        number("top_p", 0, 1)
        number("min_p", 0, 1)
        number("top_k", -1, whole=True)
        if self.top_p == 0:
            raise FieldError(prefix + "top_p", "must be greater than 0")
        if self.top_k == 0:
            raise FieldError(prefix + "top_k", "must be at least 1, or -1 for no limit")
        if self.sampling_seed is not None:
            number("sampling_seed", 0, 2**63 - 1, whole=True)
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        if not isinstance(stops, list) or not all(isinstance(text, str) and 0 < len(text) <= 256 for text in stops) or len(stops) > 16:
            raise FieldError(prefix + "stop", "must be a text or at most 16 texts, each of 1 to 256 characters")
        self.stop = stops
        ids = self.stop_token_ids or []
        if not isinstance(ids, list) or not all(isinstance(number_, int) for number_ in ids):
            raise FieldError(prefix + "stop_token_ids", "must be a list of whole numbers")

    @property
    def stop_texts(self) -> tuple[str, ...]:
        """The stop strings, after `verify`."""
        return tuple([self.stop] if isinstance(self.stop, str) else self.stop or ())
