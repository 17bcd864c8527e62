"""Metadata is read as `importlib.metadata` reads it: order, de-duplication, fatal files; but a broken file is only a fact."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sglang_plug.probe.inside import distributions, metadata
from tests.plugins.install import DIFFUSION_PLATFORMS, SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglang_plug.probe.parent import Probe


@pytest.fixture
def path(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """sys.path of this process is the site alone, for both readers."""
    site.root.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(site.root)])
    return site.root


def host(group: str) -> list[tuple[str, str, str | None]]:
    """What the host would enumerate."""
    importlib.metadata.FastPath.__new__.cache_clear()  # type: ignore[attr-defined]  # folders change faster than their time stamps
    return [(entry.name, entry.value, entry.dist.name if entry.dist else None) for entry in importlib.metadata.entry_points(group=group)]


def ours(group: str) -> list[tuple[str, str, str | None]]:
    return [(row["name"], row["value"], row["dist"]) for row in metadata.environment({})["entry_points"] if row["group"] == group]


def test_the_running_environment_is_enumerated_alike() -> None:
    seen: dict[str, None] = {}
    for dist in distributions.distributions():
        seen.setdefault(dist.key)
    theirs = dict.fromkeys(dist._normalized_name for dist in importlib.metadata.distributions())  # type: ignore[attr-defined]
    assert list(seen) == list(theirs)


def test_order_duplicates_and_hidden_distributions(path: Path, site: Site) -> None:
    site.add("b-dist", {SRT_PLATFORMS: {"same": "b:f", "b": "b:g"}})
    site.add("a.dist", {SRT_PLATFORMS: {"same": "a:f"}}, version="2.0")
    site.add("A_dist", {SRT_PLATFORMS: {"stale": "a:f"}}, kind="egg-info")
    assert ours(SRT_PLATFORMS) == host(SRT_PLATFORMS)
    facts = metadata.environment({})
    (hidden,) = facts["shadowed"]
    assert {hidden["name"], *(row["dist"] for row in facts["entry_points"])} >= {"b-dist"}
    assert hidden["by"] in {row["where"] for row in facts["distributions"]}


NAMES = st.sampled_from(["pa", "pa-dist", "PA.dist", "pa_dist", "other", "x", "cuda"])
VALUES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=12)
LINES = st.one_of(
    st.sampled_from(
        [f"[{SRT_PLATFORMS}]", f"[{SRT_PLUGINS}]", f"[{DIFFUSION_PLATFORMS}]", "[other]", "", "# note", "\ufeff[x]", "no equals sign"]
    ),
    st.builds("{} = {}".format, NAMES, VALUES),
    VALUES,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.lists(st.tuples(NAMES, st.lists(LINES, max_size=6)), max_size=5))
def test_any_file_is_read_as_the_host_reads_it(tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, list[str]]]) -> None:
    root = tmp_path_factory.mktemp("fuzz")
    site = Site(root)
    for number, (name, lines) in enumerate(files):
        site.add(name, "\n".join(lines), version=str(number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root)])
        facts = metadata.environment({})
        broken = any(problem["fatal"] for problem in facts["problems"])
        try:
            theirs = {group: host(group) for group in (SRT_PLATFORMS, SRT_PLUGINS, DIFFUSION_PLATFORMS)}
        except TypeError:
            assert broken
        else:
            assert not broken
            assert theirs == {group: ours(group) for group in theirs}


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail(data: bytes) -> None:
    text, problems = metadata._decode(data)
    rows, more = metadata.parse(text)
    assert all(row["group"] is not None for row in rows)
    assert all(problem["line"] >= 1 for problem in problems + more)


@pytest.mark.parametrize(
    ("text", "kind", "fatal", "line"),
    [
        (f"[{SRT_PLATFORMS}]\npa\n", "no_equals", True, 2),
        (f"\ufeff[{SRT_PLATFORMS}]\npa = pa:f\n", "bom", False, 1),
        ("pa = pa:f\n", "sectionless", False, 1),
    ],
)
def test_a_broken_file_is_named_with_its_line(path: Path, site: Site, text: str, kind: str, fatal: bool, line: int) -> None:
    info = site.add("bad", text)
    problem = metadata.environment({})["problems"][0]
    assert (problem["kind"], problem["fatal"], problem["line"], problem["dist"]) == (kind, fatal, line, "bad")
    assert problem["path"] == str(info / "entry_points.txt")


def test_a_file_that_is_not_utf8_is_fatal_as_for_the_host(path: Path, site: Site) -> None:
    (site.add("bad", "") / "entry_points.txt").write_bytes(b"[sglang.srt.platforms]\npa = p\xe9:f\n")
    with pytest.raises(UnicodeDecodeError):
        host(SRT_PLATFORMS)
    problem = metadata.environment({})["problems"][0]
    assert (problem["kind"], problem["fatal"], problem["line"]) == ("encoding", True, 2)


def test_metadata_without_a_name(path: Path, site: Site) -> None:
    info = site.add("nameless", {SRT_PLATFORMS: {"pa": "pa:f"}})
    (info / "METADATA").write_text("Metadata-Version: 2.1\n")
    facts = metadata.environment({})
    assert [row["dist"] for row in facts["entry_points"]] == [None]
    assert [problem["kind"] for problem in facts["problems"]] == ["nameless"]


def sglang_facts(probe: Probe) -> dict[str, Any]:
    found: dict[str, Any] = probe.require({"op": "environment"})["sglang"]
    return found


def test_sglang_is_found_without_being_imported(probe: Probe, site: Site) -> None:
    site.add("sglang", None, {"sglang/__init__.py": "raise SystemExit('imported')", "sglang/srt/__init__.py": ""}, version="0.5.17")
    found = sglang_facts(probe)
    assert (found["kind"], found["version"]) == ("installed", "0.5.17")


def test_a_source_tree_says_its_version(probe: Probe, site: Site) -> None:
    site.write({"sglang/__init__.py": "", "sglang/srt/__init__.py": "", "sglang/version.py": "__version__ = '0.5.19'\n"})
    found = sglang_facts(probe)
    assert (found["kind"], found["version"]) == ("source", "0.5.19")


def test_a_bare_folder_is_no_installation(probe: Probe, site: Site) -> None:
    (site.root / "sglang" / "docs").mkdir(parents=True)
    assert sglang_facts(probe)["kind"] == "directory"


def test_details_for_doctor(probe: Probe, site: Site) -> None:
    site.write({"start.pth": "import os; os.environ['X'] = '1'\n/some/where\n"})
    site.add(
        "pa",
        {SRT_PLATFORMS: {"pa": "pa:f"}},
        {"pa.py": ""},
        record=["pa.py", "gone.py", "start.pth"],
        editable="/src/pa",
        requires=["torch>=2"],
    )
    (facts,) = probe.require({"op": "environment", "detail": True})["distributions"]
    assert (facts["editable"], facts["record"], facts["requires"]) == (True, True, ["torch>=2"])
    assert [path.rsplit("/", 1)[1] for path in facts["missing"]] == ["gone.py"]
    assert facts["pth"][0]["code"] == ["import os; os.environ['X'] = '1'"]
