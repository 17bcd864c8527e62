"""What is done to one plugin inside its fork, by kind; and the two runs in which the host acts by itself."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import pkgutil
import re
import sys
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from . import activation, classes, failures, functions, registries, values
from .caught import Catching
from .subject import Note, Subject, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from .watcher import Watcher

LONGEST = 4000  # characters of a class's name
#: Loggers of the host that tell what it did with plugins.
HOST_LOGGERS = (
    "sglang.srt.platforms",
    "sglang.srt.plugins",
    "sglang.srt.plugins.hook_registry",
    "sglang.multimodal_gen.runtime.platforms",
    "sglang.multimodal_gen.runtime.platforms.plugins",
)


def platform(candidate: dict[str, Any], note: Note, runtime: str, watcher: Watcher, timeout: float) -> dict[str, Any]:
    """Load a platform's callback, call it, resolve and build the class it names: phases load, call, class, instance."""
    subject = Subject(note)
    recorder = registries.Recorder()
    variables = activation.read_later()
    watcher.recording, watcher.touched, watcher.deciding = [], [], (runtime, candidate["name"])
    fine, callback = subject.phase("load", lambda: load(candidate["value"]))
    if fine:
        subject.report["callback"] = functions.describe(callback)
        watched = Catching(callback)
        fine, answer = subject.phase("call", watched)
        if fine and answer is None:
            subject.report["caught"], subject.report["hooks"] = watched.facts(), recorder.new()
    subject.report["imports"], subject.report["touched"] = watcher.recording[:100], watcher.touched
    subject.report["changed"] = activation.changed(variables)
    subject.report.update(home(candidate["value"]), top_imports=top_imports(candidate["value"]))
    watcher.recording = []
    if fine:
        subject.report["returned"] = returned(answer)
    instance = None
    if fine and answer is not None:
        watcher.deciding = None  # a class's own module may well use the platform later; what it does now the host does too
        instance = _build(subject, answer, runtime)
    subject.report["class_imports"], watcher.recording = watcher.recording[:100], None
    report = subject.finish()
    if fine and "class" not in report:
        report["callback"].update(functions.answering(callback, answer))
    own = report.get("class", {}).get("members")
    if instance is not None and own:
        report["values"] = values.ask(instance, runtime, own, timeout)
    return report


def _build(subject: Subject, answer: Any, runtime: str) -> Any:
    """Resolve and build the class; return the instance, or None."""
    fine, cls = subject.phase("class", lambda: pkgutil.resolve_name(answer.strip()[:LONGEST] if issubclass(type(answer), str) else answer))
    if not fine:
        subject.report["masked_by"] = behind(answer)
        return None
    subject.report["class"] = classes.describe(cls, runtime)
    if not isinstance(cls, type):
        return None
    fine, instance = subject.phase("instance", cls)
    if fine:
        own = issubclass(type(instance), cls)
        subject.report["instance"] = {**classes.describe_instance(instance), "type": type(instance).__name__, "own": own}
        members = subject.report["class"].get("members")
        if own and members is not None:
            subject.report["instance"]["given"] = classes.given(instance, runtime, members)
    return instance if fine and own else None


def home(value: str) -> dict[str, Any]:
    """Return {"module_file"}: where the top module of an entry point's value was found."""
    top = value.partition(":")[0].partition(".")[0].strip()
    return {"module_file": getattr(sys.modules.get(top), "__file__", None)}


def top_imports(value: str) -> list[dict[str, Any]]:
    """Return the imports of SGLang at the top of the module that holds a callback: [{"module", "file", "line"}]."""
    import ast

    path = getattr(sys.modules.get(value.partition(":")[0].strip()), "__file__", None)
    try:
        with open(path or "", encoding="utf-8") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return []
    found = []
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        found += [{"module": name, "file": path, "line": node.lineno} for name in names if name.partition(".")[0] == "sglang"]
    return found


def returned(answer: Any) -> dict[str, Any]:
    """Return {"type", "repr", "text"} of what a callback gave back."""
    kind = type(answer)  # never the answer's own `__class__`, which may be anything
    facts = {"type": kind.__name__, "repr": re.sub(r" at 0x[0-9a-f]+", "", failures.safe_repr(answer)[:300])}
    if issubclass(kind, str):
        facts["text"] = str.__str__(answer)[:LONGEST]
    if kind is type:
        facts["class"] = f"{answer.__module__}:{answer.__qualname__}"
    if kind is CoroutineType:
        answer.close()
    return facts


def behind(name: Any) -> dict[str, Any] | None:
    """Return the failure that resolving a dotted name hides: the first of its modules that is there and does not import."""
    if not isinstance(name, str):
        return None
    parts = name.strip().replace(":", ".").split(".")
    for size in range(1, len(parts)):
        module = ".".join(parts[:size])
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as exc:
            if exc.name is not None and (module == exc.name or module.startswith(exc.name + ".")):
                return None  # not there at all: nothing is hidden
            return failures.facts_of(exc)
        except BaseException as exc:
            return failures.facts_of(exc)
    return None


def verdict(note: Note, module: ModuleType, original: Callable[[str], Any]) -> dict[str, Any]:
    """Let the host resolve its platform by itself, and report what it chose or raised, and how it shows that to the user."""
    subject = Subject(note)
    with host_log() as records:
        fine, chosen = subject.phase("host", lambda: original("current_platform"))
    subject.report["log"] = records
    if fine:
        kind = type(chosen)
        subject.report["chosen"] = {
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "enum": getattr(getattr(chosen, "_enum", None), "name", None),
            "device_name": failures.safe_repr(getattr(chosen, "device_name", None)),
            "host": classes.is_host(kind),
        }
    else:
        name = module.__name__
        subject.phase("shown", lambda: exec(f"from {name} import current_platform", {}))  # noqa: S102 - what every user's import does
    return subject.finish()


def plugin(candidate: dict[str, Any], note: Note, runtime: str, watcher: Watcher) -> dict[str, Any]:
    """Load a hook plugin's callback and call it as the host does: phases load, call; then what it registered, and where."""
    subject = Subject(note)
    recorder = registries.Recorder()
    watcher.recording = []
    with registries.source(candidate, enabled=runtime == "diffusion"):
        fine, callback = subject.phase("load", lambda: load(candidate["value"]))
    early = recorder.count()
    if fine:
        subject.report["callback"] = functions.describe(callback)
        with registries.source(candidate):
            fine, answer = subject.phase("call", callback)
        if fine:
            subject.report["returned"] = returned(answer)
    subject.report["imports"] = watcher.recording[:100]
    watcher.recording = None
    subject.report["hooks"] = recorder.new()
    subject.report["at_import"] = early
    subject.report.update(home(candidate["value"]))
    subject.report["unimported"] = _unimported_decorators(candidate["value"])
    return subject.finish()


def _unimported_decorators(value: str) -> list[str]:
    """Return files of the plugin's package that use hook registration and were not imported."""
    top = value.partition(":")[0].partition(".")[0].strip()
    module = sys.modules.get(top)
    found = []
    loaded = {getattr(other, "__file__", None) for other in list(sys.modules.values())}
    for folder in getattr(module, "__path__", ()):
        for place, _, files in os.walk(folder):
            for name in sorted(files):
                path = os.path.join(place, name)
                if name.endswith(".py") and path not in loaded and _mentions_hooks(path):
                    found.append(path)
    return found[:10]


def _mentions_hooks(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(1 << 18)
    except OSError:
        return False
    return "@plugin_hook" in text or "HookRegistry.register(" in text


def together(note: Note, runtime: str, names: list[str] | None) -> dict[str, Any]:
    """Let the host load and apply all hook plugins by itself; report which targets it patched, and what each target is.

    Args:
        note: holds the phase.
        runtime: whose loader runs.
        names: only these plugins, by the allowlist; None leaves the environment as it is.
    """
    subject = Subject(note)
    if names is not None:
        os.environ["SGLANG_PLUGINS"] = ",".join(names) or ","
    host = registries.Host(runtime)
    with host_log() as records, host.watch_targets() as targets:
        subject.phase("host", host.load_and_apply)
    subject.report["log"] = records
    subject.report["targets"] = targets.report()
    return subject.finish()


def backend(candidate: dict[str, Any], note: Note) -> dict[str, Any]:
    """Load a serve backend's factory and call it: phases load, call; then whether the answer is what `sglang serve` takes."""
    subject = Subject(note)
    fine, factory = subject.phase("load", lambda: load(candidate["value"]))
    if fine:
        subject.report["callback"] = functions.describe(factory)
        fine, answer = subject.phase("call", factory)
    if fine:
        subject.report["returned"] = returned(answer)
        contract = _backend_contract()
        if contract is not None:
            subject.report["is_backend"] = isinstance(answer, contract.ServeBackend)
            subject.report["expected_version"] = contract.SERVE_BACKEND_API_VERSION
        elif type(answer).__module__ == "builtins":  # that much is sure without the contract
            subject.report["is_backend"] = False
        subject.report["version"] = getattr(answer, "api_version", None)
    subject.report.update(home(candidate["value"]))
    return subject.finish()


def _backend_contract() -> Any:
    try:
        return importlib.import_module("sglang.cli.serve_backends")
    except ImportError:  # a release before 0.5.18: it reads no backends
        return None


class _Collector(logging.Handler):
    """Keeps what the host logs about plugins, with the exception behind each record."""

    sglang_plug = True

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        try:
            words = record.getMessage()[:500]
        except Exception:  # an exception whose own `__str__` fails; logging itself would go on, too
            words = str(record.msg)[:500]
        facts: dict[str, Any] = {"logger": record.name, "level": record.levelname, "message": words}
        if record.exc_info and record.exc_info[1] is not None:
            facts["error"] = failures.facts_of(record.exc_info[1])
        self.records.append(facts)


@contextlib.contextmanager
def host_log() -> Iterator[list[dict[str, Any]]]:
    """Collect the host's records about plugins, whatever the level of its loggers."""
    collector = _Collector()
    levels = {}
    for name in HOST_LOGGERS:
        logger = logging.getLogger(name)
        levels[name] = logger.level
        logger.setLevel(logging.DEBUG)
        logger.addHandler(collector)
    try:
        yield collector.records
    finally:
        for name, level in levels.items():
            logger = logging.getLogger(name)
            logger.removeHandler(collector)
            logger.setLevel(level)
