"""Chats and completions: the client's words in, the engine's answer out, whole or as a stream of events."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from ...sampling.sampling_params import FieldError
from ..generate import each, requests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ...managers.io_struct import GenerateReqInput
    from ...managers.tokenizer_manager import TokenizerManager
    from .protocol import ChatCompletionRequest, CommonRequest, CompletionRequest


class Serving:
    """One kind of answer. Subclasses say how a request is read and an answer written."""

    kind = ""
    chunk_kind = ""
    prefix = ""

    def __init__(self, manager: TokenizerManager) -> None:
        self.manager = manager

    def inputs(self, request: Any) -> list[GenerateReqInput]:
        """Return what the engine is asked. Raises: FieldError."""
        raise NotImplementedError

    def choice(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        """Return one whole answer."""
        raise NotImplementedError

    def delta(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        """Return one piece of an answer."""
        raise NotImplementedError

    def opening(self) -> list[dict[str, Any]]:
        """Return what comes before the first piece."""
        return []

    def prepare(self, request: CommonRequest) -> list[GenerateReqInput]:
        """Return the engine's requests. Raises: FieldError."""
        inputs = self.inputs(request)
        if request.stream and len(inputs) > 1:
            raise FieldError("n" if request.n > 1 else "prompt", "a stream gives one answer to one prompt")
        for item in inputs:
            item.stream = item.incremental = request.stream
        return inputs

    async def complete(self, request: CommonRequest, inputs: list[GenerateReqInput]) -> dict[str, Any]:
        """Return the whole answer."""
        answers = await self.manager.complete(inputs)
        metas = [answer["meta_info"] for answer in answers]
        choices = [self.choice(i, answer["text"], _reason(answer)) for i, answer in enumerate(answers)]
        return {**self._head(request, self.kind), "choices": choices, "usage": _usage(metas, request.n)}

    async def stream(self, request: CommonRequest, item: GenerateReqInput) -> AsyncIterator[str]:
        """Yield the answer as server-sent events."""
        head = self._head(request, self.chunk_kind)
        meta: dict[str, Any] = {}
        async for answer in self.manager.generate_request(item):
            for opening in () if meta else self.opening():
                yield _event({**head, "choices": [opening]})
            meta = answer["meta_info"]
            if answer["text"] or meta["finish_reason"]:
                yield _event({**head, "choices": [self.delta(0, answer["text"], _reason(answer))]})
        if request.stream_options is not None and request.stream_options.include_usage:
            yield _event({**head, "choices": [], "usage": _usage([meta])})
        yield "data: [DONE]\n\n"

    def _head(self, request: CommonRequest, kind: str) -> dict[str, Any]:
        name = request.model or self.manager.server_args.served_model_name
        return {"id": f"{self.prefix}-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": name}


class ServingChat(Serving):
    """`/v1/chat/completions`."""

    kind, chunk_kind, prefix = "chat.completion", "chat.completion.chunk", "chatcmpl"

    def inputs(self, request: ChatCompletionRequest) -> list[GenerateReqInput]:
        messages = [message.plain() for message in request.messages]
        try:
            prompt = self.manager.tokenizer.apply_chat_template(messages, request.chat_template_kwargs)
        except ValueError as error:
            raise FieldError("messages", str(error)) from error
        inputs = requests("messages", [prompt], request.sampling_params())
        for item in inputs:
            item.add_special_tokens = False  # the template has put them
        return inputs

    def choice(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": reason, "logprobs": None}

    def delta(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": index, "delta": {"content": text}, "finish_reason": reason, "logprobs": None}

    def opening(self) -> list[dict[str, Any]]:
        return [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None, "logprobs": None}]


class ServingCompletion(Serving):
    """`/v1/completions`."""

    kind = chunk_kind = "text_completion"
    prefix = "cmpl"

    def inputs(self, request: CompletionRequest) -> list[GenerateReqInput]:
        if not (prompts := each(request.prompt)):
            raise FieldError("prompt", "there is none")
        return requests("prompt", prompts, request.sampling_params())

    def choice(self, index: int, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": index, "text": text, "finish_reason": reason, "logprobs": None}

    delta = choice


def _reason(answer: dict[str, Any]) -> str | None:
    reason = answer["meta_info"]["finish_reason"]
    return reason and reason["type"]


def _usage(metas: list[dict[str, Any]], answers: int = 1) -> dict[str, int]:
    """Return the token counts; a prompt with several answers counts once."""
    prompt = sum(meta["prompt_tokens"] for meta in metas[::answers])
    answer = sum(meta["completion_tokens"] for meta in metas)
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"
