"""Metadata as candidates: order, duplicates, and how often files are read."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from sglang_plug.core import entrypoints
from sglang_plug.core.entrypoints import Candidate
from sglang_plug.errors import BrokenMetadata
from tests.plugins.install import SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from pathlib import Path


def test_order_and_duplicates_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("second", "first"):
        site = Site(tmp_path / name)
        site.add(f"{name}-dist", {SRT_PLATFORMS: {"dev": f"{name}:activate"}}, version="2.0")
        monkeypatch.syspath_prepend(str(site.root))
    found = entrypoints.installed(SRT_PLATFORMS)
    assert [(c.name, c.value, c.dist, c.version) for c in found] == [
        ("dev", "first:activate", "first-dist", "2.0"),
        ("dev", "second:activate", "second-dist", "2.0"),
    ]


def test_what_is_installed_later_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = Site(tmp_path / "site")
    site.add("one", {SRT_PLUGINS: {"a": "a:f"}})
    monkeypatch.syspath_prepend(str(site.root))
    assert len(entrypoints.installed(SRT_PLUGINS)) == 1
    site.add("two", {SRT_PLUGINS: {"b": "b:f"}})
    assert {c.dist for c in entrypoints.installed(SRT_PLUGINS)} == {"one", "two"}


def test_loading_imports_what_the_value_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = Site(tmp_path / "site")
    site.add("one", {SRT_PLUGINS: {"a": "loaded_mod:K.f"}}, {"loaded_mod.py": "class K:\n    f = staticmethod(lambda: 7)"})
    monkeypatch.syspath_prepend(str(site.root))
    (found,) = entrypoints.installed(SRT_PLUGINS)
    assert "loaded_mod" not in sys.modules
    assert entrypoints.load(found)() == 7
    assert entrypoints.load(Candidate("a", "loaded_mod:K.f", SRT_PLUGINS))() == 7
    monkeypatch.delitem(sys.modules, "loaded_mod")


def test_a_face_brings_its_own_enumeration():
    asked = []

    def patched(*, group: str) -> list[SimpleNamespace]:
        asked.append(group)
        return [SimpleNamespace(name="a", value="m:f", dist=None, load=lambda: 5)]

    (found,) = entrypoints.installed("some.group", patched)
    assert (asked, found.dist, entrypoints.load(found)) == (["some.group"], None, 5)


def test_each_metadata_file_is_read_at_most_once(tmp_path: Path):
    site = Site(tmp_path / "site")
    for number in range(30):
        groups = {group: {f"p{number}": "m:f"} for group in entrypoints.GROUPS} if number % 3 == 0 else {"console_scripts": {"x": "m:f"}}
        site.add(f"dist-{number}", groups)
    code = """
import sys, collections, importlib.metadata
from sglang_plug.core import entrypoints
opened = collections.Counter()
sys.addaudithook(lambda event, args: opened.update([str(args[0])]) if event == "open" and str(args[0]).startswith(sys.argv[1]) else None)
for _ in range(3):
    for group in entrypoints.GROUPS:
        assert len(entrypoints.installed(group)) == 10, group
        assert len(entrypoints.installed(group, importlib.metadata.entry_points)) == 10
files = [name for name in opened if name.endswith(("METADATA", "entry_points.txt"))]
assert len(files) == 40, files
assert max(opened[name] for name in files) == 1, opened
"""
    done = subprocess.run([sys.executable, "-c", code, str(site.root)], env=site.env(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_broken_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    site = Site(tmp_path / "site")
    site.add("good", {SRT_PLUGINS: {"a": "a:f"}})
    info = site.add("bad", "[console_scripts]\nno value on this line\n")
    monkeypatch.syspath_prepend(str(site.root))
    with pytest.raises(BrokenMetadata, match="cannot be read") as caught:
        entrypoints.installed(SRT_PLUGINS)
    assert caught.value.subject == str(info)
    assert caught.value.hint == f"repair or remove {info / 'entry_points.txt'}"
    (info / "entry_points.txt").write_text("[console_scripts]\nx = a:f\n")
    assert [c.dist for c in entrypoints.installed(SRT_PLUGINS)] == ["good"]
