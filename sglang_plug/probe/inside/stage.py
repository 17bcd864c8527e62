"""The host-order rehearsal: `import sglang` once, as the host does, and a process for each plugin at the moment when the host would run it.

Importing SGLang resolves the platform while its modules are half initialised. At that very point platform plugins are tried, each in a
process; then in another the host decides by itself; then this process goes on with that answer (or, where it is unsafe, with a built-in
platform), and hook plugins are tried: each alone, then all together through the host's own loader.

Such a process is a fork, or (`forking.py`) an interpreter that plays the same piece up to the same point (`Solo`): which trial it is given
up for is its cue, {"part": "platforms" | "verdict" | "plugins" | "together" | "backends", "runtime", "ids" | "names"}.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from . import failures, forking, isolation, lanes, spawning, trials
from .subject import Note, refresh_streams
from .watcher import PLATFORM_MODULES, Watcher, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

PLUGIN_MODULES = {"srt": "sglang.srt.plugins", "diffusion": "sglang.multimodal_gen.runtime.platforms.plugins"}
FEW = 6  # from here on plugins are tried together first
PATIENCE = 5.0  # seconds for those that are tried together
ALLOWLIST = "SGLANG_PLUGINS"
#: Values of the selectors and the allowlist with which no plugin is a candidate.
_NO_PLUGIN: dict[str, dict[str, str | None]] = {
    "srt": {"SGLANG_PLATFORM": None, "SGL_PLATFORM": None, ALLOWLIST: ",", "SGL_PLUGINS": None},
    "diffusion": {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "cpu", "SGL_DIFFUSION_PLATFORM_OVERRIDE": None},
}


class Stage:
    """One rehearsal. `facts` is its answer: {"sglang", "imports", "platforms", "verdict", "plugins", "together", "backends"}.

    The request: {"runtimes", "platforms": {runtime: [candidate]}, "plugins": {runtime: [candidate]}, "backends": [candidate],
    "timeout": seconds for one fork, "import_timeout": seconds for SGLang's imports, "memory": bytes for one fork | None, "jobs",
    "standin": path | None, "hardware": what is known of the machine, "tolerate": bool, "builtin": bool,
    "isolation": "auto" | "fork" | "spawn"}; a candidate is
    {"id", "name", "value", "dist", "host": bool, "platform_dist": bool} where `host` says that the host would run it by itself.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.facts: dict[str, Any] = {"imports": [], "platforms": {}, "verdict": {}, "plugins": {}, "together": {}, "backends": {}}
        self.resolving: dict[str, bool] = {}
        self.watcher = Watcher(self.select, self.resolving)
        self._setting = spawning.Setting()
        self._readers: dict[str, tuple[ModuleType, Callable[[str], Any]]] = {}

    def play(self) -> dict[str, Any]:
        """Run the whole rehearsal and return its facts."""
        faulthandler.cancel_dump_traceback_later()  # a fork would wait for ever for the thread that it does not inherit
        signal.signal(signal.SIGALRM, _too_slow)
        isolation.WATCHED.clear()  # the tool's socket belongs to the process above, which ends us with itself
        isolation.adopt_orphans()
        self._prepare()
        if self._import("sglang"):
            self._note_host()
            for runtime in self.request["runtimes"]:
                self._play_runtime(runtime)
            self._play_backends()
        return self.facts

    def _prepare(self) -> None:
        if self.request.get("standin"):
            _load_by_path("_sglang_plug_standin_finder", self.request["standin"]).install()
            _settle_hardware(self.request.get("hardware", {}))
        if self.request.get("tolerate"):
            _tolerate_broken_metadata()
        sys.meta_path.insert(0, self.watcher)

    def _import(self, name: str) -> bool:
        started = time.perf_counter()
        record: dict[str, Any] = {"module": name}
        signal.alarm(max(1, int(self.request["import_timeout"])))
        try:
            importlib.import_module(name)
        except BaseException as exc:
            record["error"] = failures.facts_of(exc)
        finally:
            signal.alarm(0)
        record["seconds"] = time.perf_counter() - started
        self.facts["imports"].append(record)
        return "error" not in record

    def _note_host(self) -> None:
        module = sys.modules["sglang"]
        self.facts["sglang"] = {
            "version": str(getattr(module, "__version__", "")),
            "file": getattr(module, "__file__", None),
            "resolves_at_import": bool(self.resolving),
        }

    def _play_runtime(self, runtime: str) -> None:
        module = sys.modules.get(PLATFORM_MODULES[runtime])
        if module is None:
            if not self._import(PLATFORM_MODULES[runtime]):
                return
            module = sys.modules[PLATFORM_MODULES[runtime]]
        if runtime not in self.resolving:  # this release resolves on first use
            with contextlib.suppress(Exception):  # what failed stands in the verdict
                getattr(module, "current_platform")  # noqa: B009 - a module's attribute, resolved now
        candidates = self._of_selected(module, self.request["plugins"].get(runtime, []))
        if candidates and self._import(PLUGIN_MODULES[runtime]):
            self._try_plugins(runtime, candidates)

    @staticmethod
    def _of_selected(module: ModuleType, candidates: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Leave out the plugins of platform packages that are not the selected one, where the host says which that is."""
        if not any(candidate.get("platform_dist") for candidate in candidates):
            return list(candidates)
        try:
            selected = module.get_selected_platform_dist()
        except Exception:  # the host fails here itself: what it raises stands in the verdict
            selected = None
        return [candidate for candidate in candidates if not candidate.get("platform_dist") or candidate["dist"] == selected]

    def _try_plugins(self, runtime: str, candidates: Sequence[dict[str, Any]]) -> None:
        self._run_each("plugins", runtime, candidates)
        sound = [candidate for candidate in candidates if candidate["host"] and _went_well(self.facts["plugins"][candidate["id"]])]
        hosted = [candidate for candidate in candidates if candidate["host"]]
        if not sound:
            return
        names = None if len(sound) == len(hosted) else [candidate["name"] for candidate in sound]
        reply = self._run_host("together", runtime, names)
        self.facts["together"][runtime] = reply
        if reply["value"] is None and len(sound) > 1:  # one target's import took all down: find out which, one plugin at a time
            for candidate in sound:
                self.facts["plugins"][candidate["id"]]["alone"] = self._run_host("together", runtime, [candidate["name"]])

    def _play_backends(self) -> None:
        candidates = self.request.get("backends", [])
        if candidates:
            self._run_each("backends", "srt", candidates)

    def select(self, runtime: str, module: ModuleType, original: Callable[[str], Any]) -> Any:
        """Stand in for the first read of `current_platform`: try the plugins, let the host decide by itself, then go on.

        Raises:
            Exception: what the host raises where even a built-in platform cannot be had.
        """
        remaining = signal.alarm(0)  # the plugins' time is not SGLang's
        self.resolving[runtime] = True
        self._readers[runtime] = module, original
        verdict = self._decide(runtime)
        self.facts["verdict"][runtime] = verdict
        self.resolving[runtime] = False
        signal.alarm(remaining)
        trials_of = [self.facts["platforms"][candidate["id"]] for candidate in self.request["platforms"].get(runtime, [])]
        plain = not self.request.get("builtin") and all(_came_back(trial) and not _out_of_memory(trial) for trial in trials_of)
        verdict["continued"] = "host" if plain and _is_worth_repeating(verdict.get("value")) else "builtin"
        return self._go_on(runtime, verdict["continued"])

    def _decide(self, runtime: str) -> dict[str, Any]:
        candidates = self.request["platforms"].get(runtime, [])
        self._run_each("platforms", runtime, candidates)
        blocked = [c["name"] for c in candidates if c["host"] and not _came_back(self.facts["platforms"][c["id"]])]
        return {"value": None, "blocked": blocked} if blocked else self._run_host("verdict", runtime)

    def _go_on(self, runtime: str, continued: str) -> Any:
        """Return the platform with which this process goes on: the host's choice, or a built-in one."""
        with environment({} if continued == "host" else _NO_PLUGIN[runtime]):
            return self._readers[runtime][1]("current_platform")

    def _run_each(self, part: str, runtime: str, candidates: Sequence[dict[str, Any]]) -> None:
        facts = self.facts[part]
        left = self._run_together(part, runtime, candidates) if len(candidates) >= FEW else list(candidates)
        cues = [{"part": part, "runtime": runtime, "ids": [candidate["id"]]} for candidate in left]
        for candidate, reply in zip(left, self._run_cues(cues, self.request["timeout"]), strict=True):
            facts[candidate["id"]] = reply

    def _run_together(self, part: str, runtime: str, candidates: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Try many plugins one after the other in one process a lane, and return those that need a process of their own.

        A fork of a large process costs more than a light plugin. What comes back without a failure or a side effect is kept; the first
        that does not, and all behind it, are tried again each by itself.
        """
        facts, jobs = self.facts[part], max(1, self.request["jobs"])
        lists = [part_of for start in range(jobs) if (part_of := list(candidates[start::jobs]))]
        cues = [{"part": part, "runtime": runtime, "ids": [c["id"] for c in some], "many": True} for some in lists]
        for some, reply in zip(lists, self._run_cues(cues, min(self.request["timeout"], PATIENCE)), strict=True):
            reports = reply["value"] if reply["value"] is not None and not reply["leftovers"] else []
            for candidate, report in zip(some, reports, strict=False):
                if not _is_quiet(report):
                    break
                seconds = sum(phase["seconds"] for phase in report["phases"].values())
                facts[candidate["id"]] = {**reply, "value": report, "seconds": seconds, "phase": None}
        return [candidate for candidate in candidates if candidate["id"] not in facts]

    def _run_host(self, part: str, runtime: str, names: list[str] | None = None) -> dict[str, Any]:
        timeout = self.request["timeout" if part == "verdict" else "import_timeout"]
        return self._run_cues([{"part": part, "runtime": runtime, "names": names}], timeout)[0]

    def _run_cues(self, cues: Sequence[dict[str, Any]], timeout: float) -> list[dict[str, Any]]:
        """Perform each cue in a process of its own, and return their replies, each with the phase it came to."""
        refresh_streams()
        asked, jobs, memory = self.request.get("isolation", "auto"), self.request["jobs"], self.request.get("memory")
        why = forking.obstacle(asked)
        if cues:
            self.facts["isolation"] = {"kind": "spawn" if why else "fork", "why": why}
        if why is not None:
            limits: dict[str, Any] = {"timeout": timeout, "memory": memory, "start_limit": 3 * self.request["import_timeout"]}
            continued = {runtime: verdict["continued"] for runtime, verdict in self.facts["verdict"].items()}
            orders = [self._setting.order("stage:solo", [self.request, cue, continued], **limits) for cue in cues]
            return [{**reply, "phase": reply["note"] or None} for reply in spawning.run_all(orders, jobs)]
        notes = [Note() for _ in cues]
        tasks = [functools.partial(self.perform, cue, note) for cue, note in zip(cues, notes, strict=True)]
        limit = None if memory is None else int(memory) + isolation.data_size()
        replies = lanes.run_all(tasks, timeout=timeout, memory=limit, jobs=jobs)
        return [{**reply, "phase": note.read()} for note, reply in zip(notes, replies, strict=True)]

    def perform(self, cue: dict[str, Any], note: Note) -> Any:
        """Carry out one trial in this process, which is given up for it."""
        part, runtime = cue["part"], cue["runtime"]
        self.watcher.leave()
        if part == "verdict":
            return trials.verdict(note, *self._readers[runtime])
        if part == "together":
            return trials.together(note, runtime, cue["names"])
        pool = self.request[part] if part == "backends" else self.request[part][runtime]
        known = {candidate["id"]: candidate for candidate in pool}
        candidates = [known[name] for name in cue["ids"]]
        if cue.get("many"):
            return _one_after_the_other(functools.partial(self._try, part, runtime), candidates)
        return self._try(part, runtime, candidates[0], note)

    def _try(self, part: str, runtime: str, candidate: dict[str, Any], note: Note) -> dict[str, Any]:
        if part == "backends":
            return trials.backend(candidate, note)
        if part == "platforms":
            return trials.platform(candidate, note, runtime, self.watcher, self.request["timeout"])
        return trials.plugin(candidate, note, runtime, self.watcher)


class Solo(Stage):
    """The same piece played up to one cue, in an interpreter that is given up for it.

    Args:
        request: of the whole rehearsal.
        cue: the trial.
        continued: how the rehearsal went on after each verdict: `host` or `builtin`.
        door: ends this process with the trial.
    """

    def __init__(self, request: dict[str, Any], cue: dict[str, Any], continued: dict[str, str], door: spawning.Door) -> None:
        super().__init__(request)
        self._cue = cue
        self._continued = continued
        self._door = door

    def select(self, runtime: str, module: ModuleType, original: Callable[[str], Any]) -> Any:
        """Perform a trial of this runtime's platforms, or go on as the rehearsal did."""
        self.resolving[runtime] = True
        self._readers[runtime] = module, original
        self._meet("platforms", runtime)
        self._meet("verdict", runtime)
        self.resolving[runtime] = False
        return self._go_on(runtime, self._continued[runtime])

    def _try_plugins(self, runtime: str, candidates: Sequence[dict[str, Any]]) -> None:
        self._meet("plugins", runtime)
        self._meet("together", runtime)

    def _play_backends(self) -> None:
        self._meet("backends", "srt")

    def _meet(self, part: str, runtime: str) -> None:
        if (part, runtime) == (self._cue["part"], self._cue["runtime"]):
            signal.alarm(0)
            self._door.perform(lambda note: self.perform(self._cue, Note(note)))


def play(request: dict[str, Any], door: Any) -> Any:
    """Rehearse what the request names and return the facts."""
    return door.perform(lambda note: Stage(request).play())


def solo(argument: list[Any], door: Any) -> None:
    """Play up to a cue: [request, cue, how it went on after each verdict]."""
    request, cue, continued = argument
    Solo(request, cue, continued, door).play()


def _too_slow(number: int, frame: Any) -> None:
    message = "the import did not finish in time"
    raise TimeoutError(message)


def _one_after_the_other(trial: Callable[..., Any], candidates: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the reports of several trials in one process, up to the first that is not quiet."""
    reports = []
    for candidate in candidates:
        reports.append(trial(candidate, Note()))
        if not _is_quiet(reports[-1]):
            break
    return reports


def _is_quiet(report: dict[str, Any]) -> bool:
    """True for a trial without a failure, and without a side effect but imported modules."""
    phases = report["phases"].values()
    return not report.get("touched") and all("error" not in phase and phase["effects"].keys() <= {"modules"} for phase in phases)


def _came_back(reply: dict[str, Any]) -> bool:
    """True where a fork ended by itself with an answer, and no failure of a kind that the host lets through."""
    value = reply["value"]
    return value is not None and not any(phase.get("error", {}).get("not_an_exception") for phase in value["phases"].values())


def _went_well(reply: dict[str, Any]) -> bool:
    return _came_back(reply) and not any("error" in phase for phase in reply["value"]["phases"].values())


def _out_of_memory(reply: dict[str, Any]) -> bool:
    """True for a trial that met the limit of memory, which this process does not have."""
    errors = [phase["error"] for phase in reply["value"]["phases"].values() if "error" in phase]
    return any("MemoryError" in (error["type"], error["root"]["type"]) for error in errors)


def _is_worth_repeating(answer: dict[str, Any] | None) -> bool:
    """True where the host chose a plugin's platform, and choosing it in this process would not spoil the forks to come.

    A built-in platform is had without running any plugin again. Native threads alone spoil nothing (`forking.py`).
    """
    if answer is None or "error" in answer["phases"]["host"] or answer["chosen"]["host"]:
        return False
    done = [phase["effects"] for phase in answer["phases"].values()]
    return not any({"threads", "devices", "stdout_closed", "stderr_closed", "mask"} & effects.keys() for effects in done)


def _load_by_path(name: str, path: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _settle_hardware(known: dict[str, dict[str, Any]]) -> None:
    """Answer the stand-in's detectors with what is known already: asking torch costs seconds."""
    detect: Any = importlib.import_module("sglang_plug.core.detect")
    for name, found in known.items():
        if found["present"] is not None:
            detect.PROBES[name] = lambda found=found: detect.Detection(found["present"], found["why"])


def _tolerate_broken_metadata() -> None:
    """Make `entry_points()` pass over distributions whose file cannot be parsed: what the host does without them is still worth knowing."""
    from importlib import metadata

    read = metadata.Distribution.entry_points.fget  # type: ignore[attr-defined]

    def tolerant(self: metadata.Distribution) -> Any:
        try:
            return read(self)
        except Exception:
            return []

    metadata.Distribution.entry_points = property(tolerant)  # type: ignore[assignment,method-assign]
