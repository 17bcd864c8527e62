"""Plugins among each other, and against the variables: small installations with one run of doctor each."""

from __future__ import annotations

import textwrap

import pytest

from sglang_plug.checks.model import Level
from sglang_plug.errors import SglangPlugError
from sglang_plug.report import findings_text
from tests.checks.conftest import by_name, run
from tests.checks.galleries import API, AROUND, GIVES, TARGET, one, plat, registering
from tests.plugins.install import (
    DIFFUSION_PLATFORM,
    DIFFUSION_PLATFORMS,
    DIFFUSION_PLUGINS,
    SERVE_BACKENDS,
    SRT_PLATFORMS,
    SRT_PLUGINS,
    Site,
    hook,
    platform,
)

SOUND = one("TGT.f", AROUND, "AROUND").replace("TGT", "tgt")


STOPS = """
import os, sys
class End:
    def find_spec(self, name, path=None, target=None):
        if name == "sglang.srt.platforms": os._exit(9)
sys.meta_path.insert(0, End())
"""


def told(report) -> dict[str, list]:
    found: dict[str, list] = {}
    for finding in report.findings:
        if finding.level is not Level.INFO:
            found.setdefault(finding.code, []).append(finding)
    return found


def row(report, name: str) -> dict:
    return next(row for row in report.entry_points if row["name"] == name)


@pytest.fixture
def tgt(site: Site) -> Site:
    site.write({"tgt.py": TARGET})
    return site


def test_nothing_installed_is_clean(doctor):
    assert not told(doctor())


def test_two_active_platforms(site, doctor):  # S3.2
    platform(site, "pa", plat=plat().replace("MOD", "pa"))
    platform(site, "pb", plat=plat().replace("MOD", "pb"))
    found = told(doctor())["SP313"][0]
    assert "'pa' (pa-dist)" in found.message
    assert "'pb' (pb-dist)" in found.message
    assert found.hint == "export SGLANG_PLATFORM=pa"


def test_two_active_platforms_one_selected(site, doctor):  # S2.3: the other is not even imported
    platform(site, "pa")
    platform(site, "pb", "import os\nos._exit(9)\n")
    report = doctor(env={"SGLANG_PLATFORM": "pa"})
    assert not told(report)
    assert row(report, "pb")["outcome"] == "skipped"


def test_a_named_plugin_is_examined_though_it_is_not_selected(site, doctor):
    platform(site, "pa")
    platform(site, "pb", "import os\nos._exit(9)\n")
    report = doctor("pb", env={"SGLANG_PLATFORM": "pa"})
    assert set(told(report)) == {"SP303"}
    assert row(report, "pa")["outcome"] == "skipped"


def test_a_distribution_can_be_named(site, doctor):
    platform(site, "pa", "import vendor_rt_missing\n")
    hook(site, "import other_missing\n")
    report = doctor("pa-dist")
    assert {f.subject["name"] for f in report.findings if f.code == "SP301"} == {"pa"}


def test_an_unknown_name_is_an_error(site, doctor):
    platform(site, "pa")
    with pytest.raises(SglangPlugError) as caught:
        doctor("paa")
    assert "pa" in str(caught.value.hint)


@pytest.mark.parametrize(("selected", "level"), [(None, Level.INFO), ("pa", Level.ERROR)])
def test_absent_hardware(site, doctor, selected, level):  # S3.1
    platform(site, "pa", "def activate(): return None\n")
    report = doctor(env={"SGLANG_PLATFORM": selected} if selected else {})
    assert [f.level for f in report.findings if f.code == "SP309"] == [level]


@pytest.mark.parametrize(("selected", "says"), [(None, "goes on with the platform 'base'"), ("pa", "startup fails")])
def test_what_follows_depends_on_the_selection(site, doctor, selected, says):
    platform(site, "pa", "import vendor_rt_missing\n")
    found = told(doctor(env={"SGLANG_PLATFORM": selected} if selected else {}))["SP301"][0]
    assert says in found.message
    assert "vendor_rt_missing" in str(found.cause)
    assert "pa/__init__.py:1" in str(found.cause)


def test_diffusion_aborts_where_srt_goes_on(site, doctor):  # S4.3
    platform(site, "da", 'def activate(): raise OSError("x")\n', group=DIFFUSION_PLATFORMS)
    assert "diffusion aborts startup" in told(doctor())["SP302"][0].message


def test_sglangs_own_masked_words_are_quoted(site, doctor):
    platform(site, "pa", 'def activate():\n    return "pa.plat.Nope"\n')
    found = told(doctor())["SP401"][0]
    assert "cannot import name 'current_platform'" in found.message
    assert "Nope" in str(found.cause)


def test_the_words_of_a_selected_platforms_failure_are_quoted(site, doctor):
    platform(site, "pa", "import math\ndef activate(): return math.nope\n")
    found = told(doctor(env={"SGLANG_PLATFORM": "pa"}))["SP302"][0]
    assert "cannot import name 'current_platform'" in found.message
    assert "math" in str(found.cause)


def test_unselected_vendors_hooks_are_left_alone(site, doctor):  # S3.3
    platform(site, "pa")
    site.add(
        "pb-dist",
        {SRT_PLATFORMS: {"pb": "pb:activate"}, SRT_PLUGINS: {"pb_hooks": "pb_hooks:register"}},
        {"pb.py": "def activate(): return None\n", "pb_hooks.py": "import os\nos._exit(9)\n"},
    )
    report = doctor(env={"SGLANG_PLATFORM": "pa"})
    assert not told(report)
    assert row(report, "pb_hooks")["outcome"] == "skipped"


def test_inactive_vendors_hooks_run_without_a_selection(tgt, doctor):
    platform(tgt, "pa")
    tgt.add(
        "pb-dist",
        {SRT_PLATFORMS: {"pb": "pb:activate"}, SRT_PLUGINS: {"pb_hooks": "pb_hooks:register"}},
        {"pb.py": "def activate(): return None\n", "pb_hooks.py": SOUND},
    )
    found = told(doctor())
    assert set(found) == {"SP602"}
    assert found["SP602"][0].hint == "export SGLANG_PLATFORM=pa"


def test_hooks_of_the_active_platforms_package_are_sound(tgt, doctor):
    files = {"pa/__init__.py": GIVES.replace("MOD", "pa"), "pa/plat.py": plat(), "pa_hooks.py": SOUND}
    tgt.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}, SRT_PLUGINS: {"pa_hooks": "pa_hooks:register"}}, files)
    assert not told(doctor())
    assert not told(doctor(env={"SGLANG_PLATFORM": "pa"}))


def test_two_platform_names_lose_their_own_hooks(tgt, doctor):
    files = {"va/__init__.py": GIVES.replace("MOD", "va") + "def other(): return None\n", "va/plat.py": plat(), "va_hooks.py": SOUND}
    tgt.add("vend", {SRT_PLATFORMS: {"va": "va:activate", "vb": "va:other"}, SRT_PLUGINS: {"va_hooks": "va_hooks:register"}}, files)
    found = told(doctor(env={"SGLANG_PLATFORM": "va"}))
    assert "va_hooks" in found["SP601"][0].message
    assert "SP601" not in told(doctor())


def test_allowlist_drops_hooks_of_the_selected_package(tgt, doctor):
    files = {"pa/__init__.py": GIVES.replace("MOD", "pa"), "pa/plat.py": plat(), "pa_hooks.py": SOUND}
    tgt.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}, SRT_PLUGINS: {"pa_hooks": "pa_hooks:register"}}, files)
    hook(tgt, one("tgt.g", AROUND, "AROUND"), "other")
    assert "pa_hooks" in told(doctor(env={"SGLANG_PLATFORM": "pa", "SGLANG_PLUGINS": "other"}))["SP106"][0].message


def test_two_replacements(tgt, doctor):
    for name in ("h1", "h2"):
        hook(tgt, one("tgt.f", "lambda x: 1", "REPLACE"), name)
    found = told(doctor())["SP519"][0]
    assert "h1" in found.message
    assert "h2" in found.message


def test_two_wrappers_are_a_note(tgt, doctor):
    for name in ("h1", "h2"):
        hook(tgt, one("tgt.f", AROUND, "AROUND"), name)
    report = doctor()
    assert not told(report)
    assert "SP520" in {f.code for f in report.findings}


def test_method_replacement_over_a_class_replacement(tgt, doctor):
    hook(tgt, registering("class New:", "    def run(self): return 1", 'HookRegistry.register("tgt.Alone", New, HookType.REPLACE)'), "h1")
    hook(tgt, one("tgt.Alone.run", "lambda self: 2", "REPLACE"), "h2")
    assert "SP521" in told(doctor())


def test_what_a_plugin_breaks_for_the_next(site, doctor):
    hook(site, "import os\ndef register(): os.environ['A_B'] = '1'\n", "a_first")
    hook(site, "import os\ndef register():\n    if os.environ.get('A_B'): raise RuntimeError('already set')\n", "z_last")
    found = by_name(doctor())["z_last"]
    assert "works alone" in next(f for f in found if f.code == "SP302").message


def test_the_crash_of_a_target_is_pinned_to_its_plugin(tgt, doctor):
    tgt.write({"deadly.py": "import os\nos._exit(5)\n"})
    hook(tgt, one("deadly.f", AROUND, "AROUND"), "bad")
    hook(tgt, SOUND, "good")
    report = doctor()
    assert row(report, "good")["hooks"]["applied"] == 1
    assert {f.subject["name"] for f in report.findings if f.level is Level.ERROR} == {"bad"}


def test_a_raising_hook_of_the_selected_diffusion_platform_is_an_error(site, doctor):
    """No name is given, both runtimes are looked at, and the platform brings native threads, as torch does."""
    files = {
        "da/__init__.py": 'def activate(): return "da.plat.Plat"\n',
        "da/plat.py": f"import _thread, time\n_thread.start_new_thread(time.sleep, (30,))\n{textwrap.dedent(DIFFUSION_PLATFORM)}",
        "da_hooks.py": "def register(): raise OSError('driver gone')\n",
    }
    site.add("da-dist", {DIFFUSION_PLATFORMS: {"da": "da:activate"}, DIFFUSION_PLUGINS: {"da_hooks": "da_hooks:register"}}, files)
    report = doctor()
    found = told(report)
    assert set(found) == {"SP302"}
    assert found["SP302"][0].level is Level.ERROR
    assert "startup aborts" in found["SP302"][0].message
    assert report.failed()


def test_diffusion_selects_the_package_whose_hooks_run(tgt, doctor):  # S4.4
    api = "from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType\n"
    for name in ("da", "db"):
        files = {
            f"{name}/__init__.py": f"def activate(): return {name + '.plat.Plat' if name == 'da' else None!r}\n",
            f"{name}/plat.py": DIFFUSION_PLATFORM,
        }
        if name == "da":
            files["da/__init__.py"] = 'def activate(): return "da.plat.Plat"\n'
        files[f"{name}_hooks.py"] = one("tgt.f", AROUND, "AROUND", api=api)
        tgt.add(
            f"{name}-dist",
            {DIFFUSION_PLATFORMS: {name: f"{name}:activate"}, DIFFUSION_PLUGINS: {f"{name}_hooks": f"{name}_hooks:register"}},
            files,
        )
    report = doctor(runtimes=("diffusion",))
    assert not told(report)
    assert row(report, "da_hooks")["hooks"] == {"registered": 1, "applied": 1}
    assert row(report, "db_hooks")["outcome"] == "skipped"


def test_a_required_hook_that_fails_aborts_diffusion(tgt, doctor):  # S5
    api = "from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType\n"
    files = {
        "da/__init__.py": 'def activate(): return "da.plat.Plat"\n',
        "da/plat.py": DIFFUSION_PLATFORM,
        "da_hooks.py": one("tgt.nope", AROUND, "AROUND", api=api),
    }
    tgt.add("da-dist", {DIFFUSION_PLATFORMS: {"da": "da:activate"}, DIFFUSION_PLUGINS: {"da_hooks": "da_hooks:register"}}, files)
    found = told(doctor(runtimes=("diffusion",)))
    assert "aborts startup" in found["SP501"][0].message
    assert "SP604" in found


def test_serve_backends(site, doctor):
    site.add("b-dist", {SERVE_BACKENDS: {"broken": "bb:factory"}}, {"bb.py": "import missing_thing\n"})
    site.add("c-dist", {SERVE_BACKENDS: {"c": "cc:factory"}}, {"cc.py": "def factory(need): pass\n"})
    found = by_name(doctor())
    assert "SP301" in {f.code for f in found["broken"]}
    assert "SP307" in {f.code for f in found["c"]}


def test_hooks_can_be_registered_at_import(tgt, doctor):
    hook(tgt, API + '@plugin_hook("tgt.f", type=HookType.AROUND)\ndef h(original, x): return original(x)\ndef register(): pass\n')
    report = doctor()
    assert not told(report)
    assert "SP527" in {f.code for f in report.findings}


def test_a_broken_platform_does_not_hide_hooks(tgt, doctor):
    platform(tgt, "pa", "import os\ndef activate(): os._exit(7)\n")
    hook(tgt, one("tgt.missing", AROUND, "AROUND"))
    found = told(doctor())
    assert {"SP303", "SP501"} <= set(found)
    assert "7" in found["SP303"][0].message


def test_many_plugins_side_by_side(tgt, doctor):
    for number in range(12):
        hook(tgt, one("tgt.f", AROUND, "AROUND") if number % 2 else "import os\ndef register(): os._exit(3)\n", f"h{number}")
    report = doctor()
    assert [row(report, f"h{n}")["outcome"] for n in range(12)] == ["failed", "ok"] * 6


def test_sound_platform_and_hook(tgt, doctor, tmp_path):
    platform(tgt)
    hook(tgt, SOUND)
    report = run(tgt, tmp_path / "cwd")
    assert not told(report)
    assert report.summary["examined"] == 2


def test_a_plugin_that_is_not_chosen_runs_no_third_time(site, doctor, tmp_path):
    mark = tmp_path / "times"
    body = f"def activate():\n    open({str(mark)!r}, 'a').write('x')\n    raise MemoryError\n"
    platform(site, "pa", body)
    report = doctor(runtimes=("srt",))
    assert row(report, "pa")["outcome"] == "failed"
    assert mark.read_text() == "xx"  # the trial, and the host's own choice: with limits, both


def test_a_failed_platform_is_told_once(tgt, doctor):
    files = {"va.py": "def activate(): raise OSError('no driver')\n", "va_hooks.py": SOUND}
    tgt.add("vend", {SRT_PLATFORMS: {"va": "va:activate"}, SRT_PLUGINS: {"va_hooks": "va_hooks:register"}}, files)
    assert set(told(doctor())) == {"SP302"}


def test_an_early_end_of_the_host_is_told_and_no_defect(site, doctor):
    site.write({"sitecustomize.py": STOPS})
    hook(site, "def register(): pass\n")
    found = told(doctor(runtimes=("srt",)))
    assert set(found) == {"SP002"}


def test_what_the_working_directory_would_hide_from_the_command(site, tmp_path):
    hook(site, "def register(): pass\n", "ga")
    (tmp_path / "cwd" / "ga").mkdir(parents=True)
    (tmp_path / "cwd" / "ga" / "__init__.py").write_text("")
    found = told(run(site, tmp_path / "cwd"))["SP007"][0]
    assert str(tmp_path / "cwd" / "ga" / "__init__.py") in found.message
    assert "SP007" not in told(run(site, tmp_path / "elsewhere"))


def test_a_frozen_application_is_said(site, doctor):
    site.write({"sitecustomize.py": "import sys\nsys.frozen = True\n"})
    assert "SP009" in {f.code for f in doctor(runtimes=("srt",)).findings}


def test_a_backend_that_is_surely_none(site, doctor):
    site.add("b-dist", {SERVE_BACKENDS: {"mine": "bb:make"}}, {"bb.py": "def make(): return 5\n"})
    assert "SP605" in told(doctor(runtimes=("srt",)))


def test_a_backend_that_the_standin_cannot_judge_and_one_without_its_factory(site, doctor):
    site.add("b-dist", {SERVE_BACKENDS: {"mine": "bb:Make", "gone": "bb:nothere"}}, {"bb.py": "class Make: api_version = 99\n"})
    found = {f.code: [f] for f in doctor(runtimes=("srt",)).findings}
    assert "not checked on the stand-in" in found["SP605"][0].message
    assert str(found["SP301"][0].hint).startswith("define nothere in bb")


def test_the_old_aliases_do_not_disturb_the_dry_run(site, doctor):
    platform(site, "pa")
    found = told(doctor(env={"SGL_PLATFORM": "zz"}, runtimes=("srt",)))
    assert set(found) == {"SP101"}


def test_the_header_contradicts_no_finding(site, doctor):
    platform(site, "pa", plat=plat(body="def __init__(self): open('/dev/acme')"))
    report = doctor(runtimes=("srt",))
    assert "/dev/acme" in report.host["platforms"]["srt"]["error"]
    assert any("which does not start" in line.text for line in findings_text.lines(report))


@pytest.mark.parametrize(
    ("start", "outcome", "code"),
    [
        ("_thread.start_new_thread(time.sleep, (30,))", "ok", None),
        ("threading.Timer(30, print).start()", "skipped", "SP603"),
    ],
    ids=["native", "python"],
)
def test_hooks_of_a_platform_that_starts_threads(tgt, doctor, start, outcome, code):
    api = "from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType\n"
    files = {
        "da/__init__.py": 'def activate(): return "da.plat.Plat"\n',
        "da/plat.py": f"import _thread, threading, time\n{start}\n{textwrap.dedent(DIFFUSION_PLATFORM)}",
        "da_hooks.py": one("tgt.f", AROUND, "AROUND", api=api),
    }
    tgt.add("da-dist", {DIFFUSION_PLATFORMS: {"da": "da:activate"}, DIFFUSION_PLUGINS: {"da_hooks": "da_hooks:register"}}, files)
    report = doctor(runtimes=("diffusion",))
    assert row(report, "da_hooks")["outcome"] == outcome
    assert {f.code for f in by_name(report)["da_hooks"]} == ({code} if code else set())
