"""What one request asks for."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, fields


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
    negative_prompt: str = ""
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
        for name in ("height", "width"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 16 or value % 16:
                raise ValueError(f"{name} must be a multiple of 16 and at least 16, not {value!r}")
        for name, least in (("num_inference_steps", 1), ("num_outputs_per_prompt", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if self.guidance_scale < 0:
            raise ValueError(f"guidance_scale must not be negative, not {self.guidance_scale!r}")

    @classmethod
    def field_names(cls) -> set[str]:
        """Return the names that a request may use."""
        return {entry.name for entry in fields(cls)}
