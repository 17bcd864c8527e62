"""Why an engine died, in words: the process, its last error, and what that error means. Reads the log; a table of known ends."""

from __future__ import annotations

import re
import signal
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sglang_plug.launch.phases import without_stamp

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXCEPTION = re.compile(r"^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Expired|Failed)\b(?::|$)")
_TOLD = re.compile(r"^sglang serve: (?:(?P<place>\w+): )?(?P<error>(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)\b.*)$")  # the stand-in's word
_TOLERATED = re.compile(r"Failed to (?:apply hooks to|load plugin|execute general plugin)")  # told, and the engine went on
_FRAME = re.compile(r'^  File "(?P<path>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_ENDED = re.compile(r"(?P<place>\w+) \(pid \d+\) has ended: (?P<error>[^;]+)")  # the stand-in's word, too
_WORKER = re.compile(r"^error: sglang-diffusionWorker-(?P<rank>\d+) (?P<error>ended [^;]+)")  # and this
_SAID = re.compile(r"^(?:sglang|[\w.-]+\.py)(?: serve)?: (?:error: )?(?P<error>.+)$")  # a command line that cannot be read
_ENGINE = re.compile(r"/sglang/(?:srt|multimodal_gen|cli|lang|utils)\b|/sglang_plug/")  # whose source a frame lies in
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
_RANK = re.compile(r"\b((?:DP\d+ )?(?:PP\d+ )?TP\d+|DP\d+)\b")
_PLACES = (
    (re.compile(r"bootstrap_scheduler_process|gpu_worker"), "diffusion worker"),
    (re.compile(r"Scheduler (?:PP\d+ )?(?:TP\d+ )?(?:hit an exception|crashed)|run_scheduler_process"), "scheduler"),
    (re.compile(r"DetokenizerManager hit an exception|run_detokenizer_process"), "detokenizer"),
    (re.compile(r"DataParallelController hit an exception|run_data_parallel_controller_process"), "data-parallel controller"),
)


@dataclass(frozen=True)
class Meaning:
    """What a known error means, and what to do."""

    pattern: str
    means: str
    hint: str


MEANINGS = (
    Meaning(
        r"SGLANG_CPU_OMP_THREADS_BIND is not set",
        "several ranks on a CPU need to be told which cores are whose, unless the machine has a NUMA node for each",
        "set SGLANG_CPU_OMP_THREADS_BIND, one group of cores a rank: SGLANG_CPU_OMP_THREADS_BIND='0|1' for two ranks",
    ),
    Meaning(
        r"No accelerator .* or platform plugin is available",
        "the platform's get_device() raised, or no platform plugin is active",
        "override get_device(device_id) in the platform class, and see `sglang-plug resolve`",
    ),
    Meaning(
        r"'torch\.device' object has no attribute 'split'",
        "the platform's get_device() returned a torch.device; SGLang wants text since 0.5.13",
        'return "cpu", "cuda:0", …: `return f"{self.device_type}:{device_id}"`',
    ),
    Meaning(
        r"Can't pickle <function run_\w+_process",
        "a hook on a process's entry function: the parent pickles the original and finds another object in its place",
        "hook a method of the class that runs inside the process instead, e.g. Scheduler.__init__",
    ),
    Meaning(
        r"[Aa]ddress already in use|Errno 98|port .* is (?:not available|already in use)",
        "another server listens on the port",
        "choose another --port, or stop the other server",
    ),
    Meaning(
        r"Expected one of cpu, cuda.* device type at start of device string",
        "torch does not know the platform's device type yet: SGLang asks for its module before init_backend()",
        "register the device module when the platform's module is imported (torch._register_device_module, rename_privateuse1_backend)",
    ),
    Meaning(
        r"_cuda_setDevice|Torch not compiled with CUDA",
        "SGLang called torch.cuda on a platform without CUDA (under Ray it always does)",
        "run without --use-ray, or let the platform's init_backend() replace torch.cuda.set_device",
    ),
    Meaning(
        r"Not enough memory|out of memory|OutOfMemoryError|Cannot allocate memory",
        "the weights and the cache do not fit",
        "lower --mem-fraction-static or --max-total-tokens, or use more ranks",
    ),
    Meaning(
        r"not found in group|Unknown SGLANG_PLATFORM|SGLANG_PLATFORM=.* not found|Unsupported SGLANG_DIFFUSION_PLATFORM_OVERRIDE",
        "the selected platform is not installed in the engine's environment",
        "see `sglang-plug list` and `sglang-plug resolve`",
    ),
    Meaning(
        r"cannot import name 'current_platform'",
        "the platform's module failed to import, and SGLang hides the reason behind this message",
        "run `sglang-plug doctor`: it names the import that failed",
    ),
    Meaning(
        r"Invalid attention backend for ",
        "the platform's get_attn_backend_cls_str() gave no class that can be imported: the base class's answer is nothing",
        "return the qualified name of an attention backend there, e.g. SGLang's own …attention.backends.sdpa.SDPABackend",
    ),
    Meaning(
        r"External diffusion platform .* must set _enum",
        "diffusion refuses a plugin's platform class that does not say that it is out of tree",
        "write in the class body: _enum = PlatformEnum.OOT",
    ),
    Meaning(
        r"No space left on device",
        "a disk is full",
        "free space, or let logs, compilation caches and --record go to another disk",
    ),
    Meaning(
        r"(?:is not a local folder|Repo id must be|does not appear to have a file named config\.json|OfflineModeIsEnabled|"
        r"couldn't connect to|LocalEntryNotFoundError)",
        "the model was neither found on this machine nor fetched",
        "give --model-path a folder with config.json, weights and tokenizer",
    ),
    Meaning(
        r"SafetensorError|HeaderTooLarge|InvalidHeader|Error while deserializing header|UnpicklingError",
        "a weight file is damaged or incomplete",
        "copy or download the model's files again",
    ),
)


@dataclass(frozen=True)
class Obituary:
    """How an engine ended.

    Attributes:
        ended: `exit status 1`, `signal SIGKILL`, …
        process: which of the engine's processes failed first, when the log tells.
        error: its last error, one line.
        raised: the place that it comes from, where a plugin is on the way to it, and which plugin.
        meaning: what that means, when it is known.
        hint: what to do.
        tail: the last lines of the log.
    """

    ended: str
    process: str | None = None
    error: str | None = None
    raised: str | None = None
    meaning: str | None = None
    hint: str | None = None
    tail: tuple[str, ...] = ()


@dataclass
class Listener:
    """Remembers of a log what an obituary needs: its last lines. Bounded.

    Attributes:
        plugins: import name of a plugin's package -> the plugin.
        tail: the last lines.
    """

    plugins: Mapping[str, str] = field(default_factory=dict)
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=400))

    def hear(self, line: str) -> None:
        self.tail.append(line)

    def begin_anew(self) -> None:
        """Forget what was heard: the engine serves, so that nothing of it was the end."""
        self.tail.clear()

    def give_up(self, reason: str, phase: str) -> Obituary:
        """Return the obituary of an engine that we ended for `reason` during `phase`: what it said last is all there is to go by."""
        lines = tuple(self.tail)[-20:]
        error = f"it said last: {lines[-1].strip()}" if lines else "it said nothing"
        return Obituary(
            f"our own stop, after: {phase}; {reason}",
            None,
            error,
            None,
            None,
            "wait longer with --ready-timeout, or see what it waits for",
            lines,
        )

    def write(self, returncode: int, phase: str) -> Obituary:
        """Return the obituary of an engine that ended with `returncode` (negative: a signal) during `phase`."""
        lines = list(self.tail)
        error, place, trace = self._error(_without_tolerated(lines))
        known = next((m for m in MEANINGS if any(re.search(m.pattern, line) for line in lines)), None)
        meaning, hint = (known.means, known.hint) if known else (None, None)
        killed = error is not None and "SIGKILL" in error
        if known is None and (killed or (error is None and returncode == -signal.SIGKILL)):
            meaning = "nobody here sent that signal: the kernel ends processes this way when memory runs out"
            less = "offload parts of the model" if (place or "").startswith("diffusion") else "lower --mem-fraction-static"
            hint = f"see `dmesg | grep -i oom`; {less}"
        raised, guilty = self._raised(trace)
        if hint is None and (guilty or (trace and self.plugins)):
            hint = f"`{' '.join(filter(None, ['sglang-plug doctor', guilty]))}` tries {'it' if guilty else 'the plugins'} without an engine"
        ended = f"signal {signal.Signals(-returncode).name}" if returncode < 0 else f"exit status {returncode}"
        return Obituary(f"{ended}, after: {phase}", place, error, raised, meaning, hint, tuple(lines[-20:]))

    def _raised(self, trace: list[str]) -> tuple[str | None, str | None]:
        """Return the place that an error comes from, and the plugin whose code that is.

        A plugin that called the engine, as a hook calls its original, is on the way to an error that the engine raised; it is named, and
        not held for the cause.
        """
        passed = None
        for part in _chained(trace):
            frames = [frame for frame in map(_FRAME.match, part) if frame is not None]
            for index in reversed(range(len(frames))):
                if (name := self._owner(frames[index])) is None:
                    continue
                if not any(_ENGINE.search(frame["path"]) for frame in frames[index + 1 :]):
                    return f"plugin {name}, {_shown(frames[index])}", name
                passed = f"{_shown(frames[-1])}; called through plugin {name}, {_shown(frames[index])}"
                break
        return passed, None

    def _owner(self, frame: re.Match[str]) -> str | None:
        parts = frame["path"].removesuffix(".py").split("/")
        return next((self.plugins[part] for part in parts if part in self.plugins), None)

    @staticmethod
    def _error(lines: list[str]) -> tuple[str | None, str | None, list[str]]:
        """Return the error that came first, the process it came from, and its traceback.

        The first exception line is the cause: what follows are the processes that lost their peer, and the parent that gave up. Inside one
        traceback the last exception counts.
        """
        for start, line in enumerate(lines):
            if "Traceback (most recent call last)" not in line:
                continue
            end, error = _end_of_traceback(lines, start)
            if error is not None:
                return error, _place(lines[max(0, start - 2) : end + 1]), lines[start : end + 1]
        for line in lines:
            if worker := _WORKER.match(line):
                return worker["error"], f"diffusion worker {worker['rank']}", []
            if told := _TOLD.match(line) or _ENDED.search(line):
                return told["error"], (told["place"] or "main").replace("_", " "), []
            if _EXCEPTION.match(without_stamp(line)) or without_stamp(line).startswith(("error:", "Error:")):
                return without_stamp(line).removeprefix("error:").strip(), _place([line]), []
        said = next(filter(None, map(_SAID.match, reversed(lines))), None)
        return (said["error"], "main", []) if said else (None, None, [])


def _shown(frame: re.Match[str]) -> str:
    return f"{frame['path']}:{frame['line']}, in {frame['function']}"


def _chained(trace: list[str]) -> list[list[str]]:
    """Return the tracebacks of a chain, the last one first."""
    parts: list[list[str]] = [[]]
    for line in trace:
        if line.startswith(_CHAIN):
            parts.append([])
        parts[-1].append(line)
    return parts[::-1]


def _without_tolerated(lines: list[str]) -> list[str]:
    """Return a log's lines without the failures of plugins that the engine logged and went on after."""
    kept, index = [], 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not _TOLERATED.search(line):
            kept.append(line)
        elif index < len(lines) and "Traceback (most recent call last)" in lines[index]:
            index, _ = _end_of_traceback(lines, index)
        elif index < len(lines) and _EXCEPTION.match(lines[index]):
            index += 1
    return kept


def _end_of_traceback(lines: list[str], start: int) -> tuple[int, str | None]:
    """Return where the lines after a traceback, and those that belong to it, begin; and its last exception."""
    error = None
    for index in range(start + 1, len(lines)):
        text = lines[index]
        if _EXCEPTION.match(text):
            error = text.strip()
        elif error is not None and text.strip() and not text.startswith((" ", "During handling", "The above exception", "Traceback")):
            return index, error
    return len(lines), error


def _place(lines: list[str]) -> str | None:
    text = "\n".join(lines)
    place = next((name for pattern, name in _PLACES if pattern.search(text)), None)
    rank = _RANK.search(text)
    if place is None and rank is None:
        return None
    return " ".join(filter(None, [place or "scheduler", rank.group(1) if rank else None]))
