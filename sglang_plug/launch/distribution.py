"""The temporary distribution that makes one launch record its hooks. Nothing is installed.

It is a folder on the PYTHONPATH of that launch alone, and an allowlist is extended for it.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_plug import __version__
from sglang_plug.core import environ
from sglang_plug.errors import LaunchError
from sglang_plug.launch import recorder
from sglang_plug.launch.recording import LAUNCH
from sglang_plug.probe.environment import variables_for

if TYPE_CHECKING:
    from sglang_plug.launch.plan import Plan

PLUGIN = "sglang_plug_recorder"
_ENTRY_POINTS = f"""\
[sglang.srt.plugins]
{PLUGIN} = {PLUGIN}:srt

[sglang.multimodal_gen.plugins]
{PLUGIN} = {PLUGIN}:diffusion
"""


def prepare(plan: Plan, folder: Path | None, promised: str | None = None) -> tuple[Plan, Path, Path]:
    """Return the plan with the recorder on its path, the temporary folder to remove afterwards, and where the records go.

    Args:
        plan: the launch.
        folder: where the user wants the records, calls counted; None keeps them in the temporary folder, without counting.
        promised: the platform class that a plugin named, for the recorder to compare.

    Raises:
        LaunchError: the folder cannot be written, or holds the records of another launch.
    """
    records = None if folder is None else _claim(folder.absolute())
    temporary = _put_down()
    site = temporary / "site"
    records = records or temporary / "records"
    environment = plan.environment
    changes = {
        recorder.FOLDER: str(records),
        recorder.COUNTING: "0" if folder is None else "1",
        recorder.PROMISED: promised,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(site), environment.env.get("PYTHONPATH", "")])),
        **_allowing(environment.env.get),
    }
    return replace(plan, environment=environment.with_variables(changes)), temporary, records


def _put_down() -> Path:
    """Make the temporary folder: the distribution in `site`, and a place for records.

    Raises:
        LaunchError: the temporary folder cannot be written.
    """
    temporary = None
    try:
        temporary = Path(tempfile.mkdtemp(prefix="sglang-plug-"))
        info = temporary / "site" / f"{PLUGIN}-{__version__}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PLUGIN}\nVersion: {__version__}\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(_ENTRY_POINTS, encoding="utf-8")
        shutil.copytree(Path(recorder.__file__).parent, temporary / "site" / PLUGIN, ignore=shutil.ignore_patterns("__pycache__"))
        (temporary / "records").mkdir()
    except OSError as exc:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise LaunchError(
            "the temporary folder cannot be written",
            subject=str(temporary or "TMPDIR"),
            cause=str(exc),
            hint="free space there, set TMPDIR, or serve without being watched: --no-preflight",
        ) from exc
    return temporary


def _allowing(get: Any) -> dict[str, str | None]:
    """Return the variables that add the recorder to an allowlist; none where there is no allowlist."""
    listed = get(environ.PLUGINS.replace("SGLANG_", "SGL_", 1)) or get(environ.PLUGINS)
    return variables_for(plugins=f"{listed},{PLUGIN}") if listed else {}


def _claim(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / LAUNCH).touch(exist_ok=False)
    except FileExistsError as exc:
        raise LaunchError(
            "the folder holds the records of another launch" if (folder / LAUNCH).exists() else "not a folder",
            subject=f"--record {folder}",
            hint=f"name another folder, or remove this one: rm -r {folder}",
        ) from exc
    except OSError as exc:
        raise LaunchError(
            "the records cannot be written", subject=f"--record {folder}", cause=str(exc), hint="name a folder that can be written"
        ) from exc
    return folder


def write_launch(folder: Path, facts: dict[str, Any]) -> None:
    """Write the facts of the launch beside its records.

    Raises:
        OSError: they cannot be written.
    """
    beside = folder / (LAUNCH + ".new")
    beside.write_text(json.dumps({"schema": 1, **facts}, indent=1), encoding="utf-8")
    beside.replace(folder / LAUNCH)
