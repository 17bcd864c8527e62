"""What is counted is said in the right number."""

from __future__ import annotations

import pytest

from sglang_plug.wording import counted


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [(0, ("hook",), "0 hooks"), (1, ("hook",), "1 hook"), (2, ("hook",), "2 hooks"), (2, ("process", "processes"), "2 processes")],
)
def test_one_is_singular(count: int, words: tuple[str, ...], said: str):
    assert counted(count, *words) == said
