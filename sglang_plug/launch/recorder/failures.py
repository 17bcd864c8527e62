"""What the engine's loaders report as failed and then swallow, with the root of it. Standard library and Python 3.10 only."""

from __future__ import annotations

import importlib
import logging
from typing import Any

LOGGERS = ("sglang.srt.plugins", "sglang.multimodal_gen.runtime.platforms.plugins")


class Ear(logging.Handler):
    """Takes down what the loaders report as failed, which they swallow otherwise; the message's arguments name the subject.

    It listens as soon as this module is imported: all plugins are imported before the first callback runs.

    Attributes:
        targets: target -> why its hooks were not applied.
        plugins: by runtime, plugin -> why it failed.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.targets: dict[str, dict[str, Any]] = {}
        self.plugins: dict[str, dict[str, dict[str, Any]]] = {runtime: {} for runtime in ("srt", "diffusion")}

    def emit(self, record: logging.LogRecord) -> None:
        if logging.lastResort is not None and not _others_listen(logging.getLogger(record.name)):
            logging.lastResort.handle(record)  # which a logger with any handler, so with this one, leaves out
        if not record.exc_info or record.exc_info[1] is None or not isinstance(record.args, tuple) or not record.args:
            return
        subject, message = str(record.args[0]), str(record.msg)
        facts = describe(record.exc_info[1], subject)
        if "hooks to" in message:
            self.targets[subject] = facts
        else:
            runtime = "diffusion" if "multimodal_gen" in record.name else "srt"
            phase = "load" if "load" in message else "call"
            self.plugins[runtime][subject] = {"plugin": subject, "phase": phase, **facts}


def _others_listen(logger: logging.Logger | None) -> bool:
    """Tell whether any handler but ours hears what `logger` says."""
    while logger is not None:
        if any(not isinstance(handler, Ear) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def describe(error: BaseException, target: str) -> dict[str, Any]:
    """Return what failed and the root of it; a target's missing attribute often hides an import that failed."""
    root = error
    while root.__cause__ is not None or (root.__context__ is not None and not root.__suppress_context__):
        root = root.__cause__ or root.__context__ or root
    if isinstance(error, AttributeError):
        root = _hidden_import(target) or root
    return {"error": f"{type(error).__name__}: {error}", "cause": f"{type(root).__name__}: {root}"}


def _hidden_import(target: str) -> BaseException | None:
    """Import the target's parents one by one; return the first failure that is not simply the end of the modules."""
    parts = target.replace(":", ".").split(".")
    for end in range(1, len(parts)):
        name = ".".join(parts[:end])
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as exc:
            return None if exc.name == name or "is not a package" in str(exc) else exc
        except BaseException as exc:  # noqa: BLE001 - whatever a stranger's module raises is the answer
            return exc
    return None
