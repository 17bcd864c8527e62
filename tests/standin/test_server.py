"""The HTTP interface of a running engine: answers, streams, refusals, and what happens when clients go away."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest

from sglang_plug.standin.models import tiny_llama
from tests.standin.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMITS = ("--max-running-requests", "64", "--max-queued-requests", "192", "--max-request-bytes", "20000", "--context-length", "256")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(*LIMITS, "--served-model-name", "tiny") as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as opened:
        yield opened


@pytest.fixture(scope="module")
def api(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as opened:
        yield opened


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """What `transformers` says to the same prompts on the same weights."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tiny_llama()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    chat = tokenizer.apply_chat_template([{"role": "user", "content": "Say something."}], add_generation_prompt=True, tokenize=False)
    answers: dict[str, Any] = {"chat prompt": chat}
    for name, prompt in (("text", "The capital of France"), ("unicode", "안녕 é"), ("chat", chat)):
        ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        new = model.generate(**ids, max_new_tokens=24, do_sample=False)[0, ids["input_ids"].shape[1] :].tolist()
        answers[name] = {"prompt": prompt, "ids": new, "text": tokenizer.decode(new), "prompt_tokens": ids["input_ids"].shape[1]}
    return answers


def generate(client: httpx.Client, **fields: Any) -> Any:
    fields.setdefault("sampling_params", {"temperature": 0, "max_new_tokens": 24})
    answer = client.post("/generate", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(lines: Iterator[str]) -> list[Any]:
    """The stream's events; the last line says that it is whole."""
    found = [line.removeprefix("data: ") for line in lines if line]
    assert found[-1] == "[DONE]"
    return [json.loads(text) for text in found[:-1]]


def pages_come_free(client: httpx.Client) -> bool:
    """Wait until no request holds a page: the server hears of a departure when the system tells it."""
    deadline = time.monotonic() + 20
    while client.get("/get_server_info").json()["internal_states"][0]["used_tokens"]:
        if time.monotonic() > deadline:
            return False
    return True


# -- answers


@pytest.mark.parametrize("name", ["text", "unicode"])
def test_generate_equals_transformers(client: httpx.Client, expected: dict[str, Any], name: str) -> None:
    want = expected[name]
    answer = generate(client, text=want["prompt"])
    assert (answer["output_ids"], answer["text"]) == (want["ids"], want["text"])
    meta = answer["meta_info"]
    assert (meta["prompt_tokens"], meta["completion_tokens"]) == (want["prompt_tokens"], 24)
    assert meta["finish_reason"] == {"type": "length", "length": 24}


def test_a_list_is_answered_in_order_and_tokens_are_as_good_as_text(client: httpx.Client, expected: dict[str, Any]) -> None:
    many = generate(client, text=[expected["unicode"]["prompt"], expected["text"]["prompt"]])
    assert [answer["text"] for answer in many] == [expected["unicode"]["text"], expected["text"]["text"]]
    ids = list(expected["text"]["ids"])
    assert generate(client, input_ids=ids)["output_ids"] == generate(client, input_ids=[ids])[0]["output_ids"]


def test_a_stream_of_generate_grows_to_the_whole_answer(client: httpx.Client, expected: dict[str, Any]) -> None:
    body = {"text": expected["text"]["prompt"], "sampling_params": {"temperature": 0, "max_new_tokens": 24}, "stream": True}
    with client.stream("POST", "/generate", json=body) as answer:
        pieces = events(answer.iter_lines())
    assert pieces[-1]["text"] == expected["text"]["text"]
    assert all(later["text"].startswith(earlier["text"]) for earlier, later in itertools.pairwise(pieces))
    assert [piece["meta_info"]["finish_reason"] is None for piece in pieces] == [True] * (len(pieces) - 1) + [False]


def test_the_openai_client_chats(api: openai.OpenAI, expected: dict[str, Any]) -> None:
    messages: Any = [{"role": "user", "content": [{"type": "text", "text": "Say "}, {"type": "text", "text": "something."}]}]
    answer = api.chat.completions.create(model="tiny", messages=messages, temperature=0, max_tokens=24)
    assert answer.choices[0].message.content == expected["chat"]["text"]
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (expected["chat"]["prompt_tokens"], 24)


def test_the_openai_client_streams_chat(api: openai.OpenAI, expected: dict[str, Any]) -> None:
    messages: Any = [{"role": "user", "content": "Say something."}]
    stream = api.chat.completions.create(
        model="tiny", messages=messages, temperature=0, max_completion_tokens=24, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == expected["chat"]["text"]
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 24


def test_the_openai_client_completes(api: openai.OpenAI, expected: dict[str, Any]) -> None:
    prompts = [expected["text"]["prompt"], expected["unicode"]["prompt"]]
    answer = api.completions.create(model="tiny", prompt=prompts, temperature=0, max_tokens=24)
    assert [choice.text for choice in answer.choices] == [expected["text"]["text"], expected["unicode"]["text"]]
    stream = api.completions.create(model="tiny", prompt=prompts[0], temperature=0, max_tokens=24, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == expected["text"]["text"]


def test_a_stop_text_ends_the_answer_and_is_not_part_of_it(client: httpx.Client, api: openai.OpenAI, expected: dict[str, Any]) -> None:
    text = expected["text"]["text"]
    stop = text[9:12]
    want = text[: text.index(stop)]
    answer = generate(
        client, text=expected["text"]["prompt"], sampling_params={"temperature": 0, "max_new_tokens": 24, "stop": ["@@", stop]}
    )
    assert (answer["text"], answer["meta_info"]["finish_reason"]) == (want, {"type": "stop", "matched": stop})
    stream = api.completions.create(model="tiny", prompt=expected["text"]["prompt"], temperature=0, max_tokens=24, stop=stop, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == want


def test_a_stop_token_ends_the_answer(client: httpx.Client, expected: dict[str, Any]) -> None:
    ids = expected["text"]["ids"]
    params = {"temperature": 0, "max_new_tokens": 24, "stop_token_ids": [ids[5]]}
    answer = generate(client, text=expected["text"]["prompt"], sampling_params=params)
    first = ids.index(ids[5])
    assert answer["meta_info"]["finish_reason"] == {"type": "stop", "matched": ids[5]}
    assert answer["text"] == expected["text"]["text"][:first]


def test_a_seed_repeats_and_another_differs(client: httpx.Client) -> None:
    def draw(seed: int | None) -> Any:
        params = {"temperature": 1.5, "max_new_tokens": 16, "sampling_seed": seed, "ignore_eos": True}
        return generate(client, text="x", sampling_params=params)["output_ids"]

    assert draw(1) == draw(1)
    assert len({tuple(draw(seed)) for seed in (1, 2, 3)}) == 3
    assert draw(None) != draw(None)


def test_several_answers_to_one_prompt(client: httpx.Client, api: openai.OpenAI, expected: dict[str, Any]) -> None:
    prompts = [expected["text"]["prompt"], expected["unicode"]["prompt"]]
    answer = api.completions.create(model="tiny", prompt=prompts, temperature=0, max_tokens=24, n=2)
    assert [choice.text for choice in answer.choices] == [expected["text"]["text"]] * 2 + [expected["unicode"]["text"]] * 2
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == expected["text"]["prompt_tokens"] + expected["unicode"]["prompt_tokens"]
    params = {"temperature": 1.5, "max_new_tokens": 8, "ignore_eos": True, "sampling_seed": 5, "n": 3}
    drawn = [[answer["output_ids"] for answer in generate(client, text="x", sampling_params=params)] for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert len(set(map(tuple, drawn[0]))) == 3


def test_top_k_of_one_is_greedy(client: httpx.Client, expected: dict[str, Any]) -> None:
    params = {"temperature": 1, "top_k": 1, "max_new_tokens": 24}
    assert generate(client, text=expected["text"]["prompt"], sampling_params=params)["output_ids"] == expected["text"]["ids"]


def test_without_a_limit_the_answer_fills_the_context(api: openai.OpenAI) -> None:
    answer = api.chat.completions.create(
        model="tiny", messages=[{"role": "user", "content": "x"}], temperature=0, extra_body={"ignore_eos": True}
    )
    assert answer.usage is not None
    assert answer.usage.total_tokens == 256


def test_no_new_tokens_is_an_empty_answer(client: httpx.Client) -> None:
    answer = generate(client, text="x", sampling_params={"max_new_tokens": 0})
    assert (answer["text"], answer["output_ids"]) == ("", [])


# -- information


def test_models_health_and_information(api: openai.OpenAI, client: httpx.Client) -> None:
    assert [(m.id, m.model_extra["max_model_len"]) for m in api.models.list() if m.model_extra] == [("tiny", 256)]
    assert client.get("/health").status_code == 200
    info = client.get("/get_server_info").json()
    assert info["version"] == "0.5.23+standin"
    assert info["scheduler_info"][0]["platform"] == "CpuSRTPlatform(device=cpu)"
    assert "api_key" not in info
    assert client.get("/get_model_info").json()["is_generation"] is True


def metric(client: httpx.Client, name: str) -> float:
    found = re.search(rf'^sglang:{name}{{model_name="tiny"}} (\S+)$', client.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_metrics_count(client: httpx.Client) -> None:
    before = metric(client, "generation_tokens_total"), metric(client, "num_requests_total")
    generate(client, text="x", sampling_params={"temperature": 0, "max_new_tokens": 5})
    assert (metric(client, "generation_tokens_total"), metric(client, "num_requests_total")) == (before[0] + 5, before[1] + 1)


def test_the_cache_can_be_flushed_when_idle(client: httpx.Client) -> None:
    assert client.post("/flush_cache").json()["success"] is True


def test_a_profile_is_written(client: httpx.Client, tmp_path: Any) -> None:
    assert client.post("/stop_profile").status_code == 400
    assert client.post("/start_profile", json={"output_dir": str(tmp_path), "activities": ["CPU"]}).status_code == 200
    generate(client, text="x")
    path = client.post("/stop_profile").json()["path"]
    with open(path) as file:
        assert json.load(file)["traceEvents"]


def test_commands_refuse_what_they_do_not_know_and_serve_on(client: httpx.Client) -> None:
    for body in ({"bogus": 1}, {"output_dir": 5}, {"output_dir": "/proc/nowhere"}, {"activities": ["TPU"]}, []):
        assert client.post("/start_profile", json=body).status_code == 400, body
    assert generate(client, text="x")["meta_info"]["completion_tokens"] == 24


# -- refusals

HELLO = [{"role": "user", "content": "x"}]
PICTURE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}
SAMPLING = [
    ("temperature", -1),
    ("temperature", "hot"),
    ("top_p", 0),
    ("top_p", 2),
    ("top_k", 0),
    ("max_new_tokens", -1),
    ("max_new_tokens", 1.5),
    ("stop", 7),
    ("stop", [""]),
    ("stop_token_ids", "x"),
    ("sampling_seed", 2**63),
    ("best_guess", 1),
    ("skip_special_tokens", "no"),
    ("ignore_eos", 1),
    ("temperature", True),
    ("top_p", 10**400),
    ("frequency_penalty", 3),
    ("presence_penalty", "x"),
    ("repetition_penalty", 0),
    ("n", 0),
    ("n", 1000),
    ("logit_bias", {"5": 1}),
]


@pytest.mark.parametrize(("field", "value"), SAMPLING)
def test_a_bad_sampling_field_is_named(client: httpx.Client, field: str, value: Any) -> None:
    answer = client.post("/generate", json={"text": "x", "sampling_params": {field: value}})
    assert answer.status_code == 400
    assert answer.json()["param"].removesuffix(".0") == f"sampling_params.{field}"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": "x", "input_ids": [1]}, "text"),
        ({"text": ""}, "text"),
        ({"text": 7}, "text"),
        ({"text": []}, "text"),
        ({"input_ids": [320]}, "input_ids"),
        ({"input_ids": [-1]}, "input_ids"),
        ({"input_ids": [True]}, "input_ids"),
        ({"text": "x" * 256}, "text"),
        ({"text": "x", "sampling_params": []}, "sampling_params"),
        ({"text": ["a", "b"], "stream": True}, "stream"),
        ({"text": "x", "rid": 5}, "rid"),
        ({"text": "x", "return_logprob": True}, "return_logprob"),
        ({"text": "x", "lora_path": "y"}, "lora_path"),
        ({"text": "x", "stream": 1}, "stream"),
        ({"text": "x", "sampling_params": {"n": 2}, "stream": True}, "stream"),
        ({"input_ids": [1, "a"]}, "input_ids"),
        ({"input_ids": [[1], 2]}, "input_ids"),
        ({"input_ids": [10**30]}, "input_ids"),
        ([], "body"),
    ],
)
def test_a_bad_generate_field_is_named(client: httpx.Client, body: Any, field: str) -> None:
    answer = client.post("/generate", json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["param"] == field


@pytest.mark.parametrize(
    ("path", "fields", "field"),
    [
        ("chat/completions", {"messages": []}, "messages"),
        ("chat/completions", {"messages": None}, "messages"),
        ("chat/completions", {"messages": [None]}, "messages.0"),
        ("chat/completions", {"messages": [{"content": "x"}]}, "messages.0.role"),
        ("chat/completions", {"messages": [{"role": "wizard", "content": "x"}]}, "messages.0.role"),
        ("chat/completions", {"messages": [{"role": "user"}]}, "messages.0"),
        ("chat/completions", {"messages": [{"role": "user", "content": [PICTURE]}]}, "messages.0.content.0.type"),
        ("chat/completions", {"messages": HELLO, "temperature": "hot"}, "temperature"),
        ("chat/completions", {"messages": HELLO, "temperature": -1}, "temperature"),
        ("chat/completions", {"messages": HELLO, "max_tokens": 1.5}, "max_tokens"),
        ("chat/completions", {"messages": HELLO, "max_completion_tokens": -1}, "max_completion_tokens"),
        ("chat/completions", {"messages": HELLO, "seed": 2**70}, "seed"),
        ("chat/completions", {"messages": HELLO, "stop": ["x"] * 17}, "stop"),
        ("chat/completions", {"messages": HELLO, "n": "2"}, "n"),
        ("chat/completions", {"messages": HELLO, "n": 2, "stream": True}, "n"),
        ("chat/completions", {"messages": HELLO, "logprobs": True}, "logprobs"),
        ("chat/completions", {"messages": HELLO, "logit_bias": {"5": 1}}, "logit_bias"),
        ("chat/completions", {"messages": HELLO, "response_format": {"type": "json_object"}}, "response_format"),
        ("chat/completions", {"messages": HELLO, "tools": [{}]}, "tools"),
        ("chat/completions", {"messages": HELLO, "no_such_field": 1}, "no_such_field"),
        ("chat/completions", {"messages": HELLO, "top_p": 7}, "top_p"),
        ("chat/completions", {"messages": HELLO, "chat_template_kwargs": {"messages": 1}}, "messages"),
        ("chat/completions", {"messages": [{"role": "user", "content": "x" * 300}]}, "messages"),
        ("completions", {"prompt": 5}, "prompt"),
        ("completions", {"prompt": [1, "a"]}, "prompt"),
        ("completions", {"prompt": "x", "echo": True}, "echo"),
        ("completions", {"prompt": "x", "logprobs": 0}, "logprobs"),
        ("completions", {}, "prompt"),
        ("completions", {"prompt": []}, "prompt"),
        ("completions", {"prompt": ["a", "b"], "stream": True}, "prompt"),
        ("completions", {"prompt": "x", "max_tokens": -2}, "max_tokens"),
        ("completions", {"prompt": "x" * 300}, "prompt"),
    ],
)
def test_a_bad_openai_field_is_named(client: httpx.Client, path: str, fields: Any, field: str) -> None:
    answer = client.post(f"/v1/{path}", json={"model": "tiny", **fields})
    assert answer.status_code == 400, answer.text
    assert answer.json()["param"] == field


def test_fields_that_ask_for_nothing_are_taken(client: httpx.Client) -> None:
    idle = {"user": "me", "metadata": {}, "store": False, "n": 1, "logprobs": False, "top_logprobs": 0, "logit_bias": {}, "tools": []}
    idle |= {"tool_choice": "auto", "modalities": ["text"], "response_format": {"type": "text"}, "stop": None, "seed": None, "top_p": None}
    answer = client.post("/v1/chat/completions", json={"messages": HELLO, "max_tokens": 1, **idle})
    assert answer.status_code == 200, answer.text
    text = {"prompt": "x", "max_tokens": 1, "echo": False, "suffix": "", "best_of": 1, "logprobs": None}
    assert client.post("/v1/completions", json=text).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff\xfe", b"null", b"[" * 5000 + b"]" * 5000, b'{"text": "\\ud83d"}', b'{"temperature": NaN}']
)
def test_a_body_that_is_no_json_object_is_refused(client: httpx.Client, body: bytes) -> None:
    for path in ("/generate", "/v1/chat/completions", "/v1/completions"):
        answer = client.post(path, content=body)
        assert answer.status_code == 400, (path, answer.text)


def test_the_openai_client_reads_a_refusal(api: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        api.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}], temperature=-3)
    assert refused.value.param == "temperature"


def test_a_large_body_is_refused_with_and_without_its_length(client: httpx.Client) -> None:
    large = json.dumps({"text": "x" * 30000}).encode()
    assert client.post("/generate", content=large).status_code == 413
    assert client.post("/generate", content=iter([large[:15000], large[15000:]])).status_code == 413


# -- many clients


def run_streams(server: Server, count: int, tokens: int, leave: int = 0) -> list[Any]:
    """Stream `count` answers at once; every `leave`-th client goes away after its third piece."""

    async def one(client: httpx.AsyncClient, number: int) -> Any:
        body = {
            "text": f"prompt {number % 10}",
            "sampling_params": {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True},
            "stream": True,
        }
        async with client.stream("POST", "/generate", json=body) as answer:
            if answer.status_code != 200:
                return answer.status_code
            pieces, last = 0, ""
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    last, pieces = line, pieces + 1
                if leave and number % leave == 0 and pieces == 3:
                    return None
            return tuple(json.loads(last.removeprefix("data: "))["output_ids"])

    async def everybody() -> list[Any]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(base_url=server.url, timeout=100, limits=limits) as client:
            return await asyncio.gather(*(one(client, number) for number in range(count)))

    return asyncio.run(everybody())


def test_two_hundred_streams_lose_nothing(server: Server, client: httpx.Client) -> None:
    answers = run_streams(server, 200, 12)
    assert {len(answer) for answer in answers} == {12}
    assert all(len(set(answers[prompt::10])) == 1 for prompt in range(10)), "the same prompt, another answer"
    assert pages_come_free(client)


def test_clients_that_leave_free_their_pages(server: Server, client: httpx.Client) -> None:
    before = metric(client, "generation_tokens_total")
    answers = run_streams(server, 60, 200, leave=2)
    assert sum(answer is None for answer in answers) == 30
    assert {len(answer) for answer in answers if answer is not None} == {200}
    assert pages_come_free(client)
    spent = metric(client, "generation_tokens_total") - before
    assert 30 * 200 < spent < 45 * 200, "those who left went on generating"


def test_a_waiting_client_that_leaves_is_forgotten(server: Server, client: httpx.Client) -> None:
    body = {"text": "x", "sampling_params": {"temperature": 0, "max_new_tokens": 200, "ignore_eos": True}}
    before = metric(client, "num_aborted_requests_total")
    with httpx.Client(base_url=server.url, timeout=0.05) as hasty:
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                hasty.post("/generate", json=body)
    assert pages_come_free(client)
    assert metric(client, "num_aborted_requests_total") == before + 3


def test_a_full_queue_answers_503(server: Server) -> None:
    answers = run_streams(server, 320, 60)
    served = [answer for answer in answers if answer != 503]
    assert 0 < answers.count(503) <= 64
    assert {len(answer) for answer in served} == {60}
