"""The engine's arguments are read in every spelling that SGLang takes, and never changed."""

from __future__ import annotations

import pytest

from sglang_plug.errors import UsageError
from sglang_plug.launch.arguments import EngineArguments


def read(text: str) -> EngineArguments:
    return EngineArguments(tuple(text.split()))


@pytest.mark.parametrize("text", ["--model-path m", "--model m", "--model-path=m", "m --port 1", "--port 1 --model=m"])
def test_the_model_in_every_spelling(text):
    assert read(text).model == "m"


@pytest.mark.parametrize("text", ["--tp-size 2", "--tp 2", "--tensor-parallel-size=2", "--tp-size 1 --tp-size 2"])
def test_the_last_spelling_of_a_number_counts(text):
    assert read(text).number("tp") == 2


def test_what_is_no_number_is_left_to_the_engine():
    assert read("--tp-size two").number("tp") == 1
    assert read("--tp-size").number("tp") == 1


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("", "http://127.0.0.1:30000"),
        ("--host 0.0.0.0 --port 8000", "http://127.0.0.1:8000"),
        ("--host :: --port=8000", "http://[::1]:8000"),
        ("--host 10.0.0.5", "http://10.0.0.5:30000"),
        ("--ssl-certfile cert.pem", "https://127.0.0.1:30000"),
    ],
)
def test_where_requests_go(text, url):
    assert read(text).url == url


def test_switches():
    assert read("--use-ray").on("ray")
    assert not read("--model-path --use-rayon").on("ray")


@pytest.mark.parametrize("text", ["99999", "0", "abc", "-1", "", "1e4", "9" * 5000])
def test_a_port_that_none_can_have(text):
    with pytest.raises(UsageError, match="not a port"):
        EngineArguments(("--port", text)).require_port()


@pytest.mark.parametrize("text", ["--num-gpus two", "--tp-size=", "--dp 1.5", "--tp 2 --tp x"])
def test_a_count_that_is_none(text):
    with pytest.raises(UsageError, match="not a number"):
        read(text).require_counts()


@pytest.mark.parametrize("text", ["", "--num-gpus 2", "--tp x --tp 2", "--dp-size=1", "--nnodes"])
def test_counts_that_are_left_to_the_engine(text):
    read(text).require_counts()


@pytest.mark.parametrize("tokens", [(), ("--port", "1"), ("--port=65535",), ("--port",)])
def test_ports_that_are_left_to_the_engine(tokens):
    EngineArguments(tokens).require_port()
