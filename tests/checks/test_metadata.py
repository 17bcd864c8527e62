"""Metadata: real folders on disk, read by one child for each arrangement; values are judged without any."""

from __future__ import annotations

import textwrap
import venv
from typing import TYPE_CHECKING

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.checks.rules import installations, metadata
from sglang_plug.checks.rules.host import interpreter_of
from tests.checks.conftest import by_name, run
from tests.checks.galleries import AFTER, one
from tests.plugins.install import (
    DIFFUSION_PLATFORMS,
    SERVE_BACKENDS,
    SRT_PLATFORMS,
    SRT_PLUGINS,
    Site,
    hook,
    platform,
)

if TYPE_CHECKING:
    from pathlib import Path

REGISTER = "def register(): pass\n"


def codes(report) -> dict[str, set[str]]:
    return {name: {f.code for f in found if f.level is not Level.INFO} for name, found in by_name(report).items()}


@pytest.mark.parametrize(
    ("value", "better"),
    [
        ("my-plugin:register", "my_plugin:register"),
        ("bad/__init__.py:register", "bad:register"),
        ("src/pa/hooks.py:register", "src.pa.hooks:register"),
        ("", None),
        ("pa", "pa:activate"),
        ("pa.sub", "pa.sub:activate"),
        ("pa:", None),
        ("pa register", None),
        (":register", None),
    ],
)
def test_values_that_are_none(value, better):
    why, meant = metadata.judge_value(value)
    assert why
    assert meant == better or better is None


@pytest.mark.parametrize("value", ["pa:activate", "pa.sub:activate", "pa:Class.method", "pa : activate", "pa:register [gpu]", "_pa:x"])
def test_values_that_are_fine(value):
    assert metadata.judge_value(value) == (None, None)


@pytest.mark.parametrize("group", sorted(metadata.OLD_GROUPS))
def test_every_old_group_leads_to_one_that_is_read(group):
    assert metadata.OLD_GROUPS[group] in metadata.KINDS
    assert group not in metadata.KINDS


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """Distributions with one flaw each, none of which touches the others."""
    root = tmp_path_factory.mktemp("metadata")
    site = Site(root / "site", [root / "early"])
    for number, group in enumerate(
        ("sglang.platform_plugins", "sglang.plugins", "sglang.srt.platform", "sglang.srt.Plugins", "sglang-srt-plugins")
    ):
        name = f"old{number}"
        site.add(f"{name}-dist", {group: {name: "old:register"}})
    site.add("far-dist", {"sglang_router.policies": {"far": "far:policy"}})
    site.add("dash-dist", {SRT_PLUGINS: {"dash": "my-plugin:register"}}, {"my_plugin.py": REGISTER})
    site.add("bare-dist", {SRT_PLUGINS: {"bare": "bare_mod"}}, {"bare_mod.py": REGISTER})
    site.add("extra-dist", {SRT_PLUGINS: {"extra": "extra_mod:register [gpu]"}}, {"extra_mod.py": REGISTER})
    site.add("nowhere-dist", {SRT_PLUGINS: {"nowhere": "nowhere_to_be_found:register"}})
    site.add("halfway-dist", {SRT_PLUGINS: {"halfway": "halfway.sub:register"}}, {"halfway/__init__.py": ""})
    site.add("unpacked-dist", {SRT_PLUGINS: {"unpacked": "unpacked:register"}}, {"unpacked/__init__.py": "from .srt import x\n" + REGISTER})
    site.add(
        "lost-dist",
        {SRT_PLUGINS: {"lost": "lost_mod:register"}},
        {"lost_mod.py": REGISTER},
        record=["lost_mod.py", "lost_pkg/__init__.py", "lost_dist-1.0.dist-info/METADATA"],
    )
    site.write({"acme.pth": "import acme_bootstrap\n", "paths.pth": "/somewhere\n", "__editable__.e.pth": "import __editable___e_finder\n"})
    site.add("pth-dist", {SRT_PLUGINS: {"pth": "pth_mod:register"}}, {"pth_mod.py": REGISTER}, record=["acme.pth"])
    site.add(
        "path-dist", {SRT_PLUGINS: {"path": "path_mod:register"}}, {"path_mod.py": REGISTER}, record=["paths.pth", "__editable__.e.pth"]
    )
    site.add("zero-dist", {SRT_PLUGINS: {"zero": "zero_mod:register"}}, {"zero_mod.py": REGISTER}, version="0.0.0")
    site.add("twin-a", {SRT_PLUGINS: {"twin": "twin_a:register"}}, {"twin_a.py": REGISTER})
    site.add("twin-b", {SRT_PLUGINS: {"twin": "twin_b:register"}}, {"twin_b.py": REGISTER})
    site.add("stale-dist", {SRT_PLUGINS: {"fresh": "stale_mod:register"}}, {"stale_mod.py": REGISTER}, version="2.0")
    site.add("stale-dist", {SRT_PLUGINS: {"older": "stale_mod:register"}}, version="1.0", kind="egg-info", path=root / "early")
    site.add("same-dist", {SRT_PLUGINS: {"same": "same_mod:register"}}, {"same_mod.py": REGISTER})
    site.add("same-dist", {SRT_PLUGINS: {"same": "same_mod:register"}}, kind="egg-info", path=root / "early")
    site.add("bom-dist", "\ufeff[sglang.srt.plugins]\nbom = bom_mod:register\n", {"bom_mod.py": REGISTER})
    site.add("shadow-dist", {SRT_PLUGINS: {"shadow": "shadow_mod:register"}}, {"shadow_mod/__init__.py": REGISTER})
    site.write({"shadow_mod/__init__.py": "x = 1\n"}, path=root / "early")
    site.add("llm-dist", {SERVE_BACKENDS: {"llm": "llm_mod:factory"}}, {"llm_mod.py": "def factory(): pass\n"})
    site.add("wrong-dist", {SERVE_BACKENDS: {"wrong": "wrong_mod:factory"}}, {"wrong_mod.py": "def factory(): return 3\n"})
    sources(root, site)
    return run(site, root / "cwd", runtimes=("srt",))


def sources(root: Path, site: Site) -> None:
    """Editable installs: up to date, stale, and without a source."""
    table = '[project]\nname = "{0}"\nversion = "1"\n[project.entry-points."sglang.srt.plugins"]\n{1} = "{0}_mod:register"\n'
    for name, declared in (("live", "live"), ("behind", "renamed")):
        folder = root / "src" / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(table.format(name, declared))
        site.add(f"{name}-dist", {SRT_PLUGINS: {name: f"{name}_mod:register"}}, {f"{name}_mod.py": REGISTER}, editable=folder)
    site.add("ghost-dist", {SRT_PLUGINS: {"ghost": "ghost_mod:register"}}, {"ghost_mod.py": REGISTER}, editable=root / "src" / "ghost")


EXPECTED = {
    **{f"old{number}": {"SP204"} for number in range(5)},
    "far": set(),
    "dash": {"SP203"},
    "bare": {"SP203"},
    "extra": set(),
    "nowhere": {"SP208"},
    "halfway": {"SP208"},
    "unpacked": {"SP301"},
    "lost": set(),
    "lost-dist": {"SP212"},
    "pth-dist": {"SP213"},
    "path-dist": set(),
    "zero-dist": set(),
    "twin": {"SP205"},
    "stale-dist": {"SP207"},
    "same-dist": set(),
    "bom-dist": {"SP202"},
    "shadow": {"SP209", "SP301"},
    "llm": {"SP206"},
    "live-dist": set(),
    "behind-dist": {"SP210"},
    "ghost-dist": {"SP211"},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_one_flaw_one_rule(gallery, name):
    assert codes(gallery).get(name, set()) - {"SP605"} == EXPECTED[name], [f.message for f in by_name(gallery)[name]]


def test_a_placeholder_version_is_a_note(gallery):
    assert [f.code for f in by_name(gallery)["zero-dist"]] == ["SP215"]


def test_missing_module_names_it_and_the_distribution(gallery):
    found = by_name(gallery)["nowhere"][0]
    assert "nowhere_to_be_found" in found.message
    assert "nowhere-dist" in str(found.hint)


def test_a_missing_subpackage_is_a_packaging_matter(gallery):
    assert "build configuration" in str(next(f for f in by_name(gallery)["unpacked"] if f.code == "SP301").hint)


def test_hidden_metadata_tells_both_versions(gallery):
    assert "1.0" in by_name(gallery)["stale-dist"][0].message
    assert "2.0" in by_name(gallery)["stale-dist"][0].message


@pytest.mark.parametrize("text", ["[sglang.srt.plugins]\nthis line is wrong\n", "[other]\nalso wrong\n", "[a]\nx = y\n[b]\n!\n"])
def test_one_broken_file_fails_everybody(site, doctor, text):
    site.add("broken-dist", text)
    platform(site)
    report = doctor()
    found = next(f for f in report.findings if f.code == "SP201")
    assert found.subject["name"] == "broken-dist"
    assert found.location.line == len(text.splitlines())
    assert next(row for row in report.entry_points if row["name"] == "pa")["outcome"] == "ok"  # the others are examined all the same


def test_names_of_diffusion_platforms(site, doctor):  # S4.1, S4.3
    site.add("a-dist", {DIFFUSION_PLATFORMS: {"CUDA": "a:activate"}}, {"a.py": "def activate(): pass\n"})
    site.add("b-dist", {DIFFUSION_PLATFORMS: {"same": "b:activate"}}, {"b.py": "def activate(): pass\n"})
    site.add("c-dist", {DIFFUSION_PLATFORMS: {"same": "c:activate"}}, {"c.py": "def activate(): pass\n"})
    found = codes(doctor())
    assert found["CUDA"] == {"SP206"}
    assert found["same"] == {"SP205"}


def test_two_platforms_of_one_name_in_srt(site, doctor):
    for module in "ab":
        site.add(
            f"dist-{module}",
            {SRT_PLATFORMS: {"same": f"{module}{module}:activate"}},
            {f"{module}{module}.py": "def activate(): return None\n"},
        )
    found = next(f for f in doctor().findings if f.code == "SP205")
    assert "dist-a" in found.message
    assert "dist-b" in found.message


def test_old_releases_do_not_read_the_groups(site, doctor):
    site.add("sglang", version="0.5.10")
    platform(site)
    assert codes(doctor())["pa"] >= {"SP005"}


def test_a_placeholder_release_proves_nothing(site, doctor):
    site.add("sglang", version="0.0.0.dev0")
    site.add("need-dist", {SRT_PLUGINS: {"need": "need:register"}}, {"need.py": REGISTER}, requires=["sglang>=0.5.23"])
    assert not {code for found in codes(doctor()).values() for code in found}


@pytest.mark.parametrize(
    ("torch", "requires", "fires"),
    [
        ("2.9.1+vendor", "torch==2.9.0", True),
        ("2.9.1+vendor", "torch==2.9.1", False),
        ("2.9.1+vendor", "torch>=2.9", False),
        ("2.9.1", 'torch==1.0; python_version < "3"', False),
        ("2.9.1", "not a requirement !!", False),
    ],
)
def test_requirements_that_replace_a_vendors_build(site, doctor, torch, requires, fires):
    site.add("torch", version=torch)
    site.add("need-dist", {SRT_PLUGINS: {"need": "need:register"}}, {"need.py": REGISTER}, requires=[requires])
    assert ("SP214" in codes(doctor()).get("need-dist", set())) is fires


def test_the_working_directory_hides_the_installed_metadata(site, tmp_path):
    site.add("my-plug", {SRT_PLUGINS: {"new_name": "plug:register"}}, {"plug.py": REGISTER}, version="2.0")
    Site(tmp_path / "cwd").add("my-plug", {SRT_PLUGINS: {"old_name": "plug:register"}}, kind="egg-info")
    found = next(f for f in run(site, tmp_path / "cwd").findings if f.code == "SP007")
    assert "new_name" in found.message
    assert "old_name" in found.message


def test_a_folder_called_sglang(site, doctor):
    site.write({"sglang/README": "no code"})
    assert "SP003" in {f.code for f in doctor().findings}


def test_the_sglang_command_of_another_environment(site, tmp_path):
    venv.create(tmp_path / "other", with_pip=False)
    command = tmp_path / "bin" / "sglang"
    command.parent.mkdir()
    command.write_text(f"#!{tmp_path}/other/bin/python\nprint()\n")
    command.chmod(0o755)
    report = run(site, tmp_path / "cwd", env={"PATH": f"{command.parent}:/usr/bin:/bin"})
    found = next(f for f in report.findings if f.code == "SP004")
    assert f"{tmp_path}/other/bin/python" in str(found.hint)
    assert report.failed()
    named = run(site, tmp_path / "cwd", env={"PATH": f"{command.parent}:/usr/bin:/bin"}, explicit_python=True)
    assert next(f for f in named.findings if f.code == "SP004").level is Level.INFO


def test_the_first_line_of_a_command(tmp_path):
    for text, python in (
        ("#!/a/b/python\n", "/a/b/python"),
        ("#!/bin/sh\n'''exec' \"/long path/python\" \"$0\" \"$@\"\n' '''\n", "/long path/python"),
        ("\x7fELF", None),
        ("", None),
    ):
        (tmp_path / "x").write_text(text)
        assert interpreter_of(str(tmp_path / "x")) == python


def test_hook_of_an_editable_source_in_setup_cfg(tmp_path):
    (tmp_path / "setup.cfg").write_text(
        textwrap.dedent("""
            [options.entry_points]
            sglang.srt.plugins =
                a = b:c
        """)
    )
    assert installations.declared_entry_points(str(tmp_path)) == {("sglang.srt.plugins", "a", "b:c")}


def test_sound_packages_are_clean(site, doctor):
    platform(site)
    hook(site, one("email.message_from_string", AFTER, "AFTER"))
    assert not [f for f in doctor().findings if f.level is Level.ERROR]


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("[sglang.srt.platforms]\npa = pa.activate\n", "SP203", 'write pa = "pa:activate"'),
        ("[sglang.srt.platforms]\npa = pa:activate  # mine\n", "SP203", 'write pa = "pa:activate"'),
        ("[sglang.srt.platforms]\n = pa:activate\n", "SP203", "no name"),
        ("[sglang.srt.platforms]\npa = PA:activate\n", "SP208", "did you mean 'pa:activate'?"),
        ("[sglang.srt.platforms]\npa = pa:Activate\n", "SP301", "did you mean 'pa:activate'?"),
        ("[slgang.srt.platforms]\npa = pa:activate\n", "SP204", "sglang.srt.platforms"),
        ("[sglang.srt.platforms]\npa = pa:activate\npa = pa:activate\n", "SP205", "keep one of the lines"),
        ("pa = pa:activate\n", "SP202", "begin the file with a section"),
    ],
)
def test_what_to_write_instead(site, doctor, text, code, says):
    site.add("pa-dist", text, {"pa.py": "def activate(): return None\n"})
    found = [f for f in doctor(runtimes=("srt",)).findings if f.code == code]
    assert any(says in f"{f.message} {f.hint}" for f in found), found


@pytest.mark.parametrize(
    ("name", "data"),
    [("direct_url.json", b"[]"), ("direct_url.json", b'{"dir_info": 3}'), ("RECORD", b"\xff\xfe,,\n"), ("METADATA", b"\xff\x00")],
)
def test_metadata_that_no_installer_wrote_ends_nothing(site, doctor, name, data):
    info = site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {"pa.py": "def activate(): return None\n"}, record=["pa.py"])
    (info / name).write_bytes(data)
    assert [row["outcome"] for row in doctor(runtimes=("srt",)).entry_points] == ["inactive"]


def test_the_older_of_two_folders_is_the_one_to_delete(site, doctor):
    files = {"pa.py": "def activate(): return None\n"}
    old = site.add("pa-dist", {SRT_PLATFORMS: {"old": "pa:activate"}}, files, version="1.0")
    site.add("pa-dist", {SRT_PLATFORMS: {"new": "pa:activate"}}, files, version="2.0")
    found = next(f for f in doctor(runtimes=("srt",)).findings if f.code == "SP207")
    assert "in the directory's order" in found.message
    assert str(old) in str(found.hint)  # whichever is read


def test_of_two_folders_of_one_version_none_is_to_be_deleted(site, doctor):
    """Nobody can tell which of them is right, and deleting the wrong one uninstalls the package."""
    files = {"pa.py": "def activate(): return None\n"}
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, files)
    site.add("pa-dist", {SRT_PLATFORMS: {"other": "pa:activate"}}, files, kind="egg-info")
    found = next(f for f in doctor(runtimes=("srt",)).findings if f.code == "SP207")
    assert found.hint == "reinstall pa-dist from its source"


def test_a_folder_without_init_is_said(site, doctor):
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {"pa/readme.txt": ""})
    found = next(f for f in doctor(runtimes=("srt",)).findings if f.code == "SP301")
    assert "without an __init__.py" in str(found.hint)
