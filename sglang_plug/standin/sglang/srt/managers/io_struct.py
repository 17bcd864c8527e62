"""The messages between the engine's processes. Plain data; pickled, over sockets that only this user can reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..sampling.sampling_params import SamplingParams


@dataclass
class TokenizedGenerateReqInput:
    """Tokenizer manager to scheduler: generate from these tokens."""

    rid: str
    input_ids: list[int]
    sampling_params: SamplingParams
    stream: bool = False


@dataclass
class AbortReq:
    """Tokenizer manager to scheduler: nobody waits for this request any more."""

    rid: str


@dataclass
class ControlReq:
    """Tokenizer manager to scheduler: do `what` (`flush_cache`, `start_profile`, `stop_profile`, `get_internal_state`) and answer."""

    rid: str
    what: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass
class ControlOutput:
    """Scheduler to tokenizer manager, by way of the detokenizer: the answer to a `ControlReq`."""

    rid: str
    success: bool
    data: dict[str, Any]


@dataclass
class TokenOutput:
    """What one step added to one request.

    Attributes:
        rid: the request.
        output_ids: the new tokens.
        prompt_tokens: length of the prompt.
        completion_tokens: tokens generated so far.
        stop: the request's stop strings, sent with the first piece.
        skip_special_tokens: whether special tokens stay out of the text.
        finish_reason: why the request ended, None while it goes on.
    """

    rid: str
    output_ids: list[int]
    prompt_tokens: int
    completion_tokens: int
    stop: tuple[str, ...] = ()
    skip_special_tokens: bool = True
    finish_reason: dict[str, Any] | None = None


@dataclass
class SchedulerStats:
    """The scheduler's load at one step."""

    running: int = 0
    queued: int = 0
    used_tokens: int = 0
    max_tokens: int = 0
    retracted: int = 0


@dataclass
class BatchTokenIDOutput:
    """Scheduler to detokenizer: what one step added."""

    outputs: list[TokenOutput]
    stats: SchedulerStats


@dataclass
class StrOutput:
    """The text that one step added to one request; text cut off by a stop string is gone."""

    text: str
    tokens: TokenOutput


@dataclass
class BatchStrOutput:
    """Detokenizer to tokenizer manager: what one step added, as text."""

    outputs: list[StrOutput]
    stats: SchedulerStats


@dataclass
class GenerateReqInput:
    """One answer that a client asks for: to a text, or to its tokens.

    Attributes:
        sampling_params: how to go on.
        stream: whether the answer comes in pieces.
        rid: the request's id, made up where it is left out.
        add_special_tokens: whether the tokenizer puts its special tokens around the text.
        incremental: whether each piece holds only what is new, instead of everything so far.
        field: what the client calls the prompt.
    """

    text: str | None = None
    input_ids: list[int] | None = None
    sampling_params: SamplingParams | None = None
    stream: bool = False
    rid: str | None = None
    add_special_tokens: bool = True
    incremental: bool = False
    field: str = "text"
