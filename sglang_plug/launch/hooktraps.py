"""What is known to go wrong with hooks on some targets, and with some devices, told as findings of `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_plug.checks.model import Finding, Level
from sglang_plug.contract import peculiarities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.contract.catalogue import Release

_TOLD = {
    "entrance": ("SP060", "it never fires there", "hook what runs inside"),
    "model-runner": ("SP061", "init_backend() runs in every process that loads plugins", "let init_backend() tolerate it"),
    "idle-loop": ("SP062", "it fires hundreds of times a second while the server is idle", "keep the hook to a counter; or hook run_batch"),
}


def target_traps(release: Release, target: str, kind: str, plugin: str | None) -> Iterator[Finding]:
    """Return what is known to go wrong with a hook on `target`, whoever registers it.

    Args:
        release: the catalogue's page.
        target: dotted or with a colon.
        kind: `before`, `after`, `around` or `replace`.
        plugin: who registers it.
    """
    path = target.replace(":", ".")
    for note in peculiarities.of(release, path, replaces=kind == "replace"):
        if note.trap not in _TOLD or (note.trap == "idle-loop" and kind == "replace"):
            continue
        code, what, hint = _TOLD[note.trap]
        yield Finding(
            code,
            Level.WARNING,
            {"kind": "hook", "name": path, "target": path},
            f"{plugin or 'a plugin'} hooks {path}: {what}",
            cause=f"SGLang {release.version} {note.text}",
            hint=f"{hint}: {note.instead}" if note.instead else hint,
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
