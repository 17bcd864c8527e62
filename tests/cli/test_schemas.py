"""What the commands write for machines is what the published schemas say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from tests.plugins.install import SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
SCHEDULER = "sglang.srt.managers.scheduler.Scheduler"
COMMANDS = {
    "doctor": ["doctor"],
    "resolve": ["resolve"],
    "resolve-hook": ["resolve", "--hook", f"{SCHEDULER}.run_batch"],
    "list": ["list"],
    "check": ["check", "."],
    "contract-show": ["contract", "show"],
    "contract-show-method": ["contract", "show", "--method", "get_device"],
    "contract-releases": ["contract", "releases"],
    "hooks": ["hooks", "recording"],
    "contract-diff": ["contract", "diff", "0.5.21", "0.5.22"],
    "contract-targets": ["contract", "targets", f"{SCHEDULER}.run_batch"],
    "serve-plan": ["serve", "--print-command", "--no-preflight"],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One platform that does not import, one hook whose target is gone."""
    made = Site(tmp_path_factory.mktemp("schemas") / "site")
    hook = (
        "from sglang.srt.plugins.hook_registry import HookRegistry, HookType\n\n\n"
        f"def register():\n    HookRegistry.register('{SCHEDULER}.schedule', lambda fn, *a, **k: fn(*a, **k), HookType.AROUND)\n"
    )
    files = {"acme.py": "import libacme_runtime\n", "acme_hooks.py": hook}
    made.add("acme-dist", {SRT_PLATFORMS: {"acme": "acme:activate"}, SRT_PLUGINS: {"acme": "acme_hooks:register"}}, files)
    recording = made.root / "recording"  # as `serve --record` leaves it, of a process whose one hook found no target, beside a torn file
    recording.mkdir()
    hook = {"target": f"{SCHEDULER}.schedule", "type": "around", "hook": "acme_hooks.timed", "plugin": "acme", "dist": "acme-dist"}
    hook |= {"is_class": False, "counter": None, "applied": False, "failure": None}
    process = {
        "schema": 1,
        "runtime": "srt",
        "role": "scheduler",
        "rank": {"tp_rank": 0},
        "pid": 2,
        "parent": 1,
        "argv": [],
        "hooks": [hook],
    }
    process |= {"sglang": "0.5.23", "platform": None, "clock": 1, "time": 1.0, "plugins_failed": []}
    (recording / "launch.json").write_text(
        json.dumps({"schema": 1, "engine": "sglang", "processes": [{"pid": 3, "parent": 1, "title": "x"}]})
    )
    (recording / "scheduler-2-srt.json").write_text(json.dumps(process))
    (recording / "main-1-srt.json").write_text("{")
    return made


def schema(name: str) -> Draft202012Validator:
    found = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(found)
    return Draft202012Validator(found)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_answer_fits_its_schema(name: str, site: Site):
    command = [sys.executable, "-m", "sglang_plug", *COMMANDS[name], "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, env=site.env(), cwd=site.root, check=False)
    assert done.returncode in {0, 1}, done.stderr
    answer = json.loads(done.stdout)
    assert [error.message for error in schema(name).iter_errors(answer)] == []


def test_every_schema_is_tried():
    assert {path.name.removesuffix(".schema.json") for path in SCHEMAS.iterdir()} == set(COMMANDS)


def test_a_schema_refuses_what_is_not_an_answer():
    assert list(schema("doctor").iter_errors({"schema": 1, "host": {}, "entry_points": [], "findings": [{"code": "X"}], "summary": {}}))
