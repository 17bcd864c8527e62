"""Children end with their parent."""

from __future__ import annotations

from sglang_plug.core.spawn import die_with_parent


def kill_itself_when_parent_died() -> None:
    """Ask the kernel to kill this process when its parent dies (Linux); elsewhere do nothing."""
    die_with_parent()
