"""torch's profiler over one rank, with the platform's own activity."""

from __future__ import annotations

import os
import time
from typing import Any

from ..environ import envs
from ..platforms import current_platform


class Profiler:
    """One profile at a time."""

    def __init__(self) -> None:
        self._running: Any = None
        self._path = ""

    def start(self, rank: int, output_dir: str | None = None, activities: list[str] | None = None) -> None:
        """Begin; the trace goes to `output_dir`.

        Raises:
            RuntimeError: a profile is running.
            ValueError: neither torch nor the platform knows such an activity.
        """
        import torch

        if self._running is not None:
            raise RuntimeError("a profile is running")
        own = _platform_activity()
        known = {"CPU": torch.profiler.ProfilerActivity.CPU, **own}
        chosen = list(known) if activities is None else activities
        unknown = [name for name in chosen if name not in known]
        if unknown:
            raise ValueError(f"unknown activities {unknown}; this platform has {list(known)}")
        folder = output_dir or envs.SGLANG_TORCH_PROFILER_DIR.get()
        os.makedirs(folder, exist_ok=True)
        self._path = os.path.join(folder, f"{time.time():.0f}-TP-{rank}.trace.json")
        self._running = torch.profiler.profile(activities=[known[name] for name in chosen])
        self._running.start()

    def stop(self) -> str:
        """End, and return the trace's path.

        Raises:
            RuntimeError: no profile is running.
        """
        if self._running is None:
            raise RuntimeError("no profile is running")
        profile, self._running = self._running, None
        profile.stop()
        profile.export_chrome_trace(self._path)
        return self._path


def _platform_activity() -> dict[str, Any]:
    """Return the platform's own activity under its name; none where it has none."""
    try:
        return {current_platform.get_torch_profiler_activity_str(): current_platform.get_torch_profiler_activity()}
    except NotImplementedError:
        return {}
