"""Is the server answering? `/health`, then one real request. Standard library HTTP, to the launched server only."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from sglang_plug.launch.arguments import EngineArguments
    from sglang_plug.launch.plan import Plan

PAUSE = 0.4
SLOWEST_ANSWER = 120.0


@dataclass(frozen=True)
class Question:
    """The first request: how it is sent, and what its answer shows."""

    method: str
    path: str
    body: dict[str, Any] | None
    shows: str


def first_question(plan: Plan) -> Question:
    """Return the cheapest request that goes through the whole engine.

    SGLang's diffusion server is only asked for its models. It would write a picture to the user's output folder, upload it where a cloud
    is configured, and not every model takes a small one; by itself it warms up with a request of its own before `/health` says 200, and
    writes nothing. The stand-in has no warm-up, and writes nothing either.
    """
    bare: dict[str, Any] = {"input_ids": [0]} if plan.arguments.on("bare") else {"text": "ready?"}
    if plan.runtime == "diffusion":
        if plan.engine == "sglang":
            return Question("GET", "/v1/models", None, "its models")
        picture = {"prompt": "ready?", "size": "64x64", "num_inference_steps": 1, "seed": 0, "response_format": "b64_json"}
        return Question("POST", "/v1/images/generations", picture, "one picture of 64x64, one step")
    if plan.arguments.on("embedding"):
        return Question("POST", "/encode", bare, "one embedding")
    return Question("POST", "/generate", bare | {"sampling_params": {"max_new_tokens": 1, "temperature": 0}}, "one token")


class Knocker:
    """Knocks at the server's door in a thread until it answers, and then tells `answered(seconds)` or `refused(why)`."""

    def __init__(self, plan: Plan, *, answered: Callable[[], None], refused: Callable[[str], None]) -> None:
        self._arguments, self._question = plan.arguments, first_question(plan)
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
            question = self._question
            status, said = ask(self._arguments, question.method, question.path, question.body, timeout=SLOWEST_ANSWER)
            if status == 200:
                self._answered()
                return
            if status is not None and status != 503:
                self._refused(f"{question.path} says HTTP {status}: {said[:300]}")
                return
            if said.startswith(TimeoutError.__name__):
                self._refused(f"{question.path} gave no answer within {SLOWEST_ANSWER:.0f} s; it is asked again")
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
