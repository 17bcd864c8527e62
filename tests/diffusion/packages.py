"""Texts of plugin packages that write down what happens to them, and the script that drives them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.plugins.install import DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, Site

if TYPE_CHECKING:
    from pathlib import Path

JOURNAL = """
    import json, os, sys

    WATCHED = ("managers.gpu_worker", "server_args.server_args", "launch_server", "entrypoints.http_server")

    def note(event, **facts):
        loaded = [name for name in WATCHED if "sglang.multimodal_gen.runtime." + name in sys.modules]
        with open(os.environ["JOURNAL"], "a") as out:
            out.write(json.dumps({"event": event, "pid": os.getpid(), "loaded": loaded, **facts}) + "\\n")
"""

#: Targets are imported only once the platform is up and plugins are registered; importing this one says when.
TARGET = """
    from acme.journal import note

    note("hooks applied")

    def target():
        return "original"
"""

HOOKS = """
    from acme.journal import note
    from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType

    RUNTIME = "sglang.multimodal_gen.runtime.managers."
    TARGETS = {
        "arguments": RUNTIME + "worker_bootstrap.ServerArgsPayload.materialize",
        "run_scheduler_process": RUNTIME + "gpu_worker.run_scheduler_process",
        "init_device_and_model": RUNTIME + "gpu_worker.GPUWorker.init_device_and_model",
    }

    def register():
        note("register")
        HookRegistry.register("acme.target.target", lambda result: None)
        for event, target in TARGETS.items():
            def around(original, *args, _event=event, **kwargs):
                note(_event, keywords=sorted(kwargs))
                return original(*args, **kwargs)
            HookRegistry.register(target, around, HookType.AROUND)
"""

#: An external platform on the CPU for the stand-in: every row of the contract writes down that it was asked.
PLATFORM = """
    import inspect
    import torch
    from acme.journal import note
    from sglang.multimodal_gen.runtime.platforms import PlatformEnum
    from sglang.multimodal_gen.runtime.platforms.cpu import CpuPlatform
    from sglang.multimodal_gen.runtime.distributed.device_communicators import cpu_communicator

    class Communicator(cpu_communicator.CpuCommunicator):
        def all_to_all_4D(self, *args, **kwargs):
            note("all_to_all_4D")
            return super().all_to_all_4D(*args, **kwargs)

    class Acme(CpuPlatform):
        _enum = PlatformEnum.OOT
        device_name = "acme"
        device_type = "cpu"
        dispatch_key = "PrivateUse1"

        def init_backend(self): pass
        def apply_server_args_defaults(self, server_args):
            if not server_args.is_arg_explicitly_set("enable_torch_compile"):
                server_args.enable_torch_compile = True
        def get_device(self, local_rank): return torch.device("cpu")
        def get_torch_distributed_backend_str(self): return "gloo"
        def get_dispatch_key_name(self): return "acme"
        def get_compile_backend(self, mode=None): return "eager"
        @classmethod
        def get_device_communicator_cls(cls): return __name__ + ".Communicator"

    def spied(name, raw):
        def method(this, *args, **kwargs):
            note("asked", name=name)
            bound = raw.__get__(None, this) if isinstance(raw, classmethod) else raw.__get__(this)
            return bound(*args, **kwargs)
        return classmethod(method) if isinstance(raw, classmethod) else method

    ROWS = '''ROW_NAMES'''.split()
    for name in ROWS:
        setattr(Acme, name, spied(name, inspect.getattr_static(Acme, name)))
"""


def install(site: Site, rows: str, *, hooks: str = HOOKS, platform: str = PLATFORM) -> None:
    """Install the package `acme`: a platform and its hooks in one distribution."""
    files = {
        "acme/__init__.py": 'def activate(): return "acme.platform.Acme"\n',
        "acme/journal.py": JOURNAL,
        "acme/target.py": TARGET,
        "acme/hooks.py": hooks,
        "acme/platform.py": platform.replace("ROW_NAMES", rows),
    }
    site.add("acme-pkg", {DIFFUSION_PLATFORMS: {"acme": "acme:activate"}, DIFFUSION_PLUGINS: {"acme": "acme.hooks:register"}}, files)


def journal(path: Path) -> list[dict[str, Any]]:
    """Return what was written down, in order."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


#: The document's layout of an offline script: only the facade at module scope.
SCRIPT = """
import json, multiprocessing, os, sys
from sglang.multimodal_gen import DiffGenerator

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")  # the application's own choice; workers are spawned all the same
    asked = json.loads(sys.argv[1])
    request = {"prompt": "a red cube", "seed": 7, "num_inference_steps": 2, "guidance_scale": 2.0, "save_output": False}
    with DiffGenerator.from_pretrained(model_path="tiny-dit", log_level="warning", **asked) as generator:
        result = generator.generate(request)
        info = generator.client.forward(__import__("sglang.multimodal_gen.runtime.pipelines_core.schedule_batch",
            fromlist=["ControlReq"]).ControlReq("info")).output
    with open("image.png", "wb") as out:
        out.write(result.png)
    json.dump({"pid": os.getpid(), "shape": result.samples.shape, "info": info}, sys.stdout)
"""
