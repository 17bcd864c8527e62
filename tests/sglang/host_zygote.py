"""Runs the real host once per scenario, each in a fork that shares the heavy imports (torch, transformers) but nothing of SGLang.

Started with the engine's python. A line of JSON in: {"path": [folder], "env": {…}, "first": folder, "runtimes": […]}; a line out:
{"srt": {"class"} | {"error", "message"}, "diffusion": …, "plugins": {"srt": [names executed]}} or {"ended": wait status}.
"""

import contextlib
import importlib
import json
import logging
import os
import sys

ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def heavy_modules():
    """Import SGLang in a fork, and return the names of the other modules that this brings in."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        import sglang  # noqa: F401

        with contextlib.suppress(ImportError):  # an engine without the diffusion extras
            import sglang.multimodal_gen.runtime.platforms as platforms

            platforms.current_platform  # noqa: B018
        with os.fdopen(write, "w") as out:
            out.write("\n".join(name for name in sys.modules if not name.startswith("sglang")))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        names = lines.read().split("\n")
    os.waitpid(pid, 0)
    return names


def facts_of(exc):
    return {"error": type(exc).__name__, "message": str(exc)}


def srt():
    from sglang.srt.platforms import current_platform

    kind = type(current_platform)
    return {"class": f"{kind.__module__}.{kind.__qualname__}"}


def diffusion():
    from sglang.multimodal_gen.runtime.platforms import current_platform

    kind = type(current_platform)
    return {"class": f"{kind.__module__}.{kind.__qualname__}"}


def executed(load):
    """Run a loader of the host, and return the names of the plugins whose callbacks came back."""
    names = []

    class Listener(logging.Handler):
        def emit(self, record):
            words = record.getMessage()
            if words.startswith("Executed "):
                names.append(words.rsplit(": ", 1)[1])

    for name in ("sglang.srt.plugins", "sglang.multimodal_gen.runtime.platforms.plugins"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.addHandler(Listener())
    try:
        load()
    except Exception as exc:
        return facts_of(exc)
    return sorted(names)


def load_srt():
    from sglang.srt.plugins import load_plugins

    load_plugins()


def load_diffusion():
    from sglang.multimodal_gen.runtime.platforms.plugins import apply_plugin_hooks

    apply_plugin_hooks()


def play(scenario):
    sys.path[0] = scenario["first"]
    sys.path[1:1] = scenario["path"]
    os.environ.update(scenario["env"])
    importlib.invalidate_caches()
    answer = {}
    for name in scenario["runtimes"]:
        try:
            answer[name] = {"srt": srt, "diffusion": diffusion}[name]()
        except Exception as exc:
            answer[name] = facts_of(exc)
    loaders = {"srt": load_srt, "diffusion": load_diffusion}
    answer["plugins"] = {name: executed(loaders[name]) for name in scenario["runtimes"] if "error" not in answer[name]}
    return answer


def isolated(scenario):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        answer = play(scenario)
        with os.fdopen(write, "w") as out:
            out.write(json.dumps(answer))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        text = lines.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(text) if text else {"ended": os.waitstatus_to_exitcode(status)}


def main():
    for name in heavy_modules():
        try:
            importlib.import_module(name)
        except ImportError:  # names that only exist inside another module
            continue
    assert not any(name.startswith("sglang") for name in sys.modules)
    for line in sys.stdin:
        ANSWERS.write(json.dumps(isolated(json.loads(line))) + "\n")
        ANSWERS.flush()


main()
