"""Generated packages for tests, made by the library or by the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sglang_plug.scaffold import platform, tree
from sglang_plug.scaffold.answers import PlatformAnswers, judge_name

if TYPE_CHECKING:
    from pathlib import Path

#: Every template form that differs: the matrix is runtime × device type × hooks × release.
FORMS: dict[str, dict[str, Any]] = {
    "srt": {},
    "srt-plain": {"hooks": False},
    "diffusion": {"srt": False, "diffusion": True},
    "both": {"diffusion": True},
    "both-mlu": {"diffusion": True, "device_type": "mlu"},
    "both-cuda-plain": {"diffusion": True, "device_type": "cuda", "hooks": False},
    "srt-0.5.17": {"release": "0.5.17"},
    "both-0.5.21": {"diffusion": True, "release": "0.5.21"},
    "both-0.5.22": {"diffusion": True, "release": "0.5.22"},
}


def answers(name: str = "my-chip", **changes: Any) -> PlatformAnswers:
    """Return the default answers with changes."""
    defaults = {"srt": True, "diffusion": False, "device_type": "cpu", "hooks": True, "release": "0.5.23"}
    return PlatformAnswers(name=judge_name(name), **defaults | changes)


def make(folder: Path, name: str = "my-chip", **changes: Any) -> Path:
    """Write a platform package below `folder` and return its own folder."""
    made = answers(name, **changes)
    tree.write(platform.files(made), folder / made.name.distribution)
    return folder / made.name.distribution
