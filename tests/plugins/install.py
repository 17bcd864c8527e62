"""Builds fake installations in a folder. Owns their layout on disk; never touches the environment of the running tests.

site = Site(tmp_path / "site")
site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {"pa/__init__.py": "def activate(): return 'pa.plat.Plat'"})
subprocess.run([...], env=site.env(SGLANG_PLATFORM="pa"))
"""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SRT_PLATFORMS = "sglang.srt.platforms"
SRT_PLUGINS = "sglang.srt.plugins"
DIFFUSION_PLATFORMS = "sglang.multimodal_gen.platforms"
DIFFUSION_PLUGINS = "sglang.multimodal_gen.plugins"
SERVE_BACKENDS = "sglang.serve_backends"

_OURS = ("SGLANG_", "SGL_", "VLLM_")


@dataclass
class Site:
    """One `sys.path` folder with distributions in it; `extra` folders come before it on the path.

    Attributes:
        root: the folder; made when the first distribution is added.
        extra: further `sys.path` folders, earlier ones first.
    """

    root: Path
    extra: list[Path] = field(default_factory=list)

    def add(
        self,
        name: str,
        entry_points: Mapping[str, Mapping[str, str]] | str | None = None,
        files: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
        requires: Iterable[str] = (),
        kind: str = "dist-info",
        record: Iterable[str] | None = None,
        editable: Path | str | None = None,
        path: Path | None = None,
    ) -> Path:
        """Install a distribution and return its metadata folder.

        Args:
            name: the distribution's name, as METADATA spells it.
            entry_points: group -> name -> value, or the whole text of entry_points.txt.
            files: path below the folder -> text (dedented).
            version: as METADATA spells it.
            requires: Requires-Dist lines.
            kind: `dist-info` or `egg-info`.
            record: paths of RECORD; None writes no RECORD.
            editable: the source folder that direct_url.json names.
            path: another folder to install into.
        """
        site = path or self.root
        self.write(files or {}, path=site)
        stem = name.replace("-", "_")
        info = site / (f"{stem}.egg-info" if kind == "egg-info" else f"{stem}-{version}.dist-info")
        info.mkdir(parents=True, exist_ok=True)
        metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", *(f"Requires-Dist: {line}\n" for line in requires)]
        (info / ("PKG-INFO" if kind == "egg-info" else "METADATA")).write_text("".join(metadata), encoding="utf-8")
        if entry_points is not None:
            (info / "entry_points.txt").write_text(entry_points if isinstance(entry_points, str) else _ini(entry_points), encoding="utf-8")
        if record is not None:
            (info / "RECORD").write_text("".join(f"{line},,\n" for line in record), encoding="utf-8")
        if editable is not None:
            url = {"url": Path(editable).absolute().as_uri(), "dir_info": {"editable": True}}
            (info / "direct_url.json").write_text(json.dumps(url), encoding="utf-8")
        return info

    def write(self, files: Mapping[str, str], *, path: Path | None = None) -> None:
        """Write files below the folder; texts are dedented."""
        site = path or self.root
        site.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            target = site / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(textwrap.dedent(text), encoding="utf-8")

    def env(self, **variables: str) -> dict[str, str]:
        """Return an environment in which a child sees this installation: ours removed, PYTHONPATH and `variables` set."""
        base = {key: value for key, value in os.environ.items() if not key.startswith(_OURS)}
        folders = [*map(str, self.extra), str(self.root)]
        return base | {"PYTHONPATH": os.pathsep.join(folders), "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"} | variables


def _ini(entry_points: Mapping[str, Mapping[str, str]]) -> str:
    lines: list[str] = []
    for group, names in entry_points.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
    return "\n".join(lines) + "\n"


PLATFORM = """
    from sglang.srt.platforms.interface import SRTPlatform
    from sglang.srt.platforms.device_mixin import PlatformEnum

    class Plat(SRTPlatform):
        _enum = PlatformEnum.OOT
        device_name = "acme"
        device_type = "cpu"
        def get_device(self, device_id=0): return "cpu"
        def set_device(self, device): pass
        def get_device_name(self, device_id=0): return "acme"
        def get_device_uuid(self, device_id=0): return "acme-0"
        def get_device_capability(self, device_id=0): return None
        def get_device_total_memory(self, device_id=0): return 1 << 34
        def get_current_memory_usage(self, device=None): return 0.0
        def get_available_memory(self, device_id=0): return (1 << 33, 1 << 34)
        def get_torch_distributed_backend_str(self): return "gloo"
        def get_default_attention_backend(self): return "torch_native"
"""

DIFFUSION_PLATFORM = """
    from sglang.multimodal_gen.runtime.platforms import Platform, PlatformEnum

    class Plat(Platform):
        _enum = PlatformEnum.OOT
        device_name = "acme"
        device_type = "cpu"
        dispatch_key = "PrivateUse1"
        def get_dispatch_key_name(self): return "acme"
        def get_device(self, local_rank=0):
            import torch
            return torch.device("cpu")
        def get_local_torch_device(self):
            import torch
            return torch.device("cpu")
        def get_device_name(self, device_id=0): return "acme"
        def get_device_total_memory(self, device_id=0): return 1 << 34
        def get_available_gpu_memory(self, *a, **k): return 8.0
"""


def platform(site: Site, name: str = "pa", activate: str | None = None, *, plat: str = PLATFORM, group: str = SRT_PLATFORMS) -> Path:
    """Install a platform plugin: module and entry point `name`, distribution `NAME-dist`; `activate` and `plat` are its modules' texts."""
    body = activate if activate is not None else f'def activate():\n    return "{name}.plat.Plat"\n'
    return site.add(f"{name}-dist", {group: {name: f"{name}:activate"}}, {f"{name}/__init__.py": body, f"{name}/plat.py": plat})


def hook(site: Site, body: str, name: str = "hk", *, group: str = SRT_PLUGINS) -> Path:
    """Install a hook plugin `name` whose module is `body` (it must define `register`)."""
    return site.add(f"{name}-dist", {group: {name: f"{name}:register"}}, {f"{name}.py": body})
