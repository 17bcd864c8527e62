"""SP30x, SP310, SP311: how a plugin's callback loads and runs, or how it ends the process."""

from __future__ import annotations

import errno
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.absent import import_hint
from sglang_plug.checks.lines import lines_of
from sglang_plug.checks.model import Level, Location
from sglang_plug.checks.rules.host import ended_words
from sglang_plug.checks.rules.metadata import judge_value
from sglang_plug.checks.standing import beyond_standin, missing_of_sglang
from sglang_plug.checks.world import Entry, World, cause_of, find, names, place, where
from sglang_plug.core.words import a

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_plug.checks.model import Finding

FILE_LIMIT = "512 MiB"  # of one file, as `probe.inside.subject` sets it
TIGHT = 1024  # MiB: native code may crash where it is refused memory
PHASE_WORDS = {"load": "its import", "call": "its callback", "class": "the import of its class", "instance": "its class's constructor"}


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
            if error is not None and not is_refused_class(error):
                yield _with_way_out(world, entry, _judge_failure(world, entry, phase, error))
                break


def is_refused_class(error: Mapping[str, Any]) -> bool:
    """True for SGLang's refusal of a class as a hook of another type than REPLACE, which a rule of its own tells."""
    return error["builtin"] == "TypeError" and "can only be used with HookType.REPLACE" in error["message"]


def _with_way_out(world: World, entry: Entry, finding: Finding) -> Finding:
    """Add the quick way out where another platform can be selected: then this one is not even imported."""
    ends = entry.runtime == "diffusion" or finding.code in {"SP303", "SP304", "SP305"}  # SRT goes on after all else
    decision = world.decisions.get(entry.runtime)
    if entry.kind != "platform" or not (ends and entry.host) or world.selected(entry.runtime) or decision is None:
        return finding
    others = [e for e in world.of("platform", entry.runtime) if e.host and e.name != entry.name and not e.failed]
    other = next((e.name for e in others if (e.report.get("returned") or {}).get("text")), None)
    if other is None or decision.policy.selector is None:
        return finding
    return replace(finding, hint=f"{finding.hint}; to go on without it: export {decision.policy.selector}={shlex.quote(other)}")


def _judge_failure(world: World, entry: Entry, phase: str, error: Mapping[str, Any]) -> Finding:
    subject, root = entry.subject(), error["root"]
    location = place(root.get("place") or error.get("place"))
    shared = {
        "location": location,
        "traceback": error["traceback"],
        "shown": shown(entry, error) if world.selected(entry.runtime) == entry.name else None,
    }
    after = consequence(world, entry)
    if shared["shown"]:
        after += f"; SGLang shows this as: {shared['shown']}"
    if error.get("not_an_exception"):
        code = error.get("code")
        what = f"SystemExit, exit status {code if code is not None else 0}" if error["type"] == "SystemExit" else error["type"]
        message = f"{entry.label} ends the process in {PHASE_WORDS[phase]} ({what}): SGLang does not catch that"
        return find("SP303", subject, message, cause=cause_of(error), hint=_never_exit(entry), **shared)
    if root["type"] == "MemoryError" or error["type"] == "MemoryError":
        message = f"{entry.label} asks for more memory in {PHASE_WORDS[phase]} than the limit of {world.limits.get('memory', 0):g} MiB"
        return find("SP306", subject, message, cause=cause_of(error), hint="allocate in init_backend(), or raise --memory", **shared)
    if root["builtin"] == "OSError" and root["message"].startswith(f"[Errno {errno.EFBIG}]"):
        message = f"{entry.label} writes more than {FILE_LIMIT} to its output or to a file in {PHASE_WORDS[phase]}: it was stopped there"
        hint = "log it instead: logging.getLogger(__name__).info(...)"
        return find("SP321", subject, message, cause=cause_of(error), hint=hint, level=Level.ERROR, **shared)
    if entry.report.get("touched"):
        touched = entry.report["touched"][0]
        message = f"{entry.label} reads current_platform in {PHASE_WORDS[phase]}, while SGLang asks it which platform that is"
        hint = "ask the driver or torch directly; use current_platform from init_backend() on"
        return find("SP311", subject, message, cause=f"read{where(touched)}", hint=hint, **{**shared, "location": place(touched)})
    if is_circular(error):
        message = f"{entry.label} imports SGLang's inside while SGLang itself is half imported: {after}"
        return find("SP310", subject, message, cause=cause_of(error), hint=CIRCULAR_HINT, **shared)
    beyond = beyond_standin(world, error)
    if beyond is not None:
        message = f"{entry.label} needs {beyond}, which {world.host_name} has and the stand-in has not: it could not be tried here"
        hint = "sglang-plug doctor --python /path/to/python, with SGLang installed there"
        return find("SP008", subject, message, cause=cause_of(error), hint=hint, **shared)
    if phase == "load":
        return _judge_load(world, entry, error, after, shared)
    callback = entry.report.get("callback", {})
    if _is_call_error(error, callback):
        return _judge_callback(entry, error, callback, after, shared)
    return find(
        "SP302",
        subject,
        f"{entry.label} raises {error['type']} in {PHASE_WORDS[phase]}: {after}",
        cause=cause_of(error),
        hint=_raise_hint(world, entry, root, phase),
        **shared,
    )


def _in_time(entry: Entry) -> str:
    return "probe the device with a time limit, and in init_backend()" if entry.kind == "platform" else "do it when the hook first runs"


def _never_exit(entry: Entry) -> str:
    return f"{'return None where the hardware is absent' if entry.kind == 'platform' else 'raise an ordinary exception'}; never exit"


CIRCULAR_HINT = (
    "at activation only sglang.srt.platforms.interface, .device_mixin, sglang.srt.plugins.hook_registry and sglang.srt.environ are safe; "
    "move the import into init_backend()"
)


def is_circular(error: Mapping[str, Any]) -> bool:
    """True for the failure of an import that meets SGLang half imported."""
    texts = (error["message"], error["root"]["message"])
    return any("partially initialized module 'sglang" in text or ("circular import" in text and "sglang" in text) for text in texts)


#: Exceptions that tell of a slip in the code, not of the machine.
MISTAKES = {"SyntaxError", "NameError", "AttributeError", "TypeError", "IndexError", "RecursionError", "ZeroDivisionError"}
MISTAKES |= {"IndentationError", "TabError", "UnboundLocalError"}


def _raise_hint(world: World, entry: Entry, root: Mapping[str, Any], phase: str) -> str:
    platform = entry.kind == "platform"
    silent = entry.runtime == "srt" and world.selected("srt") is None
    missing = missing_of_sglang(root)
    if missing is not None:
        found = world.catalogue.near(missing, limit=4) if world.catalogue is not None else ()
        near = [name for name in found if name.split(".")[:2] == missing.split(".")[:2]][:2]  # the other runtime's is no help
        moved = f"{world.host_name} has {' and '.join(near)}; " if near else ""
        return f"{moved}sglang-plug check tells which releases have {missing}"
    prefix = world.facts["interpreter"]["prefix"]
    spot = place(root.get("place"))
    at = f"{spot.path}:{spot.line}" if spot else entry.module
    imported = import_hint(root, entry.module, prefix) if root.get("module") else None
    if imported is not None or root["builtin"] in MISTAKES:
        hint = _other_python(world, entry, root) or imported or f"correct {at}"
        if root.get("meant") and not imported:
            hint += f"; did you mean {root['meant'][0]}?"
        elif "Unknown hook type" in root["message"] or (spot and _names_no_type(root, spot)):
            hint += "; HookType has BEFORE, AFTER, AROUND and REPLACE"
        foreign = imported and imported.startswith("install ")
        return f"{hint}; where the device may be absent, import it in the callback and return None" if foreign and platform else hint
    if root.get("variable"):
        return f"export {root['variable']}=…, or give it a default at {at}"
    if platform:
        how = f"catch {root['type']} at {at} and return None" if phase == "call" else f"do it in the callback, not at {at}, and return None"
        return (
            f"where the device is absent: {how}; to have the failure end SGLang: export SGLANG_PLATFORM={shlex.quote(entry.name)}"
            if silent
            else (f"where the device is absent: {how}")
        )
    return f"correct what it does at {at}; sglang-plug doctor {entry.name} --verbose shows the traceback"


def _other_python(world: World, entry: Entry, root: Mapping[str, Any]) -> str | None:
    """Return the hint for syntax of a Python that the package asks for and that this one is not; None for every other failure."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    dist: Mapping[str, Any] = next((row for row in world.facts["distributions"] if row["where"] == entry.row["where"]), {})
    needed, have = dist.get("requires_python"), str(world.facts["interpreter"]["version"])
    try:
        if root["builtin"] != "SyntaxError" or not needed or SpecifierSet(needed).contains(have, prereleases=True):
            return None
    except InvalidSpecifier:
        return None
    return f"{entry.dist} requires Python {needed}, and this is {have}: install it with such a Python"


def _names_no_type(root: Mapping[str, Any], spot: Location) -> bool:
    """True where a line of source asks HookType for what it lacks: Python 3.11 tells the bare name alone."""
    line = (spot.line or 0) - 1
    return root["builtin"] == "AttributeError" and any(
        f"HookType.{root['message']}" in text for text in lines_of(spot.path)[line : line + 1]
    )


def _judge_load(world: World, entry: Entry, error: Mapping[str, Any], after: str, shared: dict[str, Any]) -> Finding:
    root = error["root"]
    missing = root.get("module") if "near" in root else None  # of what is there and lacks a name, nothing is missing
    top = entry.module.partition(".")[0]
    if missing and (missing == entry.module or entry.module.startswith(missing + ".")):
        dist: Mapping[str, Any] = next((row for row in world.facts["distributions"] if row["where"] == entry.row["where"]), {})
        files = "; its RECORD lists files that are not there" if dist.get("missing") else ""
        message = f"{entry.label} names the module '{missing}', which is not there{files}: {after}"
        return find("SP208", entry.subject(), message, cause=cause_of(error), hint=_missing_hint(entry, root), **shared)
    if error["type"] == "AttributeError" and error.get("place") is None:
        attribute = entry.value.partition(":")[2].strip()
        bare = entry.report.get("module_file") is None and "." not in entry.module
        absent = f"'{entry.module}' is a folder without an __init__.py: add it, or correct {entry.value!r}"
        message = f"{entry.label} names '{attribute}', which '{entry.module}' does not have: {after}"
        return find(
            "SP301",
            entry.subject(),
            message,
            cause=cause_of(error),
            hint=f"did you mean '{entry.module}:{root['meant'][0]}'? correct pyproject.toml, then reinstall {entry.dist}; "
            f"or define {attribute}"
            if root.get("meant")
            else absent
            if bare
            else f"define {attribute} in {entry.module}, or correct {entry.value!r}",
            **shared,
        )
    message = f"{entry.label} does not import ({error['type']}): {after}"
    if missing and missing.startswith(top + ".") and not root.get("near"):
        hint = f"the package lacks {missing}: list its subpackages in its build configuration (it may work with pip install -e only)"
    else:
        hint = _raise_hint(world, entry, root, "load")
    return find("SP301", entry.subject(), message, cause=cause_of(error), hint=hint, **shared)


def _missing_hint(entry: Entry, root: Mapping[str, Any]) -> str:
    missing, near = str(root["module"]), root.get("near") or []
    if near:
        meant = near[0] + entry.value.strip()[len(missing) :]
        return f"did you mean '{meant}'? correct pyproject.toml, then pip install -e ."
    if missing == entry.module.partition(".")[0]:
        return f"reinstall {entry.dist} from its source, or pip uninstall {entry.dist} if only its metadata was copied"
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
        message = f"{entry.label}: {entry.value} is {a(str(callback.get('kind')))}, not a function: {after}"
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


def shown(entry: Entry, error: Mapping[str, Any]) -> str | None:
    """Return the words in which SGLang shows a platform's failure to whoever imports it, where they hide the cause; else None.

    The platform is resolved by a module's `__getattr__`, and `from … import …` turns any AttributeError in there into an ImportError.
    """
    module = {"srt": "sglang.srt.platforms", "diffusion": "sglang.multimodal_gen.runtime.platforms"}[entry.runtime]
    if entry.kind != "platform" or error["builtin"] != "AttributeError":
        return None
    return f"ImportError: cannot import name 'current_platform' from '{module}'"


def endings(world: World) -> Iterator[Finding]:
    """SP303, SP304, SP305, SP902: the fork ended without an answer."""
    for entry in world.tried:
        trial = entry.trial or {}
        if trial.get("value") is None:
            phase = PHASE_WORDS.get(trial.get("phase") or "", "its import or callback")
            yield _with_way_out(world, entry, _judge_ending(world, entry, trial["ended"], phase))


def endings_of_application(world: World) -> Iterator[Finding]:
    """SP303, SP304, SP305: the host came to an end while it applied a plugin's hooks, mostly where it imports a target."""
    for runtime in world.runtimes:
        reply = world.rehearsal.get("together", {}).get(runtime)
        if reply is None or reply.get("value") is not None:
            continue
        sound = [entry for entry in world.of("hook plugin", runtime) if entry.trial is not None and not entry.failed]
        alone = {entry.id: (entry.trial or {}).get("alone") for entry in sound}
        culprits = [(entry, found) for entry in sound if (found := alone[entry.id]) is not None and found.get("value") is None]
        if not culprits and len(sound) == 1:
            culprits = [(sound[0], reply)]
        for entry, found in culprits:
            yield _judge_ending(world, entry, found["ended"], "the application of its hooks")
        if not culprits:
            words = f"applying the hooks of all {runtime} plugins together ends the process ({ended_words(reply['ended'])})"
            yield find("SP902", {"kind": "host", "name": "hook plugins", "runtime": runtime}, words, hint="name the plugins one by one")


def _judge_ending(world: World, entry: Entry, ended: Mapping[str, Any], phase: str) -> Finding:
    stack = _stack(ended)
    own = [frame for frame in stack if "/lib/python3" not in frame["file"] or "-packages/" in frame["file"]] or stack
    cause = f"it was at {own[0]['file']}:{own[0]['line']} in {own[0]['function']}" if own else ""
    if own and own[0] is not stack[0]:
        cause += f", which called {stack[0]['function']} at {stack[0]['file']}:{stack[0]['line']}"
    shared: dict[str, Any] = {"cause": cause or None, "location": place(own[0]) if own else None, "stack": stack or None}
    if ended["kind"] == "timeout":
        if _is_importing(entry, ended):
            message = f"{entry.label} was still importing modules after {ended['seconds']:g} s, in {phase}: slow, or waiting there"
            hint = "raise --timeout: a busy machine imports torch slowly"
            return find("SP305", entry.subject(), message, hint=hint, level=Level.WARNING, **shared)
        message = f"{entry.label} did not return from {phase} in {ended['seconds']:g} s: SGLang waits for ever"
        return find("SP305", entry.subject(), message, hint=_in_time(entry), **shared)
    if ended["kind"] == "signal":
        message = f"{entry.label} crashed the interpreter in {phase} ({ended['name']}, signal {ended['number']}): SGLang dies with it"
        out_of_memory = ended["name"] == "SIGKILL"
        hint = "it killed itself, or the kernel ended it for lack of memory" if out_of_memory else "check the native library that it loads"
        if 0 < world.limits.get("memory", 0) < TIGHT:
            hint += f"; it may not bear the limit of {world.limits['memory']:g} MiB: raise --memory"
        return find("SP304", entry.subject(), message, hint=hint, **shared)
    if ended["kind"] == "exit":
        message = f"{entry.label} ended the process in {phase} (exit status {ended['code']}): SGLang ends with it, without a word"
        return find("SP303", entry.subject(), message, hint=_never_exit(entry), **shared)
    if ended["kind"] == "lost":
        message = f"{entry.label} ended the process above its own in {phase}: in SGLang that is the launcher, or the shell"
        return find("SP303", entry.subject(), message, hint="send no signals to os.getppid() or to a process group", **shared)
    if ended["kind"] == "broken":
        message = f"{entry.label} could not be examined behind {phase}: looking at its process fails ({ended['error']})"
        return find("SP902", entry.subject(), message, hint="see what it replaces in builtins, os, sys, json or signal", **shared)
    message = f"{entry.label} could not be examined ({ended_words(ended)}); {consequence(world, entry)}"
    return find("SP902", entry.subject(), message, hint="run doctor again", **shared)


def _is_importing(entry: Entry, ended: Mapping[str, Any]) -> bool:
    """True where the innermost import in a dump is none of the plugin's own modules: another library's body runs, or Python reads it."""
    frames = list(ended.get("stack") or [])
    body = next((index for index, frame in enumerate(frames) if frame["file"].startswith("<frozen importlib")), None)
    top = entry.module.partition(".")[0]
    own = [frame for frame in frames[:body] if {top, f"{top}.py"} & set(frame["file"].split("/"))]
    return body is not None and not own


def _stack(ended: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the frames of a dump that are the plugin's or below it: none of the import machinery, of SGLang's, or ours."""
    frames = [frame for frame in ended.get("stack") or [] if not frame["file"].startswith("<frozen")]
    cut = next((i for i, f in enumerate(frames) if "/sglang_plug/probe/" in f["file"] or "/sglang/srt/" in f["file"]), len(frames))
    return frames[:cut]


RULES = (failures, endings, endings_of_application)
