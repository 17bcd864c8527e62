"""SP30x, SP31x: how a plugin's callback loads, runs, and what it returns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.host import ended_words
from sglang_plug.checks.rules.metadata import judge_value
from sglang_plug.checks.standing import beyond_standin
from sglang_plug.checks.world import Entry, World, cause_of, find, names, place, variable, where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

PHASE_WORDS = {"load": "its import", "call": "its callback", "class": "the import of its class", "instance": "its class's constructor"}
_CLASS_PATH = re.compile(r"(?!\d)\w+(\.(?!\d)\w+)*(:(?!\d)\w+(\.(?!\d)\w+)*)?$")
#: What a platform may import while SGLang is half imported; measured on 0.5.13 to 0.5.23.
SAFE = ("sglang.srt.platforms", "sglang.srt.plugins", "sglang.srt.environ", "sglang.version", "sglang.multimodal_gen")
#: What fails then with a circular import.
CIRCULAR = (
    "sglang.srt.utils",
    "sglang.srt.server_args",
    "sglang.srt.layers",
    "sglang.srt.models",
    "sglang.srt.managers",
    "sglang.srt.model_executor",
    "sglang.srt.distributed",
    "sglang.srt.entrypoints",
    "sglang.srt.configs",
    "sglang.srt.mem_cache",
    "sglang.lang",
    "sglang.utils",
)


def consequence(world: World, entry: Entry) -> str:
    """Return what the runtime makes of a failure of this plugin."""
    explicit = world.selected(entry.runtime) == entry.name and entry.kind == "platform"
    if entry.kind == "serve backend":
        return f"`sglang serve --model-type {entry.name}` fails"
    if not entry.host:
        return "SGLang does not run it here"
    if entry.kind == "platform":
        if explicit:
            return f"{'SGLANG_PLATFORM' if entry.runtime == 'srt' else 'the selector'} names it, so startup fails"
        if entry.runtime == "diffusion":
            return "diffusion aborts startup"
        decision = world.decisions.get("srt")
        name = decision.resolution.name if decision is not None else None
        return f"SGLang logs it and goes on with the platform '{name}'" if name else "SGLang logs it and looks further"
    if is_required(world, entry):
        return "it belongs to the selected platform's package, so startup aborts"
    return "SGLang logs it and serves without this plugin"


def is_required(world: World, entry: Entry) -> bool:
    """True for a hook plugin whose failure aborts startup."""
    decision = world.decisions.get(entry.runtime)
    return decision is not None and any(choice.required and choice.candidate.name == entry.name for choice in decision.choices)


def failures(world: World) -> Iterator[Finding]:
    """SP208, SP301, SP302, SP303, SP306, SP307, SP310, SP311: the first failure of a callback's import or call."""
    for entry in world.tried:
        if judge_value(entry.value)[0] is not None and (entry.error("load") or entry.error("call")):
            continue  # told by the metadata rule
        for phase in ("load", "call"):
            error = entry.error(phase)
            if error is not None:
                yield _judge_failure(world, entry, phase, error)
                break


def _judge_failure(world: World, entry: Entry, phase: str, error: Mapping[str, Any]) -> Finding:
    subject, root = entry.subject(), error["root"]
    location = place(root.get("place") or error.get("place"))
    shared = {"location": location, "traceback": error["traceback"], "shown": _shown(world, entry)}
    after = consequence(world, entry)
    if error.get("not_an_exception"):
        code = error.get("code")
        what = f"exit status {code if code is not None else 0}" if error["type"] == "SystemExit" else error["type"]
        message = f"{entry.label} ends the process in {PHASE_WORDS[phase]} ({error['type']}, {what}): SGLang does not catch that"
        return find("SP303", subject, message, cause=cause_of(error), hint="return None where the hardware is absent; never exit", **shared)
    if root["type"] == "MemoryError" or error["type"] == "MemoryError":
        message = f"{entry.label} asks for more memory in {PHASE_WORDS[phase]} than the limit of {world.limits.get('memory', 0):g} MiB"
        return find("SP306", subject, message, cause=cause_of(error), hint="allocate in init_backend(), or raise --memory", **shared)
    if entry.report.get("touched"):
        touched = entry.report["touched"][0]
        message = f"{entry.label} reads current_platform in {PHASE_WORDS[phase]}, while SGLang asks it which platform that is"
        hint = "ask the driver or torch directly; use current_platform from init_backend() on"
        return find("SP311", subject, message, cause=f"read{where(touched)}", hint=hint, **{**shared, "location": place(touched)})
    if _is_circular(error):
        message = f"{entry.label} imports SGLang's inside while SGLang itself is half imported: {after}"
        return find("SP310", subject, message, cause=cause_of(error), hint=_CIRCULAR_HINT, **shared)
    beyond = beyond_standin(world, error)
    if beyond is not None:
        message = f"{entry.label} needs {beyond}, which {world.host_name} has and the stand-in has not: it could not be tried here"
        hint = "sglang-plug doctor --python /path/to/python, with SGLang installed there"
        return find("SP008", subject, message, cause=cause_of(error), hint=hint, **shared)
    if phase == "load":
        return _judge_load(world, entry, error, shared)
    callback = entry.report.get("callback", {})
    if _is_call_error(error, callback):
        return _judge_callback(entry, error, callback, after, shared)
    return find(
        "SP302",
        subject,
        f"{entry.label} raises {error['type']} in {PHASE_WORDS[phase]}: {after}",
        cause=cause_of(error),
        hint=_raise_hint(world, entry, root),
        **shared,
    )


_CIRCULAR_HINT = (
    "at activation only sglang.srt.platforms.interface, .device_mixin, sglang.srt.plugins.hook_registry and sglang.srt.environ are safe; "
    "move the import into init_backend()"
)


def _is_circular(error: Mapping[str, Any]) -> bool:
    texts = (error["message"], error["root"]["message"])
    return any("partially initialized module 'sglang" in text or ("circular import" in text and "sglang" in text) for text in texts)


def _raise_hint(world: World, entry: Entry, root: Mapping[str, Any]) -> str:
    if root.get("module"):
        return f"pip install {root['module'].partition('.')[0].replace('_', '-')}, in {world.facts['interpreter']['prefix']}"
    if entry.kind == "platform" and entry.runtime == "srt" and world.selected("srt") is None:
        return f"to make this failure fatal instead of silent: export SGLANG_PLATFORM={entry.name}"
    return f"sglang-plug doctor {entry.name} --verbose shows the traceback"


def _judge_load(world: World, entry: Entry, error: Mapping[str, Any], shared: dict[str, Any]) -> Finding:
    root, after = error["root"], consequence(world, entry)
    missing = root.get("module")
    top = entry.module.partition(".")[0]
    if missing and (missing == entry.module or entry.module.startswith(missing + ".")):
        dist: Mapping[str, Any] = next((row for row in world.facts["distributions"] if row["where"] == entry.row["where"]), {})
        files = "; its RECORD lists files that are not there" if dist.get("missing") else ""
        message = f"{entry.label} names the module '{missing}', which is not there{files}: {after}"
        return find("SP208", entry.subject(), message, cause=cause_of(error), hint=_missing_hint(entry, missing), **shared)
    if error["type"] == "AttributeError" and error.get("place") is None:
        attribute = entry.value.partition(":")[2].strip()
        message = f"{entry.label} names '{attribute}', which '{entry.module}' does not have: {after}"
        return find(
            "SP301",
            entry.subject(),
            message,
            cause=cause_of(error),
            hint=f"define {attribute} in {entry.module}, or correct {entry.value!r}",
            **shared,
        )
    message = f"{entry.label} does not import: {error['type']}: {after}"
    if missing and missing.startswith(top + "."):
        hint = f"the package lacks {missing}: list its subpackages in its build configuration (it may work with pip install -e only)"
    else:
        hint = _raise_hint(world, entry, root)
    return find("SP301", entry.subject(), message, cause=cause_of(error), hint=hint, **shared)


def _missing_hint(entry: Entry, missing: str) -> str:
    if missing == entry.module.partition(".")[0]:
        return f"pip install --force-reinstall --no-deps {entry.dist}, or pip uninstall {entry.dist} if only its metadata was copied"
    return f"the package lacks {missing}: list its subpackages in its build configuration"


def _is_call_error(error: Mapping[str, Any], callback: Mapping[str, Any]) -> bool:
    """True where the call itself failed, before a line of the callback ran."""
    if error["type"] != "TypeError" or error.get("place") is not None:
        return False
    required = [p for p in callback.get("parameters") or [] if p["required"]]
    return bool(required) or "not callable" in error["message"] or callback.get("kind") == "class"


def _judge_callback(entry: Entry, error: Mapping[str, Any], callback: Mapping[str, Any], after: str, shared: dict[str, Any]) -> Finding:
    required = [p["name"] for p in callback.get("parameters") or [] if p["required"]]
    if "not callable" in error["message"]:
        message = f"{entry.label}: {entry.value} is a {callback.get('kind')}, not a function: {after}"
    elif callback.get("kind") == "class":
        message = f"{entry.label} names a class that cannot be called without arguments, not a function that returns its name: {after}"
    else:
        message = (
            f"{entry.label}: the callback needs the argument{'s' * (len(required) > 1)} {names(required)}, SGLang passes none: {after}"
        )
    location = Location(callback["file"], callback["line"]) if callback.get("file") else shared.pop("location")
    shared.pop("location", None)
    return find(
        "SP307", entry.subject(), message, cause=cause_of(error), hint="write a function without arguments", location=location, **shared
    )


def _shown(world: World, entry: Entry) -> str | None:
    """Return the words in which SGLang itself shows a platform's failure to whoever imports it."""
    if entry.kind != "platform":
        return None
    verdict = (world.rehearsal.get("verdict", {}).get(entry.runtime) or {}).get("value") or {}
    error = verdict.get("phases", {}).get("shown", {}).get("error")
    return f"{error['type']}: {error['message']}" if error else None


def endings(world: World) -> Iterator[Finding]:
    """SP303, SP304, SP305, SP902: the fork ended without an answer."""
    for entry in world.tried:
        trial = entry.trial or {}
        if trial.get("value") is not None:
            continue
        ended = trial["ended"]
        phase = PHASE_WORDS.get(trial.get("phase") or "", "its import or callback")
        stack = _stack(ended)
        cause = f"it was at {stack[0]['file']}:{stack[0]['line']} in {stack[0]['function']}" if stack else None
        shared: dict[str, Any] = {"cause": cause, "location": place(stack[0]) if stack else None, "stack": stack or None}
        after = consequence(world, entry)
        if ended["kind"] == "timeout":
            message = f"{entry.label} did not return from {phase} in {ended['seconds']:g} s: SGLang waits for ever"
            yield find("SP305", entry.subject(), message, hint="probe the device with a time limit, and in init_backend()", **shared)
        elif ended["kind"] == "signal":
            message = f"{entry.label} crashed the interpreter in {phase} ({ended['name']}, signal {ended['number']}): SGLang dies with it"
            hint = (
                "the kernel may have ended it for lack of memory"
                if ended["name"] == "SIGKILL"
                else "check the native library that it loads"
            )
            yield find("SP304", entry.subject(), message, hint=hint, **shared)
        elif ended["kind"] == "exit":
            message = f"{entry.label} ended the process in {phase} (exit status {ended['code']}): SGLang ends with it, without a word"
            yield find("SP303", entry.subject(), message, hint="return None where the hardware is absent; never exit", **shared)
        else:
            yield find("SP902", entry.subject(), f"{entry.label} could not be examined ({ended_words(ended)}); {after}", **shared)


def _stack(ended: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the frames of a dump that are the plugin's or below it: none of the import machinery, of SGLang's, or ours."""
    frames = [frame for frame in ended.get("stack") or [] if not frame["file"].startswith("<frozen")]
    cut = next((i for i, f in enumerate(frames) if "/sglang_plug/probe/" in f["file"] or "/sglang/srt/" in f["file"]), len(frames))
    return frames[:cut]


def bad_return(world: World) -> Iterator[Finding]:
    """SP307, SP308: what a callback returned."""
    for entry in world.tried:
        returned = entry.report.get("returned")
        if returned is None or entry.error("call"):
            continue
        kind = returned["type"]
        callback = entry.report.get("callback", {})
        location = Location(callback["file"], callback["line"]) if callback.get("file") else None
        if kind in {"coroutine", "generator", "async_generator"}:
            word = {"coroutine": "an async function", "generator": "a generator"}.get(kind, "an async generator")
            message = f"{entry.label}: the callback is {word}, and SGLang only calls it: its body never runs"
            yield find("SP307", entry.subject(), message, hint="write a plain function", location=location)
        elif entry.kind == "platform" and kind != "NoneType":
            why = judge_return(returned)
            if why is not None:
                yield find(
                    "SP308",
                    entry.subject(),
                    f"{entry.label} returned {why}; a callback returns 'package.module.Class' or None: {_fatal(entry)}",
                    hint=_return_hint(returned),
                    location=location,
                    shown=_shown(world, entry),
                )


def _fatal(entry: Entry) -> str:
    return "startup fails, even without a selection" if entry.host else "selecting it fails"


def judge_return(returned: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a platform callback's answer; None for a class name."""
    if returned["type"] != "str":
        return f"a {returned['type']}: {returned['repr']}"
    text = returned["text"]
    if not text.strip():
        return "an empty text"
    if not _CLASS_PATH.fullmatch(text):
        return f"{text!r}, which is no dotted name"
    return f"{text!r}, which names no module" if "." not in text and ":" not in text else None


def _return_hint(returned: Mapping[str, Any]) -> str:
    if returned.get("class"):
        return f'return "{returned["class"]}"'
    if returned["type"] == "tuple":
        return "return the class name alone; (True, name) is another engine's contract"
    return 'return "package.module:Class"'


def hardware_absent(world: World) -> Iterator[Finding]:
    """SP309: ordinary on another machine, fatal for the selected platform."""
    for entry in world.of("platform"):
        returned = entry.report.get("returned") or {}
        if returned.get("type") != "NoneType" or entry.report.get("callback", {}).get("kind", "").startswith("async"):
            continue
        explicit = world.selected(entry.runtime) == entry.name
        yield find(
            "SP309",
            entry.subject(),
            f"{entry.label} returned None: its hardware is absent here"
            + (", and it is selected: startup fails with RuntimeError" if explicit else ""),
            hint="check the driver, or unset the selector" if explicit else None,
            level=Level.ERROR if explicit else None,
        )


def imports_inside(world: World) -> Iterator[Finding]:
    """SP310, SP330: what a platform's callback imports of SGLang; the stand-in has no circle, real SGLang does."""
    for entry in world.of("platform", "srt"):
        if entry.error("load") or entry.error("call"):
            continue
        seen = [row for row in entry.report.get("imports", ()) if not row["module"].startswith(SAFE) and row.get("file")]
        circular = [row for row in seen if row["module"].startswith(CIRCULAR)]
        if circular and not world.real:
            first = circular[0]
            yield find(
                "SP310",
                entry.subject(),
                f"{entry.label} imports {first['module']} while it is activated: on real SGLang, since 0.5.13, that is a circular import",
                cause=f"imported{where(first)}",
                hint=_CIRCULAR_HINT,
                location=place(first),
            )
        elif seen:
            yield find(
                "SP330",
                entry.subject(),
                f"{entry.label} imports {names(sorted({row['module'] for row in seen}), 3)} while it is activated, in every process and "
                "before SGLang is ready",
                cause=f"imported{where(seen[0])}",
                hint="move the import into init_backend()",
                location=place(seen[0]),
            )


def reads_current_platform(world: World) -> Iterator[Finding]:
    """SP311: also where the plugin swallowed the failure."""
    for entry in world.of("platform"):
        if entry.report.get("touched") and not (entry.error("load") or entry.error("call")):
            touched = entry.report["touched"][0]
            yield find(
                "SP311",
                entry.subject(),
                f"{entry.label} reads current_platform while SGLang asks it which platform that is",
                cause=f"read{where(touched)}",
                hint="ask the driver or torch directly; use current_platform from init_backend() on",
                location=place(touched),
            )


def import_order(world: World) -> Iterator[Finding]:
    """SP312: imported before SGLang, such a module is met half built."""
    for entry in world.of("platform", "srt"):
        tops = entry.report.get("top_imports") or []
        if tops and not entry.error("load"):
            yield find(
                "SP312",
                entry.subject(),
                f"{entry.label}: its module imports {tops[0]['module']} at its top and holds the callback; a program that imports "
                f"{entry.module} before sglang falls back to a built-in platform",
                cause="`import sglang` then asks the half-built module for its callback",
                hint="put the callback into a module of its own that imports nothing of SGLang",
                location=Location(tops[0]["file"], tops[0]["line"]),
            )


def several_active(world: World) -> Iterator[Finding]:
    """SP313: the host refuses to choose."""
    for runtime, decision in world.decisions.items():
        error = decision.resolution.error
        if error is None or not any(step.data.get("kind") == "ambiguous" for step in decision.resolution.steps):
            continue
        active = [
            e for e in world.of("platform", runtime) if e.host and (e.report.get("returned") or {}).get("type") not in {None, "NoneType"}
        ]
        selector = decision.policy.selector or "SGLANG_PLATFORM"
        told = " and ".join(f"'{entry.name}' ({entry.dist})" for entry in active)
        yield find(
            "SP313",
            variable(selector),
            f"{told} are both active and {selector} is not set: startup fails",
            cause=error.message,
            hint=f"export {selector}={active[0].name}" if active else f"set {selector}",
        )


RULES = (
    failures,
    endings,
    bad_return,
    hardware_absent,
    imports_inside,
    reads_current_platform,
    import_order,
    several_active,
)
