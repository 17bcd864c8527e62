"""Text to tokens and back: pieces of a stream add up, stop strings never leak, chat templates stay in their sandbox."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sglang.srt.managers.detokenizer_manager import DetokenizerManager
from sglang.srt.managers.io_struct import TokenOutput
from sglang.srt.managers.tokenizer import IncrementalDecoder, Tokenizer
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models

from sglang_plug.standin.models import tiny_llama

if TYPE_CHECKING:
    from pathlib import Path

BYTES = Tokenizer(str(tiny_llama()))


def sentencepiece_like() -> Tokenizer:
    """Words with their spaces, and bytes for all else: decoding strips the first space and joins bytes to characters."""
    words = ["▁a", "▁bc", "d", "▁", *(f"<0x{number:02X}>" for number in range(256))]
    made = Tokenizer.__new__(Tokenizer)
    made.backend = Backend(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="d"))
    made.backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


WORDS = sentencepiece_like()


def stream(tokenizer: Tokenizer, pieces: list[list[int]]) -> str:
    decoder = IncrementalDecoder(tokenizer, True)
    return "".join(decoder.push(piece, final=index == len(pieces) - 1) for index, piece in enumerate(pieces))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(3, 258), max_size=4), min_size=1, max_size=60))
def test_pieces_of_any_bytes_add_up(pieces: list[list[int]]) -> None:
    """Byte-level tokens, most of them no characters at all."""
    assert stream(BYTES, pieces) == BYTES.decode([token for piece in pieces for token in piece])


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=1, max_size=80), st.integers(1, 3))
def test_pieces_of_text_add_up_to_the_text(text: str, size: int) -> None:
    ids = BYTES.encode(text)
    assert stream(BYTES, [ids[start : start + size] for start in range(0, len(ids), size)]) == text


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 2, *(4 + byte for byte in "é한".encode())]), min_size=1, max_size=80))
def test_pieces_of_words_and_characters_add_up(ids: list[int]) -> None:
    whole = WORDS.decode(ids)
    if "\ufffd" not in whole:
        assert stream(WORDS, [[token] for token in ids]) == whole


def test_a_character_comes_whole() -> None:
    decoder = IncrementalDecoder(BYTES, True)
    assert [decoder.push([token], final=False) for token in BYTES.encode("한é")] == ["", "", "한", "", "é"]


def test_a_long_stream_keeps_a_short_memory() -> None:
    decoder = IncrementalDecoder(BYTES, True)
    for token in BYTES.encode("The quick brown fox é ") * 50 + [200] * 300:
        decoder.push([token], final=False)
        assert len(decoder._ids) < 60


# -- stop strings


def detokenize(ids: list[int], stop: tuple[str, ...], matched: Any, size: int) -> tuple[list[str], str]:
    manager = DetokenizerManager.__new__(DetokenizerManager)
    manager.tokenizer, manager.streams = BYTES, {}
    texts = []
    for start in range(0, len(ids), size):
        last = start + size >= len(ids)
        reason = {"type": "stop", "matched": matched} if last else None
        texts.append(manager.decode(TokenOutput("r", ids[start : start + size], 1, 1, stop, True, reason)))
    assert not manager.streams
    return texts, "".join(texts)


@settings(max_examples=200, deadline=None)
@given(st.text("ab한", max_size=30), st.text("ab한", min_size=1, max_size=4), st.integers(1, 4))
def test_no_part_of_a_stop_text_is_ever_sent(before: str, stop: str, size: int) -> None:
    text = before + stop
    text = text[: text.index(stop) + len(stop)]  # the engine stops at the first
    _, whole = detokenize(BYTES.encode(text), (stop, "zz"), stop, size)
    assert whole == text[: -len(stop)]


def test_text_that_only_looked_like_a_stop_comes_later() -> None:
    manager = DetokenizerManager.__new__(DetokenizerManager)
    manager.tokenizer, manager.streams = BYTES, {}
    texts = [manager.decode(TokenOutput("r", BYTES.encode(c), 1, 1, ("stop",), True, None)) for c in "a sto!"]
    assert texts == ["a", " ", "", "", "", "sto!"]


def test_the_token_that_ends_an_answer_is_not_in_its_text() -> None:
    ids = BYTES.encode("abc")
    assert detokenize(ids, (), ids[-1], 2)[1] == "ab"


# -- tokenizer and template


def test_tokens_are_those_of_transformers() -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(tiny_llama())
    for text in ("Hello", " 안녕 é\n", "", "<s>x</s>"):
        assert BYTES.encode(text) == theirs.encode(text)
        assert BYTES.decode(BYTES.encode(text)) == theirs.decode(theirs.encode(text), skip_special_tokens=True)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "한 <b>"}]
    assert BYTES.apply_chat_template(messages) == theirs.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)


def folder_with(place: Path, template: Any = None, file: str | None = None) -> Tokenizer:
    folder = shutil.copytree(tiny_llama(), place / "model")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}))
    if file is not None:
        (folder / "chat_template.jinja").write_text(file)
    return Tokenizer(str(folder))


@pytest.mark.parametrize(
    ("template", "file", "prompt"),
    [
        ("{{ messages | length }}", None, "1"),
        ([{"name": "tools", "template": "x"}, {"name": "default", "template": "d"}], None, "d"),
        (None, "from the file", "from the file"),
        ("{% for m in messages %}\n{{ m | tojson }}{% break %}{% endfor %}", None, '{"content": "é"}'),
        ("{{ bos_token }}{{ thinking }}", None, "<s>yes"),
    ],
)
def test_templates_in_all_their_places(tmp_path: Path, template: Any, file: str | None, prompt: str) -> None:
    assert folder_with(tmp_path, template, file).apply_chat_template([{"content": "é"}], {"thinking": "yes"}) == prompt


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (None, "no chat template"),
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{% if %}", "refuses"),
    ],
)
def test_a_template_that_refuses_or_reaches_out_is_told(tmp_path: Path, template: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        folder_with(tmp_path, template).apply_chat_template([{"role": "user", "content": "x"}])


def test_a_folder_without_tokenizer_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot read .*tokenizer\.json"):
        Tokenizer(str(tmp_path))
