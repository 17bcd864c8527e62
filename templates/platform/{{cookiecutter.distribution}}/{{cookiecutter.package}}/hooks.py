{% if cookiecutter.hooks %}
"""Hooks: for what the platform's interface cannot express.

What the hardware needs to be correct belongs in the platform: a broken platform stops the server, a broken hook may not. Each
runtime has its own registry; a hook that is registered with the other one's never runs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

logger = logging.getLogger(__name__)
{% if cookiecutter.srt %}


def register() -> None:
    """Register the SRT hooks. SGLang calls it once in every process that loads plugins.

    Imports of `sglang` stay inside, so that importing this module first does no harm.
    """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register("sglang.srt.managers.scheduler.Scheduler.__init__", announce_scheduler, HookType.AROUND)


def announce_scheduler(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
    """Log that a scheduler is ready. AROUND: calls the original itself, and may decide not to."""
    original(self, *args, **kwargs)
    logger.info("{{ cookiecutter.package }}: scheduler ready in process %d", os.getpid())
{% endif %}
{% if cookiecutter.diffusion %}


def register_diffusion() -> None:
    """Register the diffusion hooks. They ship with the platform, so a failure of theirs stops the server."""
    from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType

    target = "sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.init_device_and_model"
    HookRegistry.register(target, announce_worker, HookType.AROUND)


def announce_worker(original: Callable[..., None], self: Any, *args: Any, **kwargs: Any) -> None:
    """Log that a worker has its model. The place for set-up that needs to know the rank."""
    original(self, *args, **kwargs)
    logger.info("{{ cookiecutter.package }}: worker ready in process %d", os.getpid())
{% endif %}
{% endif %}
