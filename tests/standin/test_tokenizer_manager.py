"""The tokenizer manager between a fast engine and a slow client: nothing that arrives is lost."""

from __future__ import annotations

import asyncio
import types
from typing import Any

import pytest
from sglang.srt.managers.io_struct import BatchStrOutput, GenerateReqInput, SchedulerStats, StrOutput, TokenOutput
from sglang.srt.managers.tokenizer_manager import Counters, EngineDied, QueueFull, TokenizerManager
from sglang.srt.sampling.sampling_params import FieldError


class Outbox:
    """Where messages to the scheduler go."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send_pyobj(self, message: Any) -> asyncio.Future[None]:
        self.sent.append(message)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


def manager() -> Any:
    made = TokenizerManager.__new__(TokenizerManager)
    made.server_args = types.SimpleNamespace(max_running_requests=1, max_queued_requests=1)
    made.rid_to_state, made.controls, made.died = {}, {}, None
    made.counters, made.stats = Counters(), SchedulerStats()
    made.sequence_limit, made.vocab_size = 100, 300
    made._outbox = Outbox()
    return made


def news(rid: str, token: int, *, final: bool = False) -> BatchStrOutput:
    reason = {"type": "stop"} if final else None
    return BatchStrOutput([StrOutput(chr(token), TokenOutput(rid, [token], 1, 1, finish_reason=reason))], SchedulerStats())


@pytest.mark.parametrize("incremental", [True, False])
def test_a_slow_client_gets_everything(incremental: bool) -> None:
    async def run() -> tuple[str, list[int]]:
        made = manager()
        request = GenerateReqInput(input_ids=[1], rid="r", stream=True, incremental=incremental)
        text, ids, number = "", [], 65
        answers = made.generate_request(request)
        task = asyncio.ensure_future(anext(answers))
        await asyncio.sleep(0)
        made._take(news("r", number))
        answer = await task
        while True:
            text, ids = (text + answer["text"], ids + answer["output_ids"]) if incremental else (answer["text"], list(answer["output_ids"]))
            if answer["meta_info"]["finish_reason"]:
                return text, ids
            for _ in range(2):  # two more arrive while the client has the last answer in its hands
                number += 1
                made._take(news("r", number, final=number == 69))
            answer = await anext(answers)

    assert asyncio.run(run()) == ("ABCDE", [65, 66, 67, 68, 69])


def test_the_queue_has_an_end_and_a_name_is_taken_once() -> None:
    async def run() -> None:
        made = manager()
        streams = [made.generate_request(GenerateReqInput(input_ids=[1], rid=name)) for name in "ab"]
        tasks = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            made.admit(GenerateReqInput(input_ids=[1]))
        made._take(news("a", 65, final=True))
        await tasks[0]
        await streams[0].aclose()
        with pytest.raises(FieldError, match="rid"):
            made.admit(GenerateReqInput(input_ids=[1], rid="b"))
        made.fail_all("it died")
        with pytest.raises(EngineDied, match="it died"):
            await tasks[1]
        with pytest.raises(EngineDied):
            made.admit(GenerateReqInput(input_ids=[1]))

    asyncio.run(run())


def test_one_failing_request_of_several_aborts_the_others() -> None:
    async def run() -> list[str]:
        made = manager()
        made.server_args.max_queued_requests = 8
        requests = [GenerateReqInput(input_ids=[1], rid=name) for name in ("a", "b", "a")]
        with pytest.raises(FieldError, match="rid"):
            await made.complete(requests)
        await asyncio.sleep(0)
        assert not made.rid_to_state
        return sorted(type(message).__name__ + message.rid for message in made._outbox.sent)

    assert asyncio.run(run()) == ["AbortReqa", "AbortReqb", "TokenizedGenerateReqInputa", "TokenizedGenerateReqInputb"]
