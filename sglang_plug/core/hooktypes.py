"""The words of the hook API: kinds of hooks, who registered one, and one hook. Values only."""

from __future__ import annotations

import contextvars
from collections.abc import Callable  # noqa: TC003 -- evaluated at run time, as below
from enum import Enum
from typing import Any, NamedTuple, Optional


class HookType(Enum):
    """How a hook meets its target (S9.1)."""

    BEFORE = "before"
    AFTER = "after"
    AROUND = "around"
    REPLACE = "replace"


class HookSource(NamedTuple):
    """The plugin that registered a hook."""

    plugin_name: str
    dist_name: Optional[str]  # noqa: UP045 -- evaluated at run time on Python 3.10 by typing.get_type_hints

    def __str__(self) -> str:
        return f"plugin={self.plugin_name}, dist={self.dist_name}" if self.dist_name else f"plugin={self.plugin_name}"


class Hook(NamedTuple):
    """One registered hook; unpacks as upstream's (type, function, source)."""

    type: HookType
    function: Callable[..., Any]
    source: Optional[HookSource]  # noqa: UP045 -- as above

    @property
    def origin(self) -> str:
        """The source in words."""
        return str(self.source) if self.source else "unknown"


# Shared by both runtimes: a plugin's callback runs for one of them at a time.
current_source: contextvars.ContextVar[HookSource | None] = contextvars.ContextVar("current_source", default=None)
