"""Runs SGLang's own chain over many made-up worlds. Started with the engine's python: the worlds come as JSON, the answers go out as JSON.

Only the metadata, the variables and the hardware detectors are made up; the chain and its checks are SGLang's.
"""

import json
import logging
import os
import sys
import types

REPLY = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever the engine prints is no part of the answer


class Dist:
    def __init__(self, name):
        self.name = name


class EntryPoint:
    """What the chain needs of an entry point, with a behaviour instead of a module."""

    def __init__(self, name, dist, does, group, seen):
        self.name, self.dist, self.does, self.group, self.seen = name, Dist(dist), does, group, seen
        self.value = f"{dist}:activate"

    def load(self):
        self.seen.append(f"load {self.dist.name}")
        if self.does == "unloadable":
            raise ImportError("no module")

        def activate():
            self.seen.append(f"call {self.dist.name}")
            if self.does == "raise":
                raise OSError("hw")
            return {"none": None, "empty": "", "spaces": " world.A ", "type": object}.get(self.does, "world." + self.does)

        return activate


def srt(world, modules):
    platforms = modules[0]
    for name in platforms.NAMES:
        setattr(platforms, f"_is_{name}_available", lambda name=name: name in world["present"])
    return type(platforms._resolve_platform()).__name__


def diffusion(world, modules):
    platforms = modules[0]
    names = platforms._BUILTIN_PLATFORM_QUALNAMES
    for name in platforms.builtin_platform_plugins:
        there = name in world["present"] or name == "cpu"
        platforms.builtin_platform_plugins[name] = lambda name=name, there=there: names[name] if there else None
    found = platforms._select_current_platform()
    return [found.qualname, found.plugin_name, found.distribution_name]


def prepare(runtime):
    if runtime == "srt":
        from sglang.srt import platforms, plugins

        platforms.NAMES = [n[4:-10] for n in vars(platforms) if n.startswith("_is_") and n.endswith("_available")]
        base, modules = platforms.SRTPlatform, (platforms, plugins)
    else:
        from sglang.multimodal_gen.runtime import platforms

        base, modules = platforms.Platform, (platforms,)
    world = types.ModuleType("world")
    world.A, world.B = type("A", (base,), {}), type("B", (base,), {})
    sys.modules["world"] = world
    return modules


def main():
    request = json.load(sys.stdin)
    logging.disable(logging.CRITICAL)
    modules = prepare(request["runtime"])
    run = {"srt": srt, "diffusion": diffusion}[request["runtime"]]
    answers = []
    for world in request["worlds"]:
        seen = []
        entries = [EntryPoint(name, dist, does, request["group"], seen) for name, dist, does in world["installed"]]
        for module in modules:
            module.entry_points = lambda group, entries=entries: list(entries)
        for name in request["variables"]:
            os.environ.pop(name, None)
        os.environ.update(world["env"])
        try:
            answer = run(world, modules)
        except Exception as error:
            answer = {"type": type(error).__name__, "message": str(error)}
        answers.append([answer, [line for line in seen if line.startswith("call")]])
    json.dump(answers, REPLY)


main()
