"""Looks over the engine's shoulder while it starts: is it the platform that was promised, and did the required hooks arrive?

The preflight decides without importing SGLang; the guard reads what the recorder saw inside the engine's own processes, long before
the model is loaded. Together they cost a start next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from sglang_plug.checks.model import Finding, Level
from sglang_plug.contract import catalogue
from sglang_plug.launch import recording
from sglang_plug.launch.hooktraps import foreign_device, target_traps

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.launch.preflight import Preflight
    from sglang_plug.launch.recording import HookRecord, ProcessRecord

_HOST = "sglang."


class Audience(Protocol):
    """Who is told what the guard sees."""

    def process(self, record: ProcessRecord) -> None: ...
    def finding(self, finding: Finding) -> None: ...


@dataclass
class Guard:
    """Reads the records of one launch as they appear.

    Args:
        folder: where the records go.
        flight: what the preflight promised.
        allowed: codes that do not stop the launch.
        audience: is told of each process once, and of each finding once.
    """

    folder: Path
    flight: Preflight
    allowed: Collection[str]
    audience: Audience
    fatal: list[Finding] = field(default_factory=list)
    _seen: set[tuple[int, str]] = field(default_factory=set)
    _told: set[tuple[str, str]] = field(default_factory=set)
    _registering: set[str | None] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._told.update((finding.code, finding.subject["name"]) for finding in self.flight.findings if finding.level is not Level.ERROR)

    @property
    def blind(self) -> bool:
        """Whether no process has written a record: what serves is then known from the preflight alone."""
        return not self._seen

    def look(self) -> str | None:
        """Read what is new; return a reason to end the launch, or None."""
        for record in recording.read_processes(self.folder)[0]:
            if (record.pid, record.runtime) in self._seen:
                continue
            self._seen.add((record.pid, record.runtime))
            if record.runtime == self.flight.plan.runtime or record.hooks:  # the other runtime's platform, in passing, serves nothing
                self.audience.process(record)
            self._registering.update(hook.plugin for hook in record.hooks)
            for finding in self._judge(record):
                self._tell(finding)
        return self.fatal[0].message if self.fatal else None

    def conclude(self) -> None:
        """Tell what is only known once all processes are there: SP516, a plugin that ran and registered no hook in any of them."""
        if self.blind or None in self._registering:  # a hook without an owner may be anybody's
            return
        for name in (choice.candidate.name for choice in self.flight.choices if choice.verdict == "load"):
            if name not in self._registering and not {(code, name) for code in ("SP301", "SP302")} & self._told:
                subject = {"kind": "entry_point", "name": name, "runtime": self.flight.plan.runtime}
                message = f"plugin {name!r} registered no hook in any process"
                hint = f"`sglang-plug doctor {name}` says why, where it is not meant so"
                self._tell(Finding("SP516", Level.WARNING, subject, message, None, hint))

    def _tell(self, finding: Finding) -> None:
        key = (finding.code, finding.subject["name"])
        if key in self._told:
            return
        self._told.add(key)
        if finding.level is Level.ERROR and finding.code not in self.allowed:
            self.fatal.append(finding)
        else:
            self.audience.finding(finding)

    def _judge(self, record: ProcessRecord) -> Iterator[Finding]:
        yield from self._wrong_platform(record)
        yield from (self._failed_hook(record, hook) for hook in record.hooks if not hook.applied)
        yield from (self._failed_plugin(record, failure) for failure in record.plugins_failed)
        for hook in record.hooks:
            yield from target_traps(self._release, hook.target, hook.type, hook.plugin)
        if record.platform is not None and not record.platform["qualname"].startswith(_HOST):
            yield from foreign_device(record.platform["device_type"], record.platform["qualname"])

    @cached_property
    def _release(self) -> Release:
        return catalogue.load(catalogue.nearest(self.flight.plan.release or catalogue.newest()))

    def _wrong_platform(self, record: ProcessRecord) -> Iterator[Finding]:
        """SP052: another platform than the one that was decided."""
        promised = self.flight.resolution
        if promised is None or record.platform is None or record.runtime != promised.runtime:
            return
        actual = record.platform["qualname"]
        external = not actual.startswith(_HOST)
        if external and promised.outcome == "plugin":
            if record.platform.get("promised", True):
                return
        elif not external and promised.outcome != "plugin" and actual == (promised.qualname or "").replace(":", "."):
            return
        yield Finding(
            "SP052",
            Level.ERROR,
            {"kind": "class", "name": actual, "runtime": record.runtime},
            f"the {record.title} process serves on {actual}, not on {promised.qualname} ({promised.name})",
            "the engine decided otherwise than the preflight",
            "see `sglang-plug resolve --verify`, or go on with --allow SP052",
        )

    def _required(self, dist: str | None) -> bool:
        promised = self.flight.resolution
        return promised is not None and promised.outcome == "plugin" and dist is not None and dist == promised.dist

    def _failed_hook(self, record: ProcessRecord, hook: HookRecord) -> Finding:
        """SP529: a hook cannot be applied; fatal where it ships with the selected platform. What the stand-in leaves out is no fault."""
        subject = {"kind": "hook", "name": hook.target, "target": hook.target, "dist": hook.dist or "", "runtime": record.runtime}
        if self.flight.plan.engine == "standin" and self._release.find(hook.target.replace(":", ".")) is not None:
            lacks = f"SGLang {self._release.version} has {hook.target}, the stand-in has not: the hook of {hook.plugin} does nothing here"
            return Finding("SP529", Level.WARNING, subject, lacks, None, "serve on SGLang to see it fire")
        required = self._required(hook.dist)
        return Finding(
            "SP529",
            Level.ERROR if required else Level.WARNING,
            subject,
            f"the hook of {hook.plugin or 'an unknown plugin'} on {hook.target} cannot be applied in {record.title}",
            hook.cause or hook.error,
            f"see `sglang-plug doctor {hook.plugin or ''}`".rstrip() + (", or go on with --allow SP529" if required else ""),
        )

    def _failed_plugin(self, record: ProcessRecord, failure: dict[str, str]) -> Finding:
        """SP301, SP302: a hook plugin failed; fatal where it ships with the selected platform."""
        name = failure["plugin"]
        required = any(self._required(c.candidate.dist) for c in self.flight.choices if c.candidate.name == name)
        code = "SP301" if failure["phase"] == "load" else "SP302"
        return Finding(
            code,
            Level.ERROR if required else Level.WARNING,
            {"kind": "entry_point", "name": name, "runtime": record.runtime},
            f"plugin {name!r} failed in {record.title}: {failure['error']}",
            failure["cause"],
            f"see `sglang-plug doctor {name}`" + (f", or go on with --allow {code}" if required else ""),
        )
