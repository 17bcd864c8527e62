"""What stands before every route: the size limit and the key. Plain ASGI, so that streams and disconnects pass untouched."""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_OPEN = ("/health", "/health_generate", "/metrics")


class Guard:
    """Refuses bodies above `limit` bytes with 413, and requests without the key with 401."""

    def __init__(self, app: Callable[..., Awaitable[None]], limit: int, api_key: str | None) -> None:
        self.app = app
        self.limit = limit
        self.api_key = api_key

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if self.api_key and scope["path"] not in _OPEN:
            given = headers.get(b"authorization", b"")
            if not hmac.compare_digest(given, f"Bearer {self.api_key}".encode()):
                await _refuse(send, 401, "the API key is missing or wrong", "AuthenticationError")
                return
        if int(headers.get(b"content-length", b"0") or 0) > self.limit:
            await self._too_large(send)
            return
        body = bytearray()
        more = scope["method"] in {"POST", "PUT"}
        while more:  # bodies without a length are counted as they come
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.limit:
                await self._too_large(send)
                return
        waiting = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Any:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, replay, send)

    async def _too_large(self, send: Any) -> None:
        await _refuse(send, 413, f"body: larger than {self.limit} bytes", "RequestEntityTooLarge")


async def _refuse(send: Any, status: int, message: str, kind: str) -> None:
    body = json.dumps({"object": "error", "message": message, "type": kind, "param": "body" if status == 413 else None, "code": status})
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
