"""What is known to go wrong with hooks on some targets, and with some devices, whoever made them. Tables and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks.model import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENTRANCES = ("run_scheduler_process", "run_detokenizer_process", "run_data_parallel_controller_process")
_IDLE_LOOPS = ("get_next_batch_to_run", "recv_requests", "on_idle", "self_check_during_idle", "event_loop_normal", "event_loop_overlap")


def target_traps(target: str, kind: str, plugin: str | None) -> Iterator[Finding]:
    """Return what is known to go wrong with a hook on `target`, whoever registers it.

    Args:
        target: dotted or with a colon.
        kind: `before`, `after`, `around` or `replace`.
        plugin: who registers it.
    """
    path = target.replace(":", ".")
    last = path.rpartition(".")[2]
    subject = {"kind": "hook", "name": path, "target": path}
    who = plugin or "a plugin"
    if path.startswith("sglang.srt.") and last in _ENTRANCES:
        yield Finding(
            "SP060",
            Level.WARNING,
            subject,
            f"{who} hooks {last}, the function that a process is started with: it never fires there",
            cause="the child finds the original before it loads plugins; and through sgl.Engine pickling fails: not the same object",
            hint="hook what runs inside: Scheduler.__init__, DetokenizerManager.__init__, DataParallelController.__init__",
        )
    if path.startswith("sglang.srt.model_executor.model_runner."):
        yield Finding(
            "SP061",
            Level.WARNING,
            subject,
            f"{who} hooks {path}: model_runner is imported, and init_backend() runs, in every process that loads plugins",
            cause="SGLang calls init_backend() when model_runner is imported; in main that is before the arguments are parsed",
            hint="let init_backend() tolerate it, or hook TpModelWorker instead",
        )
    if path.startswith("sglang.srt.managers.scheduler.Scheduler.") and last in _IDLE_LOOPS and kind != "replace":
        yield Finding(
            "SP062",
            Level.WARNING,
            subject,
            f"{who} hooks {last}, which runs 500 to 3,000 times a second while the server is idle",
            hint="keep the hook to a counter: no print, no file, no lock; or hook run_batch",
        )


def foreign_device(device_type: str, platform: str) -> Iterator[Finding]:
    """SP063: a device type of its own must be known to torch when the platform's module is imported."""
    if device_type not in {"", "cpu", "cuda", "xpu", "npu", "musa", "mps", "hpu"}:
        yield Finding(
            "SP063",
            Level.WARNING,
            {"kind": "class", "name": platform},
            f"{platform} has device type {device_type!r}: torch must know it before init_backend() runs",
            cause="SGLang asks for torch.get_device_module() while it joins its processes, before init_backend()",
            hint="rename and register the device module at the import of the platform's module; `Stream` must exist in it",
        )
