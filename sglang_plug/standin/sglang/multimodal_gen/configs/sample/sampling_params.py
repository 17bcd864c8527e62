"""What one request asks for."""

from __future__ import annotations

import math
import uuid
from dataclasses import dataclass, fields
from typing import Any

#: Whole numbers: the least, the most that the stand-in takes on, and what they must be a multiple of.
_WHOLE = {
    "height": (16, 2048, 16),
    "width": (16, 2048, 16),
    "num_inference_steps": (1, 1000, 1),
    "num_outputs_per_prompt": (1, 100, 1),
    "seed": (0, 2**63 - 1, 1),
}


def generate_request_id() -> str:
    """Return a name that no other request bears."""
    return str(uuid.uuid4())


@dataclass
class SamplingParams:
    """The parameters of one request, checked at construction. `return_frames` is there for SGLang's sake: frames always come.

    Raises:
        ValueError: a value is out of range, with the name of the parameter.
    """

    prompt: str | list[str] | None = None
    negative_prompt: str | None = ""
    request_id: str | None = None
    seed: int = 42
    height: int = 64
    width: int = 64
    num_inference_steps: int = 8
    guidance_scale: float = 1.0
    num_outputs_per_prompt: int = 1
    output_path: str | None = None
    output_file_name: str | None = None
    save_output: bool = True
    return_frames: bool = False

    def __post_init__(self) -> None:
        for name, (least, most, step) in _WHOLE.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most or value % step:
                kind = "whole number" if step == 1 else f"multiple of {step}"
                raise ValueError(f"{name} must be a {kind} from {least} to {most}, not {value!r}")
        scale: Any = self.guidance_scale
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 <= scale < math.inf:
            raise ValueError(f"guidance_scale must be a finite number that is not negative, not {scale!r}")
        for text in self.prompt if isinstance(self.prompt, list) else [self.prompt or ""]:
            _check_text("prompt", text)
        _check_text("negative_prompt", self.negative_prompt or "")

    @classmethod
    def field_names(cls) -> set[str]:
        """Return the names that a request may use."""
        return {entry.name for entry in fields(cls)}


def _check_text(name: str, text: Any) -> None:
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a text, not {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} holds a character that UTF-8 cannot express: {error.object[error.start : error.end]!a}") from None
