"""`DetokenizerManager`: its own process, between scheduler and tokenizer manager. Turns tokens into text, and cuts it at stop strings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ..plugins import load_plugins
from .io_struct import BatchStrOutput, BatchTokenIDOutput, StrOutput, TokenOutput
from .tokenizer import IncrementalDecoder, Tokenizer
from .worker_bootstrap import failure

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from ..server_args import PortArgs, ServerArgs

logger = logging.getLogger(__name__)


class _Stream:
    """One request's text on its way out."""

    def __init__(self, tokenizer: Tokenizer, output: TokenOutput) -> None:
        self._decoder = IncrementalDecoder(tokenizer, output.skip_special_tokens)
        self._stop = output.stop
        self._held = ""

    def push(self, ids: list[int], final: bool, matched: Any) -> str:
        """Return new text. What may turn out to be the beginning of a stop string is held back."""
        text = self._held + self._decoder.push(ids, final)
        if final:
            return text.partition(matched)[0] if isinstance(matched, str) else text
        keep = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]


def _overlap(text: str, stop: str) -> int:
    """Return how much of the text's end is a beginning of `stop`, or already holds it."""
    at = text.rfind(stop)
    if at >= 0:
        return len(text) - at
    return next((size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0)


class DetokenizerManager:
    """Holds the text state of every request that is on its way."""

    def __init__(self, server_args: ServerArgs, port_args: PortArgs) -> None:
        import zmq

        self.tokenizer = Tokenizer(server_args.tokenizer_path or server_args.model_path)
        self.streams: dict[str, _Stream] = {}
        context = zmq.Context()
        self.inbox = context.socket(zmq.PULL)
        self.inbox.setsockopt(zmq.RCVHWM, 0)
        self.inbox.bind(port_args.detokenizer_ipc_name)
        self.outbox = context.socket(zmq.PUSH)
        self.outbox.setsockopt(zmq.SNDHWM, 0)
        self.outbox.connect(port_args.tokenizer_ipc_name)

    def event_loop(self) -> None:
        """Serve for ever."""
        while True:
            message = self.inbox.recv_pyobj()
            self.outbox.send_pyobj(self.handle_batch(message) if isinstance(message, BatchTokenIDOutput) else message)

    def handle_batch(self, batch: BatchTokenIDOutput) -> BatchStrOutput:
        """Return the text that one step added."""
        return BatchStrOutput([StrOutput(self.decode(output), output) for output in batch.outputs], batch.stats)

    def decode(self, output: TokenOutput) -> str:
        """Return one request's new text. A token that ended the answer is not part of it."""
        final = output.finish_reason is not None
        stream = self.streams.pop(output.rid, None) or _Stream(self.tokenizer, output)
        if not final:
            self.streams[output.rid] = stream
        matched = (output.finish_reason or {}).get("matched")
        ids = output.output_ids[:-1] if isinstance(matched, int) else output.output_ids
        return stream.push(ids, final, matched)


def run_detokenizer_process(server_args: ServerArgs, port_args: PortArgs, pipe_writer: Connection) -> None:
    """Be the detokenizer process; tell the parent when ready, or why not."""
    load_plugins()
    try:
        manager = DetokenizerManager(server_args, port_args)
    except Exception as error:  # noqa: BLE001 - the parent tells it, and ends the start
        pipe_writer.send(failure(error))
        raise SystemExit(1) from None
    pipe_writer.send({"status": "ready"})
    manager.event_loop()
