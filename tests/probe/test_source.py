"""A class is found in its source without any import: every module here would end the process if it were imported."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sglang_plug.probe.parent import Probe
    from tests.plugins.install import Site

POISON = "import os\nos._exit(9)\n"


def poisoned(text: str) -> str:
    return POISON + textwrap.dedent(text)


FILES = {
    "pa/__init__.py": poisoned(
        "from .plat import Plat as Exported\nfrom .plat import Gone\nfrom .nowhere import Lost\nfrom sglang.srt.x import Hosted\n"
    ),
    "pa/plat.py": poisoned("from sglang.srt.platforms.interface import SRTPlatform\nclass Plat(SRTPlatform):\n    pass\n"),
    "pa/guarded.py": poisoned("""
        try:
            import vendor_rt
        except ImportError:
            vendor_rt = None
        if vendor_rt:
            class Plat: pass
        else:
            class Plat: pass
    """),
    "pa/needs.py": poisoned("import json\nimport vendor_rt.sub\nclass Plat: pass\n"),
    "pa/lazy.py": poisoned("def __getattr__(name):\n    return 1\n"),
    "pa/made.py": poisoned("Plat = type('Plat', (), {})\n"),
    "pa/starred.py": poisoned("from .plat import *\n"),
    "pa/func.py": poisoned("def Plat(): pass\n"),
    "pa/broken.py": "class Plat(:\n",
    "pa/sub/deep.py": poisoned("class Outer:\n    class Inner: pass\n"),
}


@pytest.mark.parametrize(
    ("qualname", "verdict", "why"),
    [
        ("pa.plat.Plat", "defined", ""),
        ("pa.plat:Plat", "defined", ""),
        (" pa.plat.Plat ", "defined", ""),
        ("pa.Exported", "reexported", ""),
        ("pa.starred.Plat", "reexported", ""),
        ("pa.guarded.Plat", "defined", ""),
        ("pa.sub.deep.Outer.Inner", "defined", ""),
        ("pa.lazy.Plat", "dynamic", "__getattr__"),
        ("pa.made.Plat", "dynamic", "run time"),
        ("pa.Hosted", "dynamic", "sglang.srt.x"),
        ("json.encoder.c_make_encoder", "dynamic", ""),
        ("pa.plat.Nope", "missing_name", "module 'pa.plat' has no attribute 'Nope'"),
        ("pa.starred.Nope", "missing_name", "Nope"),
        ("pa.Gone", "missing_name", "module 'pa.plat' has no attribute 'Gone'"),
        ("pa.Lost", "missing_module", "pa.nowhere"),
        ("pa.plt:Plat", "missing_module", "no module named 'pa.plt'"),
        ("nowhere.Plat", "missing_module", "no module named 'nowhere'"),
        ("pa.plat", "not_a_class", "is a module"),
        ("pa.func.Plat", "not_a_class", "is a function"),
        ("pa.broken.Plat", "unparsable", ""),
        ("pa-dev.Plat", "malformed", ""),
        ("", "malformed", ""),
    ],
)
def test_the_path_is_followed_in_the_source(probe: Probe, site: Site, qualname: str, verdict: str, why: str) -> None:
    site.write(FILES)
    found: dict[str, Any] = probe.require({"op": "locate", "qualname": qualname})
    assert found["verdict"] == verdict
    assert why in found["why"]


def test_place_bases_and_near_misses(probe: Probe, site: Site) -> None:
    site.write(FILES)
    found = probe.require({"op": "locate", "qualname": "pa.plat.Plat"})
    assert (found["file"], found["line"], found["bases"]) == (str(site.root / "pa" / "plat.py"), 4, ["SRTPlatform"])
    assert probe.require({"op": "locate", "qualname": "pa.plat.Plta"})["near"] == ["pa.plat.Plat"]
    assert probe.require({"op": "locate", "qualname": "pa.plt:Plat"})["near"] == ["pa.plat"]


@pytest.mark.parametrize(("module", "rows"), [("needs", [("vendor_rt", 4)]), ("guarded", [])])
def test_missing_packages_are_named_unless_guarded(probe: Probe, site: Site, module: str, rows: list[tuple[str, int]]) -> None:
    site.write({**FILES, "pa/__init__.py": POISON})
    found = probe.require({"op": "locate", "qualname": f"pa.{module}.Plat"})["missing_imports"]
    assert [(row["module"], row["line"]) for row in found] == rows


def test_what_is_nested_in_a_class_is_looked_for_there(probe: Probe, site: Site) -> None:
    site.write(FILES)
    assert probe.require({"op": "locate", "qualname": "pa.sub.deep.Outer.Iner"})["verdict"] == "missing_name"
    assert probe.require({"op": "locate", "qualname": "pa.plat.Plat.Inherited"})["verdict"] == "dynamic"


def test_a_function_is_no_class_unless_something_decorates_it(probe: Probe, site: Site) -> None:
    site.write({"pf/__init__.py": "def deco(f): return type('Plat', (), {})\n@deco\ndef Plat(): pass\n"})
    assert probe.require({"op": "locate", "qualname": "pf.Plat"})["verdict"] == "dynamic"
