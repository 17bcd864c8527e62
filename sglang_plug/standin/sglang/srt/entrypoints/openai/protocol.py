"""What OpenAI's clients send, field by field. A field that would change the answer and that the stand-in does not compute is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from ...sampling.sampling_params import NO_LIMIT, Sampling, SamplingParams

# Fields that change no answer, and fields that ask for nothing with one of these values.
_IDLE = ("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "parallel_tool_calls")
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "logit_bias": ({},),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "modalities": (["text"],),
    "response_format": ({"type": "text"},),
}


def _asks_nothing(name: str, value: Any) -> bool:
    return any(type(value) is type(neutral) and value == neutral for neutral in _NEUTRAL.get(name, ()))


class StreamOptions(BaseModel):
    """Attributes: include_usage: end the stream with the token counts."""

    include_usage: bool = False


class CommonRequest(Sampling):
    """The fields that chats and completions share."""

    model: str = ""
    max_tokens: int | None = Field(default=None, ge=0)
    seed: int | None = Field(default=None, ge=-(1 << 63), lt=1 << 63)
    stream: bool = False
    stream_options: StreamOptions | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_idle_fields(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name not in _IDLE and not _asks_nothing(name, value)}

    def limit(self) -> int:
        """Return the longest answer."""
        return NO_LIMIT if self.max_tokens is None else self.max_tokens

    def sampling_params(self) -> SamplingParams:
        """Return the engine's parameters."""
        shared = {name: getattr(self, name) for name in Sampling.model_fields}
        return SamplingParams(max_new_tokens=self.limit(), sampling_seed=self.seed, **shared)


class CompletionRequest(CommonRequest):
    """`/v1/completions`."""

    prompt: str | list[str] | list[int] | list[list[int]]

    def limit(self) -> int:
        return 16 if self.max_tokens is None else self.max_tokens  # OpenAI's default


class TextPart(BaseModel):
    """A piece of a message. The stand-in reads text only."""

    type: Literal["text"]
    text: str


def _parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class Message(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Annotated[list[TextPart] | None, BeforeValidator(_parts)] = None

    @model_validator(mode="after")
    def _says_something(self) -> Message:
        if self.content is None and self.role != "assistant":
            raise ValueError(f"the {self.role}'s content is missing")
        return self

    def plain(self) -> dict[str, Any]:
        """Return the message as chat templates want it."""
        return {**(self.model_extra or {}), "role": self.role, "content": "".join(part.text for part in self.content or ())}


class ChatCompletionRequest(CommonRequest):
    """`/v1/chat/completions`."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = Field(default=None, ge=0)
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    def limit(self) -> int:
        return super().limit() if self.max_completion_tokens is None else self.max_completion_tokens
