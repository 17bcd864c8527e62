"""The answer of the selection chain, with the trail that led to it. Values only: nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One rule that was tried.

    Attributes:
        rule: the rule's name, e.g. `selector`, `allowlist`, `activate`, `class`, `detect`, `fallback`.
        subject: what it looked at: a variable with its value, an entry point, a detector.
        verdict: `chosen`, `skipped`, `inactive`, `failed`, `absent`, `present`, `refused`, `unset`, `active`.
        why: the reason in words, with the root cause of a failure.
        seconds: how long it took, where that was measured.
        data: further facts for machines.
    """

    rule: str
    subject: str
    verdict: str
    why: str
    seconds: float | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Why a resolution ended in an error: the type that SGLang raises, its message, and the root cause."""

    type: str
    message: str
    cause: str | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Resolution:
    """Which platform a runtime uses, and how that came about.

    Attributes:
        runtime: `srt` or `diffusion`.
        outcome: `plugin`, `builtin` or `error`.
        name: the entry point's name, or the built-in's (`cpu`, `cuda`, …; `base` for the bare SRT platform).
        qualname: the class, as `module.Class` or `module:Class`, exactly as the callback returned it.
        dist: the distribution of the chosen plugin.
        steps: the trail, in the order in which the rules were tried.
        error: set when `outcome` is `error`.
    """

    runtime: str
    outcome: str
    name: str | None = None
    qualname: str | None = None
    dist: str | None = None
    steps: tuple[Step, ...] = ()
    error: Failure | None = None
