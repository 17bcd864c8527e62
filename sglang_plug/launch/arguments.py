"""What the tool must know of the engine's arguments, read without touching them. SGLang alone judges the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sglang_plug.errors import UsageError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 30000
LAST_PORT = 65535
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared with, never bound

# The first spelling is the one that hints use.
SPELLINGS = {
    "model": ("--model-path", "--model"),
    "tokenizer": ("--tokenizer-path", "--tokenizer"),
    "host": ("--host",),
    "port": ("--port",),
    "tp": ("--tp-size", "--tensor-parallel-size", "--tp"),
    "dp": ("--dp-size", "--data-parallel-size", "--dp"),
    "pp": ("--pp-size", "--pipeline-parallel-size", "--pp"),
    "gpus": ("--num-gpus",),
    "nodes": ("--nnodes",),
    "tokenizers": ("--tokenizer-worker-num",),
    "detokenizers": ("--detokenizer-worker-num",),
    "key": ("--api-key",),
    "kind": ("--model-type",),
    "config": ("--config",),
    "certificate": ("--ssl-certfile",),
    "seed": ("--random-seed",),
}
COUNTS = ("tp", "dp", "pp", "gpus", "nodes", "tokenizers", "detokenizers")
SWITCHES = {
    "ray": ("--use-ray",),
    "embedding": ("--is-embedding",),
    "bare": ("--skip-tokenizer-init",),
    "grpc": ("--grpc-mode",),
    "http2": ("--enable-http2",),
    "webui": ("--webui",),
}


@dataclass(frozen=True)
class EngineArguments:
    """The engine's arguments, in the order and spelling of the user.

    Attributes:
        tokens: everything that goes to the engine, untouched.
    """

    tokens: tuple[str, ...] = ()

    def text(self, name: str) -> str | None:
        """Return the value of an option, the last one where it is given twice; None when absent."""
        value = None
        for index, token in enumerate(self.tokens):
            head, equals, tail = token.partition("=")
            if head in SPELLINGS[name]:
                value = tail if equals else self.tokens[index + 1] if index + 1 < len(self.tokens) else None
        return value

    def number(self, name: str, default: int = 1) -> int:
        """Return an option as a number; `default` when it is absent, or is none (the engine says so itself)."""
        text = self.text(name) or ""
        return int(text) if text.isascii() and text.isdigit() else default

    def on(self, name: str) -> bool:
        """Tell whether a switch is given."""
        return any(token in SWITCHES[name] for token in self.tokens)

    @property
    def model(self) -> str | None:
        """The model: `--model-path`, or the first argument where it is no option."""
        if self.tokens and not self.tokens[0].startswith("-"):
            return self.tokens[0]
        return self.text("model")

    @property
    def asks_for_help(self) -> bool:
        return "-h" in self.tokens or "--help" in self.tokens

    @property
    def host(self) -> str:
        return self.text("host") or DEFAULT_HOST

    @property
    def port(self) -> int:
        return self.number("port", DEFAULT_PORT)

    def require_port(self) -> None:
        """Refuse a port that no server can have.

        Raises:
            UsageError: `--port` is no number from 1 to 65535; whoever listens on 0 has a port that nobody knows.
        """
        text = self.text("port")
        if text is not None and not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= LAST_PORT):
            raise UsageError(f"not a port: {text!r}", subject=f"--port {text}", hint=f"name a number from 1 to {LAST_PORT}")

    def require_counts(self) -> None:
        """Refuse what is no number where the engine wants one, which it says only after its imports.

        Raises:
            UsageError: an option's value is not a whole number.
        """
        for name in COUNTS:
            text = self.text(name)
            if text is not None and not re.fullmatch(r"\s*[+-]?\d+(_\d+)*\s*", text):
                raise UsageError(f"not a number: {text!r}", subject=f"{SPELLINGS[name][0]} {text}", hint="name a whole number")

    @property
    def reachable_host(self) -> str:
        """The address under which this machine reaches the server."""
        return _ANYWHERE.get(self.host, self.host)

    @property
    def url(self) -> str:
        """Where requests go, e.g. `http://127.0.0.1:30000`."""
        host = f"[{self.reachable_host}]" if ":" in self.reachable_host else self.reachable_host
        return f"{'https' if self.text('certificate') else 'http'}://{host}:{self.port}"
