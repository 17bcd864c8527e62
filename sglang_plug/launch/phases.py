"""How far a start has come, read from the engine's log. Tables of what SGLang and the stand-in print; nothing else depends on them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

SAYS_READY = "engine says ready"
WARMUP_FAILED = "Synthetic server warmup failed"  # SGLang's diffusion server says so, and goes on

# (what the log says in passing, what that means for whoever wants a platform tried)
_ASIDES = (
    (
        re.compile(r"Falling back to diffusers backend"),
        "SGLang runs diffusers' own pipeline, past the platform's attention and operators: name one of SGLang's pipelines with --model-id",
    ),
)

# (what is reached, a pattern of the line that says so). In the order of a start; a later line implies the earlier ones.
_MILESTONES: tuple[tuple[str, str], ...] = (
    ("arguments resolved", r"\bserver_args\s*=|\bServerArgs\("),
    ("processes joined", r"Init (?:torch distributed|parallel) ends|Init parallel ends"),
    ("weights loading", r"Load weight begin"),
    ("weights loaded", r"Load weight end|Loaded module|Loaded pipeline"),
    ("cache allocated", r"KV Cache is allocated|Memory pool end|KV cache: \d+ tokens"),
    ("graphs captured", r"Capture (?:cuda|device|cpu|npu) graph end|Capture .* graph end"),
    ("HTTP listening", r"Uvicorn running on|Application startup complete|Granian|Starting FastAPI"),
    (SAYS_READY, r"fired up and ready to roll|: ready: https?://"),
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _MILESTONES)
_NOTED = re.compile(r"^\[[^\]]*\]\s*")


@dataclass
class Progress:
    """Follows one start.

    Attributes:
        reached: milestone -> seconds after the start, in the order of their arrival.
    """

    reached: dict[str, float] = field(default_factory=dict)

    def read(self, line: str, seconds: float) -> str | None:
        """Take one log line; return the milestone that it reaches for the first time."""
        for name, pattern in _COMPILED:
            if name not in self.reached and pattern.search(line):
                self.reached[name] = seconds
                return name
        return None

    @property
    def last(self) -> str:
        return next(reversed(self.reached), "imports")


def aside(line: str) -> str | None:
    """Return what a log line means where the engine goes on with less than was asked for, else None."""
    return next((means for pattern, means in _ASIDES if pattern.search(line)), None)


def without_stamp(line: str) -> str:
    """Return a log line without the time and rank in front of it."""
    return _NOTED.sub("", line)
