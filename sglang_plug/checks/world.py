"""What doctor's rules look at: the environment, our explanation, and what each plugin did when it was tried. Values; gathers nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Finding, Level, Location
from sglang_plug.checks.table import rule
from sglang_plug.core import entrypoints as groups
from sglang_plug.errors import CatalogueError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sglang_plug.contract.catalogue import Release
    from sglang_plug.contract.model import PlatformContract
    from sglang_plug.core.environ import Settings
    from sglang_plug.probe.environment import Environment
    from sglang_plug.probe.inquiry import Decision

#: group -> (runtime, kind)
KINDS = {
    groups.SRT_PLATFORMS: ("srt", "platform"),
    groups.SRT_PLUGINS: ("srt", "hook plugin"),
    groups.DIFFUSION_PLATFORMS: ("diffusion", "platform"),
    groups.DIFFUSION_PLUGINS: ("diffusion", "hook plugin"),
    groups.SERVE_BACKENDS: ("srt", "serve backend"),
}


@dataclass
class Entry:
    """One entry point, and its trial where it was tried.

    Attributes:
        row: the entry point as metadata spells it: group, name, value, dist, version, where, line.
        host: the host runs it here by itself.
        skipped: why the host does not, in words.
        tried: it was, or was to be, tried.
        trial: the fork's reply.
    """

    row: Mapping[str, Any]
    host: bool = True
    skipped: str = ""
    tried: bool = False
    trial: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """The entry point's name."""
        return str(self.row["name"])

    @property
    def dist(self) -> str:
        """The distribution's name, or where its metadata lies."""
        return str(self.row["dist"] or self.row["where"])

    @property
    def group(self) -> str:
        """The entry point's group."""
        return str(self.row["group"])

    @property
    def value(self) -> str:
        """What the entry point names."""
        return str(self.row["value"])

    @property
    def runtime(self) -> str:
        """`srt` or `diffusion`; empty for a group that nobody reads."""
        return KINDS.get(self.group, ("", ""))[0]

    @property
    def kind(self) -> str:
        """`platform`, `hook plugin` or `serve backend`; `entry point` for a group that nobody reads."""
        return KINDS.get(self.group, ("", "entry point"))[1]

    @property
    def id(self) -> str:
        """The text that names it among all."""
        return f"{self.group}|{self.name}|{self.value}|{self.row['dist']}"

    @property
    def label(self) -> str:
        """The entry point in words: `platform 'pa' (pa-dist 1.0)`."""
        version = f" {self.row['version']}" if self.row["version"] else ""
        return f"{self.kind} '{self.name}' ({self.dist}{version})"

    @property
    def module(self) -> str:
        """The module that the value names."""
        return self.value.partition(":")[0].strip()

    @property
    def report(self) -> Mapping[str, Any]:
        """What the trial reported; empty where there is none."""
        report: Mapping[str, Any] = (self.trial or {}).get("value") or {}
        return report

    @property
    def phases(self) -> Mapping[str, Any]:
        """The trial's phases by name."""
        phases: Mapping[str, Any] = self.report.get("phases", {})
        return phases

    def error(self, phase: str) -> Mapping[str, Any] | None:
        """Return the failure of one phase, or None."""
        error: Mapping[str, Any] | None = self.phases.get(phase, {}).get("error")
        return error

    @property
    def failed(self) -> bool:
        """True where the trial ended badly in any way."""
        if self.trial is None:
            return False
        return not self.report or any("error" in phase for phase in self.phases.values())

    @property
    def hooks(self) -> Sequence[Mapping[str, Any]]:
        """The registrations of a hook plugin."""
        hooks: Sequence[Mapping[str, Any]] = self.report.get("hooks", ())
        return hooks

    def subject(self, **more: str) -> dict[str, str]:
        """Return the subject of a finding about this entry point."""
        facts = {"kind": "entry_point", "name": self.name, "group": self.group, "value": self.value, "dist": self.dist}
        if self.row["version"]:
            facts["version"] = str(self.row["version"])
        if self.runtime:
            facts["runtime"] = self.runtime
        return facts | more


@dataclass
class World:
    """Everything that rules look at."""

    environment: Environment
    facts: Mapping[str, Any]
    settings: Settings
    release: str
    assumed: str | None
    runtimes: tuple[str, ...]
    names: tuple[str, ...] = ()
    explicit_python: bool = False
    entries: list[Entry] = field(default_factory=list)
    others: list[Entry] = field(default_factory=list)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    rehearsal: Mapping[str, Any] = field(default_factory=dict)
    module_facts: Mapping[str, Any] | None = None
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def real(self) -> bool:
        """A real SGLang is installed there."""
        return self.facts["sglang"]["kind"] in {"installed", "source"}

    @property
    def host_name(self) -> str:
        """The host in words: `SGLang 0.5.23`, or the stand-in's release."""
        return f"SGLang {self.release}"

    def of(self, kind: str, runtime: str | None = None) -> list[Entry]:
        """Return the entries of a kind, of one runtime or of all that are examined."""
        return [e for e in self.entries if e.kind == kind and (e.runtime == runtime if runtime else e.runtime in self.runtimes)]

    @property
    def tried(self) -> list[Entry]:
        """The entries that were tried."""
        return [entry for entry in self.entries if entry.trial is not None]

    def selected(self, runtime: str) -> str | None:
        """Return the name that a runtime's selector holds, as the runtime reads it; None where it is unset."""
        value = self.settings.platform if runtime == "srt" else (self.settings.diffusion_platform or "").strip()
        return value or None

    @cached_property
    def catalogue(self) -> Release | None:
        """What the inspected release has; None where the catalogue does not know it."""
        from sglang_plug.contract import catalogue

        try:
            return catalogue.load(catalogue.nearest(self.release))
        except CatalogueError:
            return None

    def contract(self, runtime: str) -> PlatformContract | None:
        """Return what the runtime expects of a platform class; None where nothing is known."""
        return self.catalogue.platform_contract(runtime) if self.catalogue is not None else None

    def target(self, runtime: str, name: str) -> Mapping[str, Any] | None:
        """Return the facts of a hook target as the host met it; None where it was not met."""
        reply = self.rehearsal.get("together", {}).get(runtime) or {}
        found = (reply.get("value") or {}).get("targets", {}).get(name)
        if found is None:
            for entry in self.of("hook plugin", runtime):
                alone = ((entry.trial or {}).get("alone") or {}).get("value") or {}
                found = found or alone.get("targets", {}).get(name)
        return found  # type: ignore[no-any-return]

    def hooked(self, runtime: str) -> Iterator[tuple[Entry, Mapping[str, Any], Mapping[str, Any] | None]]:
        """Yield every registration in the runtime's own registry with its plugin and, where it was met, its target."""
        for entry in self.of("hook plugin", runtime):
            for hook in entry.hooks:
                if hook["registry"] == runtime:
                    yield entry, hook, self.target(runtime, hook["target"])


def find(
    code: str,
    subject: dict[str, str],
    message: str,
    *,
    cause: str | None = None,
    hint: str | None = None,
    level: Level | None = None,
    location: Location | None = None,
    **data: Any,
) -> Finding:
    """Return a finding of a rule, at the rule's usual level unless another is given."""
    return Finding(
        code, level or rule(code).level, subject, message, cause, hint, location, {k: v for k, v in data.items() if v is not None}
    )


def variable(name: str, value: str | None = None) -> dict[str, str]:
    """Return the subject of a finding about a variable."""
    return {"kind": "variable", "name": name} | ({"value": value} if value is not None else {})


def place(facts: Mapping[str, Any] | None) -> Location | None:
    """Return the location of a frame's facts {"file", "line"}."""
    return Location(facts["file"], facts.get("line")) if facts and facts.get("file") else None


def where(facts: Mapping[str, Any] | None) -> str:
    """Return ` (at FILE:LINE)` for a frame's facts, or nothing."""
    return f" (at {facts['file']}:{facts['line']})" if facts and facts.get("file") else ""


def cause_of(error: Mapping[str, Any]) -> str:
    """Return an exception's root cause in one line: type, words and place."""
    root = error["root"]
    words = f": {root['message']}" if root["message"] else ""
    return f"{root['type']}{words}{where(root.get('place') or root.get('where'))}"


def names(items: Sequence[str], limit: int = 6) -> str:
    """Return `'a', 'b' and 3 more`."""
    shown = ", ".join(f"'{item}'" for item in items[:limit])
    return shown + (f" and {len(items) - limit} more" if len(items) > limit else "")


def close(name: str, choices: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the choice that resembles `name` most, ignoring case and quotes; None where none does."""
    import difflib

    folded = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(name.strip().strip("'\"").lower(), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None
