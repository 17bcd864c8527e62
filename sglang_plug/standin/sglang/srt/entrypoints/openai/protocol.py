"""What OpenAI's clients send, field by field. A field that would change the answer and that the stand-in does not compute is refused."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...sampling.sampling_params import SamplingParams

# Field -> the values that ask for nothing.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False, 0),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "tools": ([],),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "regex": (),
    "json_schema": (),
    "ebnf": (),
}


class StreamOptions(BaseModel):
    """Attributes: include_usage: end the stream with the token counts."""

    include_usage: bool = False


class CommonRequest(BaseModel):
    """The fields that chats and completions share."""

    model_config = ConfigDict(extra="allow", strict=True)

    model: str = ""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    seed: int | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None

    @model_validator(mode="after")
    def refuse_what_is_not_computed(self) -> CommonRequest:
        """Refuse active fields that the stand-in does not compute. Raises: ValueError."""
        for name, neutral in _UNSUPPORTED.items():
            value = (self.model_extra or {}).get(name)
            if value is not None and value not in neutral:
                raise ValueError(f"{name}: the stand-in does not support it")
        return self

    def limit(self) -> int | None:
        """Return the longest answer, None for as long as fits."""
        return self.max_tokens

    def sampling_params(self) -> SamplingParams:
        """Return the engine's parameters. Raises: FieldError."""
        chosen: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "sampling_seed": self.seed,
        }
        params = SamplingParams(
            max_new_tokens=self.limit(),
            stop=self.stop,
            stop_token_ids=self.stop_token_ids,
            ignore_eos=self.ignore_eos,
            skip_special_tokens=self.skip_special_tokens,
            **{name: value for name, value in chosen.items() if value is not None},
        )
        params.verify()
        return params


class CompletionRequest(CommonRequest):
    """`/v1/completions`."""

    prompt: str | list[str] | list[int] | list[list[int]]

    def limit(self) -> int | None:
        return 16 if self.max_tokens is None else self.max_tokens  # OpenAI's default

    def prompts(self) -> list[str | list[int]]:
        """Return the prompts one by one."""
        if isinstance(self.prompt, str) or (self.prompt and isinstance(self.prompt[0], int)):
            return [self.prompt]
        return list(self.prompt)  # type: ignore[arg-type]


class TextPart(BaseModel):
    """A piece of a message. The stand-in reads text only."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[TextPart] | None = None

    def plain(self) -> dict[str, Any]:
        """Return the message as chat templates want it."""
        content = self.content
        text = "".join(part.text for part in content) if isinstance(content, list) else content or ""
        return {**(self.model_extra or {}), "role": self.role, "content": text}


class ChatCompletionRequest(CommonRequest):
    """`/v1/chat/completions`."""

    messages: list[Message] = Field(min_length=1)
    max_completion_tokens: int | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    def limit(self) -> int | None:
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens
