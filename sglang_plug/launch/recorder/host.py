"""The engine around the recorder, real SGLang or the stand-in: its registries, its platform, and which process this is. Decides nothing."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Any

REGISTRIES = {"srt": "sglang.srt.plugins.hook_registry", "diffusion": "sglang.multimodal_gen.runtime.platforms.plugins"}
PLATFORMS = {"srt": "sglang.srt.platforms", "diffusion": "sglang.multimodal_gen.runtime.platforms"}
PROMISED = "SGLANG_PLUG_RECORD_PLATFORM"  # the class that the preflight expects, as its plugin names it

# Which function a process was started with, and how its caller calls its rank.
ENTRANCES = {
    "run_scheduler_process": "scheduler",
    "run_detokenizer_process": "detokenizer",
    "run_multi_detokenizer_router_process": "detokenizer router",
    "run_data_parallel_controller_process": "data-parallel controller",
    "bootstrap_scheduler_process": "diffusion worker",
    "bootstrap_http_server_process": "diffusion HTTP server",
}
RANKS = ("dp_rank", "pp_rank", "tp_rank", "rank")


def rows(registry: Any, runtime: str) -> list[tuple[str, str, Any, Any, Any]]:
    """Return (target, type, hook, source, replace) of every registration; `replace(new)` puts another function in its place."""
    standin = standin_registry(runtime)
    if standin is not None:
        return [
            (target, hook.type.value, hook.function, hook.source, functools.partial(_swap, entries, index))
            for target, entries in standin.hooks.items()
            for index, hook in enumerate(entries)
        ]
    return [
        (target, kind.value, hook, source, functools.partial(_put, entries, index))
        for target, entries in registry._hooks.items()
        for index, (kind, hook, source) in enumerate(entries)
    ]


def _put(entries: list[Any], index: int, function: Any) -> None:
    kind, _, source = entries[index]
    entries[index] = (kind, function, source)


def _swap(entries: list[Any], index: int, function: Any) -> None:
    entries[index] = entries[index]._replace(function=function)


def standin_registry(runtime: str) -> Any:
    """Return the stand-in's own registry of a runtime; None on real SGLang."""
    core = sys.modules.get("sglang_plug.core.process")
    version = str(getattr(sys.modules.get("sglang"), "__version__", ""))
    return getattr(core, runtime).hooks if core is not None and version.endswith("standin") else None


def platform(runtime: str) -> dict[str, Any] | None:
    """Return the platform that this process uses, where it is decided already. Decides nothing."""
    core = sys.modules.get("sglang_plug.core.process")
    current = vars(sys.modules.get(PLATFORMS[runtime]) or object).get("_current_platform")
    if current is None and core is not None:
        current = getattr(core, runtime)._platform
    if current is None:
        return None
    kind = type(current)
    return {
        "qualname": f"{kind.__module__}.{kind.__qualname__}",
        "device_name": str(getattr(current, "device_name", "")),
        "device_type": str(getattr(current, "device_type", "")),
        "promised": _is_promised(kind, os.environ.get(PROMISED, "").strip()),
    }


def _is_promised(kind: type, name: str) -> bool:
    """Tell whether a class is the one of this name, under which a plugin may have imported it from elsewhere; "" promises nothing."""
    parts = name.replace(":", ".").split(".")
    length = next((n for n in range(len(parts) - 1, 0, -1) if ".".join(parts[:n]) in sys.modules), 0)
    found: Any = sys.modules.get(".".join(parts[:length]))
    for part in parts[length:]:
        found = getattr(found, part, None)
    return not name or found is kind or f"{kind.__module__}.{kind.__qualname__}" == ".".join(parts)


def who() -> tuple[str, dict[str, int]]:
    """Return this process's role and ranks: from the function that it was started with, else from its own name (`scheduler_TP0`)."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        role = ENTRANCES.get(frame.f_code.co_name)
        if role is not None:
            ranks = {name: frame.f_locals[name] for name in RANKS if isinstance(frame.f_locals.get(name), int)}
            return role, ranks
        frame = frame.f_back
    process = sys.modules.get("multiprocessing.process")
    name = "MainProcess" if process is None else process.current_process().name
    ranks = {f"{kind.lower()}_rank": int(number) for kind, number in re.findall(r"(DP|PP|TP)(\d+)", name)}
    return ("main" if name == "MainProcess" else re.split(r"_(?:DP|PP|TP)\d", name)[0]), ranks
