"""Is the server answering? `/health`, then one real request. Standard library HTTP, to the launched server only."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.launch.arguments import EngineArguments

PAUSE = 0.4
SLOWEST_ANSWER = 120.0


def probe_request(arguments: EngineArguments, runtime: str) -> tuple[str, str, dict[str, Any] | None]:
    """Return the cheapest request that goes through the whole engine: method, path and body.

    A picture or a video is never cheap: a diffusion server is asked for its models, after its own warm-up request.
    """
    if runtime != "srt":
        return "GET", "/v1/models", None
    if arguments.on("embedding"):
        return "POST", "/encode", {"input_ids": [0]} if arguments.on("bare") else {"text": "ready?"}
    question: dict[str, Any] = {"input_ids": [0]} if arguments.on("bare") else {"text": "ready?"}
    return "POST", "/generate", question | {"sampling_params": {"max_new_tokens": 1, "temperature": 0}}


class Knocker:
    """Knocks at the server's door in a thread until it answers, and then tells `answered(seconds)` or `refused(why)`."""

    def __init__(self, arguments: EngineArguments, runtime: str, *, answered: Callable[[], None], refused: Callable[[str], None]) -> None:
        self._arguments, self._runtime = arguments, runtime
        self._answered, self._refused = answered, refused
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._knock, name="readiness", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop knocking. Returns at once; a request on its way is forgotten."""
        self._stop.set()

    def _knock(self) -> None:
        while not self._stop.is_set():
            status, _ = ask(self._arguments, "GET", "/health", timeout=10)
            if status == 200:
                break
            self._stop.wait(PAUSE)
        while not self._stop.is_set():
            status, said = ask(self._arguments, *probe_request(self._arguments, self._runtime), timeout=SLOWEST_ANSWER)
            if status == 200:
                self._answered()
                return
            if status is not None and status != 503:
                self._refused(f"HTTP {status}: {said[:300]}")
                return
            self._stop.wait(PAUSE)


def ask(
    arguments: EngineArguments, method: str, path: str, body: dict[str, Any] | None = None, *, timeout: float
) -> tuple[int | None, str]:
    """Send one request; return status and text, or None and the reason when no answer came."""
    headers = {"Content-Type": "application/json"}
    if key := arguments.text("key"):
        headers["Authorization"] = f"Bearer {key}"
    if arguments.text("certificate"):  # our own server, on this machine: its certificate may bear another name
        context = ssl._create_unverified_context()  # noqa: S323
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            arguments.reachable_host, arguments.port, timeout=timeout, context=context
        )
    else:
        connection = http.client.HTTPConnection(arguments.reachable_host, arguments.port, timeout=timeout)
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as exc:
        return None, f"{type(exc).__name__}: {exc}"
    finally:
        connection.close()


def wait_for(arguments: EngineArguments, *, limit: float) -> bool:
    """Wait until `/health` answers 200; tell whether it did within `limit` seconds."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if ask(arguments, "GET", "/health", timeout=10)[0] == 200:
            return True
        time.sleep(PAUSE)
    return False
