"""The catalogue against real imports: every name of a sample of modules, found statically and by `getattr`."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from sglang_plug.contract import catalogue
from sglang_plug.contract.model import CALLABLE, Kind, Presence

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]

CHILD = """
import importlib, inspect, json, sys, types, warnings
warnings.simplefilter("ignore")
told = {}
for name in json.load(sys.stdin):
    try:
        module = importlib.import_module(name)
    except BaseException:
        continue
    rows = told[name] = {}
    for key, value in list(vars(module).items()):
        rows[key] = None
        if isinstance(value, types.FunctionType) and not hasattr(value, "__wrapped__"):
            rows[key] = [p.name for p in inspect.signature(value).parameters.values()]
        elif isinstance(value, type) and value.__module__ == name and value.__qualname__ == key:
            for member in dir(value):
                try:
                    getattr(value, member)
                except AttributeError:
                    continue
                raw = inspect.getattr_static(value, member)
                plain = isinstance(raw, types.FunctionType) and not hasattr(raw, "__wrapped__")
                rows[key + "." + member] = [p.name for p in inspect.signature(raw).parameters.values()] if plain else None
with open(sys.argv[1], "w") as out:
    json.dump(told, out)
import os; os._exit(0)
"""
PLACES = (
    *(
        f"sglang.srt.{place}"
        for place in ("managers", "platforms", "plugins", "distributed", "layers", "utils", "entrypoints", "mem_cache")
    ),
    "sglang.multimodal_gen.runtime.platforms",
    "sglang.multimodal_gen.runtime.managers",
)


@pytest.mark.parametrize(("fixture", "version"), [("real_sglang", "0.5.23"), ("real_sglang_0521", "0.5.21")])
def test_names_and_signatures_agree_with_imports(request: pytest.FixtureRequest, tmp_path: Path, fixture: str, version: str):
    python = request.getfixturevalue(fixture)
    release = catalogue.load(version)
    modules = [name for index, name in enumerate(release.modules) if name.startswith(PLACES) and (index % 3 == 0 or name.count(".") <= 3)]
    out = tmp_path / "told.json"
    subprocess.run(
        [str(python), "-c", CHILD, str(out)], input=json.dumps(modules), text=True, capture_output=True, check=True, cwd=tmp_path
    )
    told = json.loads(out.read_text())
    assert len(told) > 100
    missing, wrong, invented, seen = [], [], [], 0
    for module, rows in told.items():
        for name, parameters in rows.items():
            if name.rpartition(".")[2].startswith("__"):
                continue
            seen += 1
            symbol = release.find(f"{module}.{name}")
            if symbol is None or symbol.kind is Kind.FIELD:
                missing.append(f"{module}.{name}")
            elif parameters is not None and symbol.kind in CALLABLE and not symbol.varies and not symbol.decorators:
                read = symbol.parameters
                if read is not None and [parameter.name for parameter in read] != parameters:
                    wrong.append(f"{module}.{name}: {symbol.signature} is {parameters}")
        for symbol in release.children(module):
            leaf = symbol.name.rpartition(".")[2]
            if (
                leaf not in rows
                and symbol.presence is Presence.SURE
                and symbol.kind not in {Kind.MODULE, Kind.UNKNOWN}
                and "__getattr__" not in rows
            ):
                invented.append(symbol.name)
    assert seen > 10_000
    assert len(missing) < seen / 2_000, missing[:20]
    assert not wrong, wrong[:20]
    assert not invented, invented[:20]
