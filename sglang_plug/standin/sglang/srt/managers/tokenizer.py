"""`Tokenizer`: a model folder's tokenizer.json and chat template. Text to tokens and back, piece by piece."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_REPLACEMENT = "\ufffd"
_WINDOW = 24


class Tokenizer:
    """The tokenizer of a folder.

    Raises:
        ValueError: there is no usable tokenizer.json.
    """

    def __init__(self, folder: str, chat_template: str | None = None) -> None:
        from tokenizers import Tokenizer as Backend

        place = Path(folder)
        try:
            self.backend = Backend.from_file(str(place / "tokenizer.json"))
        except Exception as error:  # the library raises bare exceptions
            raise ValueError(f"cannot read {place / 'tokenizer.json'}: {error}") from error
        self.vocab_size = self.backend.get_vocab_size()
        self.config = _read(place / "tokenizer_config.json")
        separate = place / "chat_template.jinja"
        if chat_template is not None:
            self.template: Any = Path(chat_template).read_text(encoding="utf-8")
        else:
            self.template = separate.read_text(encoding="utf-8") if separate.exists() else self.config.get("chat_template")

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Return the text's tokens."""
        return self.backend.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
        """Return the tokens' text."""
        return self.backend.decode(ids, skip_special_tokens=skip_special_tokens)

    def apply_chat_template(self, messages: list[dict[str, Any]], variables: dict[str, Any] | None = None) -> str:
        """Return the prompt for a conversation. The template runs in a sandbox: it comes with the model.

        Raises:
            ValueError: there is no template, or it refuses the messages.
        """
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        template = self.template
        if isinstance(template, list):
            template = {entry["name"]: entry["template"] for entry in template}.get("default")
        if not isinstance(template, str):
            raise ValueError("this model has no chat template; use /generate or /v1/completions, or give --chat-template")

        def refuse(message: str) -> None:
            raise TemplateError(message)

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.globals["raise_exception"] = refuse
        environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
        special = {name: _text(self.config.get(name)) for name in ("bos_token", "eos_token", "pad_token", "unk_token")}
        try:
            return environment.from_string(template).render(
                messages=messages, **{"add_generation_prompt": True, **special, **(variables or {})}
            )
        except (TemplateError, TypeError) as error:
            raise ValueError(f"the chat template refuses these messages: {error}") from error


class IncrementalDecoder:
    """Turns a growing list of tokens into pieces of text whose sum is the text of all tokens.

    Text that may still change is held back: a replacement character at the end may be the beginning of a longer character.
    Old tokens are let go where their text no longer depends on what follows, so a step's cost does not grow.
    """

    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool) -> None:
        self._tokenizer = tokenizer
        self._skip = skip_special_tokens
        self._ids: list[int] = []
        self._sent = 0

    def push(self, ids: list[int], final: bool) -> str:
        """Return the text that these tokens make certain; all of it with the last ones."""
        self._ids += ids
        text = self._decode(self._ids)
        held = 0 if final else len(text) - len(text.rstrip(_REPLACEMENT))
        safe = len(text) - (held if held <= 8 else 3)  # so long a run is no character in the making
        piece = text[self._sent : safe]
        self._sent = max(self._sent, safe)
        if len(self._ids) > _WINDOW and not final:
            self._let_go(text)
        return piece

    def _let_go(self, text: str) -> None:
        for keep in range(4, 12):
            tail = self._decode(self._ids[-keep:])
            cut = len(text) - len(tail)
            if text.endswith(tail) and cut <= self._sent and not tail.startswith(_REPLACEMENT):
                self._ids = self._ids[-keep:]
                self._sent -= cut
                return

    def _decode(self, ids: list[int]) -> str:
        return self._tokenizer.decode(ids, self._skip)


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}


def _text(token: Any) -> str:
    """Return a special token's text; folders write it plainly or as an object."""
    return str(token.get("content", "")) if isinstance(token, dict) else token or ""
