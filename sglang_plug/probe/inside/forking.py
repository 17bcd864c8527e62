"""Whether strangers' code may run in a fork of this process, or needs an interpreter of its own: decided here, for all trials.

Asked before every trial, since `import sglang` itself may load what no fork survives.
"""

from __future__ import annotations

import os
import sys

#: Files that are open once a driver keeps a context for this process. Not those that a look at the hardware opens (NVML: nvidiactl).
CONTEXTS = ("/dev/nvidia-uvm", "/dev/kfd", "/dev/davinci", "/dev/mtgpu", "/dev/accel", "/dev/cambricon", "/dev/habanalabs")


def absent(asked: str = "auto") -> str | None:
    """Return why this system offers no fork that is safe, whatever the process has done; None where it does.

    `asked` is `auto`, `fork` (wherever there is one) or `spawn`.
    """
    if asked == "spawn":
        return "it was asked for"
    if not hasattr(os, "fork"):
        return "this Python has no os.fork"
    if asked == "auto" and not sys.platform.startswith("linux"):
        return f"the system libraries of {sys.platform} do not survive a fork"
    return None


def obstacle(asked: str = "auto") -> str | None:
    """Return why this process must not be forked for a trial now; None where it may.

    A fork inherits a driver's context that it cannot use, and locks that no thread of its own will release: those that a Python thread
    holds. Native threads alone are no obstacle: those that SGLang's import leaves are the sleeping pools of numerical libraries, which
    make their threads anew after a fork.
    """
    found = absent(asked)
    if found is not None or asked != "auto":
        return found
    from . import effects

    contexts = [*effects.devices(), *(name for name in effects.device_files() if name.startswith(CONTEXTS))]
    if contexts:
        return f"importing SGLang initialised an accelerator ({', '.join(contexts)})"
    threads = effects.other_threads()
    return f"importing SGLang started the thread {threads[0]!r}, whose locks a fork would keep for ever" if threads else None
