"""Many clients, some of whom go away: a thousand requests through `serve`, one in ten cancelled, and nothing is lost or kept."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request

import pytest

from tests.e2e.server import Server, serving

REQUESTS = 1000
TOKENS = 4
AT_ONCE = 64


async def _one(client, number: int) -> int | None:
    """Send one request; return how many tokens came, or None where it was cancelled after the first."""
    cancelled = number % 10 == 0
    body = {
        "text": f"request {number}",
        "stream": cancelled,
        "sampling_params": {"max_new_tokens": 500 if cancelled else TOKENS, "temperature": 0, "ignore_eos": True},
    }
    if not cancelled:
        answer = await client.post("/generate", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["meta_info"]["completion_tokens"]
    async with client.stream("POST", "/generate", json=body) as answer:
        async for _ in answer.aiter_lines():
            return None  # leaving the block closes the connection in the middle of the stream
    return None


async def _all(url: str) -> list[int | None]:
    import httpx

    limits = httpx.Limits(max_connections=AT_ONCE)
    async with httpx.AsyncClient(base_url=url, timeout=100, limits=limits) as client:
        return await asyncio.gather(*(_one(client, number) for number in range(REQUESTS)))


def used_tokens(server: Server) -> tuple[int, int]:
    """Return how many requests run and how many tokens of the cache are held."""
    with urllib.request.urlopen(f"{server.url}/get_server_info", timeout=30) as answer:
        load = json.load(answer)["internal_states"][0]
    return load["running"], load["used_tokens"]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_thousand_requests_and_a_hundred_that_go_away():
    with serving("--engine", "standin") as server:
        answers = asyncio.run(_all(server.url))
        assert answers.count(None) == REQUESTS // 10
        assert [answer for answer in answers if answer is not None] == [TOKENS] * (REQUESTS - REQUESTS // 10)
        deadline = time.monotonic() + 30
        while used_tokens(server) != (0, 0) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert used_tokens(server) == (0, 0)
