"""Messages speak English."""

from __future__ import annotations

import pytest

from sglang_plug.core.words import a


@pytest.mark.parametrize(
    "words",
    ["an int", "a str", "an async generator", "an around", "an AFTER", "a before", "a user", "an unknown", "a OneTokenPool", "a union"],
)
def test_a_noun_gets_its_article(words: str) -> None:
    assert a(words.split(" ", 1)[1]) == words
