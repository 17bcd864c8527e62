"""SP32x, SP33x: what a plugin changes in the process that runs it, beside registering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.activation import PHASE_WORDS
from sglang_plug.checks.world import Entry, World, find, names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_plug.checks.model import Finding

SLOW = 3.0
FLOOD = 1 << 20
_MILD = {"the warnings filters", "the limit of recursion"}  # many libraries do it when they are imported
_LATER = "do it in init_backend(), which runs once in each worker"


def _seen(world: World, key: str) -> Iterator[tuple[Entry, str, Any]]:
    """Yield (entry, phase in words, what changed) of one kind of effect."""
    for entry in world.tried:
        for phase, record in entry.phases.items():
            found = record.get("effects", {}).get(key)
            if found:
                yield entry, PHASE_WORDS.get(phase, phase), found


def _brings_sglang(entry: Entry, phase_words: str) -> bool:
    """True where SGLang's own modules were first imported in that phase: what they do is not the plugin's doing."""
    for phase, record in entry.phases.items():
        if PHASE_WORDS.get(phase, phase) == phase_words:
            modules = record.get("effects", {}).get("modules", [])
            return any(name.startswith(("sglang.srt", "sglang.multimodal_gen", "torch")) for name in modules)
    return False


def _whose(entry: Entry, phase_words: str) -> str | None:
    return "modules of SGLang or torch were first imported here, and may have done it" if _brings_sglang(entry, phase_words) else None


def sets_environment(world: World) -> Iterator[Finding]:
    """SP320: the change is inherited by every child process."""
    for entry, phase, changes in _seen(world, "environ"):
        setters = entry.report.get("environ_by", {})
        for name, (before, after) in changes.items():
            by = setters.get(name)
            if by and by.get("owner") == "sglang":
                continue
            what = "removes" if after is None else "sets" if before is None else "changes"
            value = "" if after is None else f"={after!r}"
            indirect = bool(by and by.get("owner") == "library")
            yield find(
                "SP320",
                entry.subject(),
                f"{entry.label} {what} {name}{value} in {phase}: every process that SGLang starts inherits it",
                cause=f"it was {before!r} before" if before is not None and after is not None else None,
                hint=_LATER if entry.kind == "platform" else "set it where SGLang is launched",
                location=Location(by["file"], by["line"]) if by and by.get("file") else None,
                level=Level.INFO if indirect else None,
            )


def prints(world: World) -> Iterator[Finding]:
    """SP321: the output of `sglang version` and of every tool that reads SGLang's stdout gets it."""
    for entry in world.tried:
        total = {stream: _written(entry, stream) for stream in ("stdout", "stderr")}
        printed = entry.report.get("printed", ["", ""])
        if total["stdout"]:
            phase = next(PHASE_WORDS.get(p, p) for p, r in entry.phases.items() if r.get("effects", {}).get("stdout"))
            yield find(
                "SP321",
                entry.subject(),
                f"{entry.label} writes {_size(total['stdout'])} to stdout in {phase}: `sglang version` and others show it",
                cause=f"it begins {printed[0][:80]!r}",
                hint="log it instead: logging.getLogger(__name__).info(...)",
                level=Level.INFO if _brings_sglang(entry, phase) else None,
            )
        if total["stderr"] > FLOOD:
            yield find(
                "SP321",
                entry.subject(),
                f"{entry.label} writes {_size(total['stderr'])} to stderr",
                cause=f"it begins {printed[1][:80]!r}",
                hint="log it instead: logging.getLogger(__name__).debug(...)",
            )


def _written(entry: Entry, stream: str) -> int:
    return sum(record.get("effects", {}).get(stream, 0) for record in entry.phases.values())


def _size(count: int) -> str:
    return f"{count} bytes" if count < 10_000 else f"{count / 1_000:.0f} kB" if count < 10_000_000 else f"{count / 1_000_000:.0f} MB"


def changes_process(world: World) -> Iterator[Finding]:
    """SP322: things that the whole process shares."""
    words = {"cwd": "the working directory", "umask": "the umask", "excepthook": "sys.excepthook"}
    for key, what in words.items():
        for entry, phase, change in _seen(world, key):
            after = change["after"]
            told = f" to {after!r}" if key == "cwd" and after else " to one that is gone" if key == "cwd" else ""
            told = f" to {after:o}" if key == "umask" else told
            yield find("SP322", entry.subject(), f"{entry.label} changes {what}{told} in {phase}", hint="leave the process as it was")
    for entry, phase, changes in _seen(world, "settings"):
        told = ", ".join(f"{key} ({change['before']} → {change['after']})" for key, change in changes.items())
        yield find(
            "SP322",
            entry.subject(),
            f"{entry.label} changes {told} in {phase}, for the whole process and all that it starts",
            hint="leave the process as it was",
            level=Level.INFO if changes.keys() <= _MILD or _brings_sglang(entry, phase) else None,
        )
    for key, what in {"path_gone": "sys.path", "meta_path_gone": "sys.meta_path"}.items():
        for entry, phase, gone in _seen(world, key):
            yield find("SP322", entry.subject(), f"{entry.label} takes {names(gone, 3)} from {what} in {phase}", hint="leave it there")
    for entry, phase, _ in _seen(world, "tracer"):
        told = f"{entry.label} leaves a trace or profile function behind in {phase}: it runs at every call in SGLang"
        yield find("SP322", entry.subject(), told, hint="sys.settrace(None); sys.setprofile(None)")
    for entry, phase, added in _seen(world, "path"):
        yield find(
            "SP322",
            entry.subject(),
            f"{entry.label} puts {names(added, 3)} on sys.path in {phase}",
            hint="install what it needs as a package",
            level=Level.INFO,
        )
    for entry, phase, added in _seen(world, "meta_path"):
        yield find(
            "SP322",
            entry.subject(),
            f"{entry.label} installs an import hook in {phase}: {names(added, 3)}",
            level=Level.INFO,
        )


def signals(world: World) -> Iterator[Finding]:
    """SP323: SGLang's own shutdown depends on them."""
    for entry, phase, changes in _seen(world, "signals"):
        told = ", ".join(f"{name} ({change['before']} → {change['after']})" for name, change in list(changes.items())[:4])
        yield find(
            "SP323",
            entry.subject(),
            f"{entry.label} changes signal handlers in {phase}: {told}",
            hint="leave signals to the engine: it ends its workers by them",
            cause=_whose(entry, phase),
            level=Level.INFO if _brings_sglang(entry, phase) else None,
        )
    for entry, phase, blocked in _seen(world, "mask"):
        told = f"blocks {names(blocked)}" if blocked else "changes the signal mask"
        yield find("SP323", entry.subject(), f"{entry.label} {told} in {phase}: children inherit the mask", hint="restore the mask")


def _later(entry: Entry) -> str:
    return _LATER if entry.kind == "platform" else "start it when the hook first runs"


def threads(world: World) -> Iterator[Finding]:
    """SP324: a process with threads cannot be forked safely."""
    for entry, phase, started in _seen(world, "threads"):
        yield find(
            "SP324",
            entry.subject(),
            f"{entry.label} starts {len(started)} thread{'s' * (len(started) > 1)} in {phase}: {names(started, 4)}",
            hint=_later(entry),
            cause=_whose(entry, phase),
            level=Level.INFO if _brings_sglang(entry, phase) else None,
        )
    for entry, phase, count in _seen(world, "native_threads"):
        if not _brings_sglang(entry, phase):
            yield find(
                "SP324",
                entry.subject(),
                f"{entry.label} starts {count} native thread{'s' * (count > 1)} in {phase}",
                hint=_later(entry),
                level=Level.INFO,
            )


def children(world: World) -> Iterator[Finding]:
    """SP325: nobody ends them."""
    for entry in world.tried:
        left = (entry.trial or {}).get("leftovers") or []
        if left:
            told = [row["command"] or f"process {row['pid']}" for row in left]
            yield find(
                "SP325",
                entry.subject(),
                f"{entry.label} leaves {len(left)} process{'es' * (len(left) > 1)} behind: {names(told, 3)}",
                cause="activation runs in every process of SGLang, and each would leave its own",
                hint="start helpers in init_backend(), and end them",
                level=Level.INFO if (entry.trial or {})["ended"]["kind"] == "timeout" else None,
            )


def start_method(world: World) -> Iterator[Finding]:
    """SP326: SGLang spawns; another method surprises everyone."""
    for entry, phase, change in _seen(world, "start_method"):
        if change["after"] is not None:
            yield find(
                "SP326",
                entry.subject(),
                f"{entry.label} sets the start method of multiprocessing to '{change['after']}' in {phase}",
                hint="use multiprocessing.get_context('spawn') for your own processes",
                cause=_whose(entry, phase),
                level=Level.INFO if _brings_sglang(entry, phase) else None,
            )


def root_logger(world: World) -> Iterator[Finding]:
    """SP327: the first configuration wins over the host's."""
    for entry, phase, changes in _seen(world, "logging"):
        told = ", ".join(f"{key} {change['before']} → {change['after']}" for key, change in changes.items())
        yield find(
            "SP327",
            entry.subject(),
            f"{entry.label} configures the root logger in {phase} ({told}): SGLang's own configuration comes too late",
            hint="configure logging.getLogger('your_package') only; never call logging.basicConfig()",
            cause=_whose(entry, phase),
            level=Level.INFO if _brings_sglang(entry, phase) else None,
        )


def initialises_device(world: World) -> Iterator[Finding]:
    """SP328: activation runs in every process, the launcher included."""
    for entry, phase, devices in _seen(world, "devices"):
        yield find(
            "SP328",
            entry.subject(),
            f"{entry.label} initialises the device ({', '.join(devices)}) in {phase}: every process of SGLang gets a context, forks break, "
            "and later device variables are ignored",
            hint=_LATER,
            level=Level.ERROR if entry.kind == "platform" else None,
        )
    for entry, phase, files in _seen(world, "device_files"):
        yield find("SP328", entry.subject(), f"{entry.label} opens {names(files, 3)} in {phase} and keeps it open", hint=_LATER)


def closes_streams(world: World) -> Iterator[Finding]:
    """SP329: what others print is lost."""
    for stream in ("stdout", "stderr"):
        for entry, phase, _ in _seen(world, stream + "_closed"):
            yield find("SP329", entry.subject(), f"{entry.label} closes {stream} in {phase}", hint=f"leave {stream} open")
        for entry, phase, _ in _seen(world, stream + "_replaced"):
            yield find("SP329", entry.subject(), f"{entry.label} replaces sys.{stream} in {phase}", hint=f"leave sys.{stream} as it is")


def slow(world: World) -> Iterator[Finding]:
    """SP331: the time is paid in every process."""
    for entry in world.tried:
        parts = {phase: entry.phases[phase]["seconds"] for phase in ("load", "call") if phase in entry.phases}
        heavy = any(_brings_sglang(entry, PHASE_WORDS[phase]) for phase in parts)
        if sum(parts.values()) > SLOW and not heavy and not entry.failed:
            told = ", ".join(f"{'import' if phase == 'load' else 'callback'} {seconds:.1f} s" for phase, seconds in parts.items())
            yield find(
                "SP331",
                entry.subject(),
                f"{entry.label} takes {sum(parts.values()):.1f} s ({told}), in every process and before `sglang --help`",
                hint="import inside functions, and probe the device with the cheapest question",
            )


def torch_defaults(world: World) -> Iterator[Finding]:
    """SP332: every tensor made afterwards differs."""
    for entry, phase, change in _seen(world, "torch_defaults"):
        if change["before"] is not None:
            yield find(
                "SP332",
                entry.subject(),
                f"{entry.label} changes torch's defaults in {phase}: {change['before']} → {change['after']}",
                hint="pass dtype and device where tensors are made",
            )


RULES = (
    sets_environment,
    prints,
    changes_process,
    signals,
    threads,
    children,
    start_method,
    root_logger,
    initialises_device,
    closes_streams,
    slow,
    torch_defaults,
)
