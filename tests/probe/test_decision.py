"""The decision where no SGLang is installed: every rule, with the answer known from the rules' text (S2 to S6) or from real runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.errors import CatalogueError
from sglang_plug.probe.decision import choose_release, decide, runtimes_with, survey
from sglang_plug.probe.inquiry import Limits
from tests.plugins import install
from tests.plugins.install import DIFFUSION_PLATFORM, DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sglang_plug.core.resolution import Resolution, Step
    from sglang_plug.probe.environment import Environment

DIES = "import os\ndef activate():\n    os._exit(9)\nos._exit(9)\n"


def srt(environment: Environment, **options: Any) -> Resolution:
    return decide(environment, ("srt",), **options)["srt"]


def diffusion(environment: Environment, **options: Any) -> Resolution:
    return decide(environment, ("diffusion",), **options)["diffusion"]


def step(resolution: Resolution, rule: str, verdict: str) -> Step:
    found = [one for one in resolution.steps if (one.rule, one.verdict) == (rule, verdict)]
    assert found, [(one.rule, one.subject, one.verdict) for one in resolution.steps]
    return found[0]


def diffusion_platform(site: Site, name: str = "da", activate: str | None = None) -> None:
    install.platform(site, name, activate, plat=DIFFUSION_PLATFORM, group=DIFFUSION_PLATFORMS)


def test_nothing_installed_takes_the_fallbacks(here: Callable[..., Environment]) -> None:  # S3.2, S4.3
    found = decide(here(), ("srt", "diffusion"))
    assert (found["srt"].outcome, found["srt"].name) == ("builtin", "base")
    assert (found["diffusion"].outcome, found["diffusion"].name) == ("builtin", "cpu")
    assert [one.subject for one in found["srt"].steps if one.rule == "detect"] == [
        "cpu",
        "sail",
        "cuda",
        "npu",
        "rocm",
        "xpu",
        "musa",
        "mps",
    ]
    assert [one.subject for one in found["diffusion"].steps if one.rule == "detect"] == ["mps", "xpu", "rocm", "cuda", "npu", "musa", "cpu"]


def test_one_active_platform_is_taken(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    found = srt(here())
    assert (found.outcome, found.name, found.qualname, found.dist) == ("plugin", "pa", "pa.plat.Plat", "pa-dist")
    assert step(found, "activate", "active").seconds is not None
    assert str(site.root / "pa" / "plat.py") in step(found, "source", "present").why


def test_a_selected_platform_keeps_the_others_unimported(here: Callable[..., Environment], site: Site) -> None:  # S2.3
    install.platform(site)
    install.platform(site, "pb", DIES)
    assert srt(here(SGLANG_PLATFORM="pa")).name == "pa"


def test_the_selector_is_taken_verbatim_in_srt_and_trimmed_in_diffusion(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    diffusion_platform(site)
    found = srt(here(SGLANG_PLATFORM="pa "))
    assert found.error is not None
    assert "'pa '" in found.error.message
    assert diffusion(here(SGLANG_DIFFUSION_PLATFORM_OVERRIDE=" da ")).name == "da"


@pytest.mark.parametrize("value", ["CUDA", " cuda "])
def test_a_builtin_alias_probes_no_hardware(here: Callable[..., Environment], value: str) -> None:  # S4.1
    found = diffusion(here(SGLANG_DIFFUSION_PLATFORM_OVERRIDE=value))
    assert (found.outcome, found.name) == ("builtin", "cuda")
    assert not [one for one in found.steps if one.rule == "detect"]


def test_a_builtin_name_for_srt_is_told_what_to_do(here: Callable[..., Environment]) -> None:
    error = srt(here(SGLANG_PLATFORM="CUDA")).error
    assert error is not None
    assert "unset SGLANG_PLATFORM" in (error.hint or "")


def test_an_alias_of_a_variable_wins(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    install.platform(site, "pb")
    found = srt(here(SGLANG_PLATFORM="pb", SGL_PLATFORM="pa"))
    assert found.name == "pa"
    assert "SGL_PLATFORM" in step(found, "variables", "shadowed").why


@pytest.mark.parametrize(
    ("value", "word"),
    [("PA", "did you mean 'pa'"), ("pa hk", "commas"), ("pa-dist", "its entry point is 'pa'"), ("da", "which this runtime does not read")],
)
def test_names_of_the_allowlist_that_name_nothing(here: Callable[..., Environment], site: Site, value: str, word: str) -> None:
    install.platform(site)
    diffusion_platform(site)
    install.hook(site, "def register(): pass\n")
    found = srt(here(SGLANG_PLUGINS=value))
    assert found.name == "base"  # the allowlist also filters platforms
    assert word in step(found, "allowlist", "unknown").why


def test_separators_alone_allow_nothing(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    assert step(srt(here(SGLANG_PLUGINS=" , ")), "allowlist", "empty")
    assert srt(here(SGLANG_PLUGINS="")).name == "pa"


def test_srt_fails_open_and_diffusion_fails_closed(here: Callable[..., Environment], site: Site) -> None:
    body = "def activate():\n    raise OSError('libacme.so.3')\n"
    install.platform(site, "pa", body)
    diffusion_platform(site, "da", body)
    found = decide(here(), ("srt", "diffusion"))
    assert (found["srt"].outcome, found["srt"].name) == ("builtin", "base")
    assert "libacme.so.3" in step(found["srt"], "activate", "failed").why
    error = found["diffusion"].error
    assert error is not None
    assert (error.type, error.message) == ("OSError", "libacme.so.3")
    assert "da/__init__.py:2" in (error.cause or "")


@pytest.mark.parametrize(
    ("body", "kind", "word"),
    [
        ("def activate():\n    raise SystemExit(3)\n", "SystemExit", ""),
        ("import os\ndef activate():\n    os._exit(3)\n", "SystemExit", "exit status 3"),
        ("import os\ndef activate():\n    os.abort()\n", "SIGABRT", "crashed"),
        ("import time\ndef activate():\n    time.sleep(600)\n", "TimeoutError", "did not return in 0.5 s"),
        ("import time\ntime.sleep(600)\n", "TimeoutError", "import did not return in 0.5 s"),
    ],
)
def test_what_ends_the_process_ends_it_in_automatic_selection_too(
    here: Callable[..., Environment], site: Site, body: str, kind: str, word: str
) -> None:
    install.platform(site, "pa", body)
    install.platform(site, "pb")
    error = srt(here(), limits=Limits(timeout=0.5)).error
    assert error is not None
    assert error.type == kind
    assert word in error.message + (error.cause or "")


@pytest.mark.parametrize(
    ("returned", "runtime", "kind", "word"),
    [
        ("True", "srt", "TypeError", "expected string or bytes-like object, got 'bool'"),
        ("''", "srt", "ValueError", "invalid format: ''"),
        ("''", "diffusion", "TypeError", "must return a non-empty class qualname or None"),
        ("b'NAME.plat.Plat'", "srt", "TypeError", "cannot use a string pattern on a bytes-like object"),
        ("int", "diffusion", "TypeError", "must return a non-empty class qualname or None"),
        ("'NAME.plat.Nope'", "srt", "AttributeError", "module 'pa.plat' has no attribute 'Nope'"),
        ("'NAME.plat.Nope'", "diffusion", "AttributeError", "module 'pa.plat' has no attribute 'Nope'"),
        ("'NAME.plta:Plat'", "srt", "ModuleNotFoundError", "did you mean pa.plat?"),
        ("'NAME.activate'", "srt", "TypeError", "is a function"),
        ("'NAME.lost.Plat'", "srt", "AttributeError", "No module named 'pa.nowhere'"),
        ("'NAME.lost:Plat'", "srt", "ModuleNotFoundError", "No module named 'pa.nowhere'"),
        ("'nowhere.Plat'", "srt", "ModuleNotFoundError", "no module named 'nowhere'"),
        ("'NAME.baseless.Plat'", "srt", "TypeError", "pa.baseless.Plat derives from nothing, so it is no SRTPlatform"),
        ("'NAME.baseless.Plat'", "diffusion", "TypeError", "so it is no Platform"),
        ("'NAME.broken.Plat'", "srt", "SyntaxError", ""),
    ],
)
def test_wrong_answers(here: Callable[..., Environment], site: Site, returned: str, runtime: str, kind: str, word: str) -> None:
    body = f"def activate():\n    return {returned.replace('NAME', 'pa')}\n"
    install.platform(site, "pa", body, group=SRT_PLATFORMS if runtime == "srt" else DIFFUSION_PLATFORMS)
    site.write({"pa/lost.py": "from .nowhere import Plat\n", "pa/broken.py": "class Plat(:\n", "pa/baseless.py": "class Plat: pass\n"})
    error = decide(here(), (runtime,))[runtime].error
    assert error is not None
    assert error.type == kind
    assert word in error.message
    assert error.hint


def test_the_masked_message_is_quoted_so_that_people_find_the_cause(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site, "pa", "def activate():\n    return 'pa.plat.Nope'\n")
    error = srt(here()).error
    assert error is not None
    assert "cannot import name 'current_platform'" in (error.cause or "")


def test_two_active_platforms_need_a_selector(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    install.platform(site, "pb")
    diffusion_platform(site, "da")
    diffusion_platform(site, "db")
    for runtime, variable in (("srt", "SGLANG_PLATFORM"), ("diffusion", "SGLANG_DIFFUSION_PLATFORM_OVERRIDE")):
        error = decide(here(), (runtime,), release="0.5.12" if runtime == "srt" else None)[runtime].error
        assert error is not None
        assert f"Set {variable} to select one." in error.message


def test_equal_names_last_wins_in_srt_and_refused_in_diffusion(here: Callable[..., Environment], site: Site) -> None:
    for group in (SRT_PLATFORMS, DIFFUSION_PLATFORMS):
        for dist in ("a", "b"):
            module = f"{dist}{group.split('.')[1]}"
            site.add(
                f"{module}-dist",
                {group: {"same": f"{module}:activate"}},
                {f"{module}.py": f"def activate(): return '{module}.Plat'\nclass Plat: pass\n"},
            )
    facts = survey(here(), ("srt", "diffusion"))
    last = [row["value"].split(":")[0] for row in facts.facts["entry_points"] if row["group"] == SRT_PLATFORMS][-1]
    assert facts.decisions["srt"].resolution.qualname == f"{last}.Plat"
    error = facts.decisions["diffusion"].resolution.error
    assert error is not None
    assert error.message == "Diffusion platform entry-point names must be unique: 'same'"


def test_a_reserved_name_is_refused_before_anything_is_imported(here: Callable[..., Environment], site: Site) -> None:
    diffusion_platform(site, "cuda", DIES)
    error = diffusion(here()).error
    assert error is not None
    assert error.message == "Diffusion platform entry points cannot use built-in names: 'cuda'"


def test_one_broken_file_fails_for_all(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    info = site.add("bad", "[x]\nno equals\n")
    found = decide(here(), ("srt", "diffusion"))
    for resolution in found.values():
        assert resolution.error is not None
        assert resolution.error.type == "TypeError"
        assert f"{info / 'entry_points.txt'}:2" in (resolution.error.cause or "")


def test_srt_ends_diffusion_at_import_since_0_5_13(here: Callable[..., Environment]) -> None:
    environment = here(SGLANG_PLATFORM="nope")
    assert diffusion(environment, release="0.5.12").error is None
    error = diffusion(environment, release="0.5.13").error
    assert error is not None
    assert "'nope' not found" in (error.cause or "")
    both = diffusion(here(SGLANG_PLATFORM="nope", SGLANG_DIFFUSION_PLATFORM_OVERRIDE="also"), release="0.5.23").error
    assert both is not None
    assert "'nope' not found" in (both.cause or "")  # SRT's comes first
    assumed = diffusion(environment)  # no SGLang is there: say it, without a claim
    assert assumed.error is None
    assert step(assumed, "import", "doubtful")


@pytest.mark.parametrize(
    ("release", "names"),
    [
        ("0.5.11", []),
        ("0.5.13", ["cuda", "rocm"]),
        ("0.5.16", ["cpu", "cuda", "rocm"]),
        ("0.5.19.post1", ["cpu", "cuda", "rocm", "xpu"]),
        ("v0.5.21", ["cpu", "cuda", "npu", "rocm", "xpu"]),
        ("0.5.22", ["cpu", "cuda", "npu", "rocm", "xpu", "musa", "mps"]),
    ],
)
def test_a_release_is_taken_at_its_own_chain(here: Callable[..., Environment], release: str, names: list[str]) -> None:
    found = srt(here(), release=release)
    assert [one.subject for one in found.steps if one.rule == "detect"] == names


def test_diffusion_plugins_are_unknown_before_0_5_21(here: Callable[..., Environment], site: Site) -> None:
    diffusion_platform(site)
    assert diffusion(here(), release="0.5.20").name == "cpu"
    assert diffusion(here(), release="0.5.21").name == "da"


def test_the_cpu_engine_is_asked_for_with_exactly_one(here: Callable[..., Environment]) -> None:
    assert srt(here(SGLANG_USE_CPU_ENGINE="1")).name == "cpu"
    assert srt(here(SGLANG_USE_CPU_ENGINE="true")).name == "base"


@pytest.mark.parametrize(
    ("kind", "version", "release", "assumed"),
    [
        ("installed", "0.5.17", "0.5.17", False),
        ("source", "0.5.24.dev3+gabc", "0.5.24.dev3+gabc", False),
        ("source", "0.0.0.dev0", "0.5.23", True),
        ("source", None, "0.5.23", True),
        ("directory", None, "0.5.23", True),
        ("absent", None, "0.5.23", True),
    ],
)
def test_which_release_counts(kind: str, version: str | None, release: str, assumed: bool) -> None:
    found, why = choose_release({"kind": kind, "version": version}, None)
    assert (found, why is not None) == (release, assumed)


@pytest.mark.parametrize(
    ("wanted", "release", "why"),
    [
        ("0.5.21", "0.5.21", "asked for"),
        (" v0.5.21 ", "0.5.21", "asked for"),
        ("0.5.23.post1", "0.5.23", "which stand for 0.5.23.post1"),
        ("0.5.23rc1", "0.5.23", "which stand for 0.5.23rc1"),
        ("0.5.13.post2", "0.5.13.post1", "which stand for 0.5.13.post2"),
        ("latest", "0.5.23", "the latest known"),
    ],
)
def test_a_release_that_is_asked_for_is_one_that_is_known(wanted: str, release: str, why: str) -> None:
    assert choose_release({"kind": "absent", "version": None}, wanted) == (release, why)


def test_an_installed_release_that_is_newer_than_the_rules_is_said(here: Callable[..., Environment], site: Site) -> None:
    site.add("sglang", None, {"sglang/__init__.py": "", "sglang/srt/__init__.py": ""}, version="0.6.2")
    found = survey(here(), ("srt",))
    assert found.rules == "by the rules of SGLang 0.5.23: those of 0.6.2 are not known to this sglang-plug"


@pytest.mark.parametrize("wanted", ["0.5.10", "new", "", "0.9", "0.5.24", "0.5.11.1"])
def test_a_release_without_plugins_is_refused(wanted: str) -> None:
    with pytest.raises(CatalogueError):
        choose_release({"kind": "absent", "version": None}, wanted)


def test_an_installed_release_without_plugins_is_an_answer(here: Callable[..., Environment], site: Site) -> None:
    site.add("sglang", None, {"sglang/__init__.py": "raise SystemExit", "sglang/srt/__init__.py": ""}, version="0.5.10")
    error = srt(here()).error
    assert error is not None
    assert "no plugin system" in error.message


def test_hook_plugins_load_are_skipped_or_required(here: Callable[..., Environment], site: Site) -> None:  # S3.3, S4.4, S5
    for runtime, platforms, plugins, variable in (
        ("srt", SRT_PLATFORMS, SRT_PLUGINS, "SGLANG_PLATFORM"),
        ("diffusion", DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, "SGLANG_DIFFUSION_PLATFORM_OVERRIDE"),
    ):
        place = Site(site.root / runtime)
        for name in ("va", "vb"):
            install.platform(place, name, group=platforms)
            place.add(f"{name}-dist", {platforms: {name: f"{name}:activate"}, plugins: {f"{name}_hooks": f"{name}h:register"}})
        install.hook(place, "def register(): pass\n", "free", group=plugins)
        environment = here(PYTHONPATH=str(place.root), **{variable: "va"})
        choices = survey(environment, (runtime,)).decisions[runtime].choices
        found = {choice.candidate.name: (choice.verdict, choice.required) for choice in choices}
        assert found == {"va_hooks": ("load", runtime == "diffusion"), "vb_hooks": ("skipped", False), "free": ("load", False)}


def test_a_text_counts_for_what_it_holds_not_for_what_it_says(here: Callable[..., Environment], site: Site) -> None:
    """`pkgutil.resolve_name` reads the characters themselves."""
    body = "class Liar(str):\n    def __str__(self): return 'other.X'\ndef activate(): return Liar('pa.plat.Plat')\n"
    install.platform(site, "pa", body)
    assert srt(here()).qualname == "pa.plat.Plat"


@pytest.mark.parametrize(
    ("returned", "kind"), [("pa.plat:Plat\\n", None), ("pa.plat.Plat\\n", "AttributeError"), ("pa.plat:Plat\\n\\n", "ValueError")]
)
def test_a_line_break_at_the_end_does_what_it_does_in_upstreams_resolver(
    here: Callable[..., Environment], site: Site, returned: str, kind: str | None
) -> None:
    install.platform(site, "pa", f"def activate(): return '{returned}'\n")
    found = srt(here())
    assert (found.error.type if found.error else None) == kind
    assert found.error or found.qualname == "pa.plat:Plat"


@pytest.mark.parametrize(
    ("body", "why"), [("raise SystemExit(0)", "activate() failed: SystemExit: 0"), ("raise KeyboardInterrupt", "KeyboardInterrupt")]
)
def test_what_ends_the_process_is_named_on_the_trail(here: Callable[..., Environment], site: Site, body: str, why: str) -> None:
    install.platform(site, "pa", f"def activate():\n    {body}\n")
    (found,) = [one for one in srt(here()).steps if one.rule == "activate"]
    assert why in found.why


def test_a_hint_speaks_of_the_variable_that_counts(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    for variable in ("SGLANG_PLATFORM", "SGL_PLATFORM"):
        error = srt(here(**{variable: "PA"})).error
        assert error is not None
        assert (error.hint or "").endswith(f"type: export {variable}=pa")


def test_verify_tells_an_unsteady_callback_from_a_defect_of_ours(here: Callable[..., Environment], site: Site, tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")
    body = f"import os\ndef activate():\n    if os.path.exists({mark!r}): return 'pa.other.Plat'\n    open({mark!r}, 'w').close()\n"
    install.platform(site, "pa", body + "    return 'pa.plat.Plat'\n")
    site.write({"pa/other.py": install.PLATFORM})
    install.hook(site, "def register(): raise OSError('no such library')\n")
    decision = survey(here(), ("srt",), verify=True).decisions["srt"]
    error = decision.resolution.error
    assert error is not None
    assert error.type == "VerificationError"
    assert error.cause == "activate() of 'pa' returned 'pa.plat.Plat' the first time and 'pa.other.Plat' the second"
    assert "defect" not in (error.hint or "")
    (plugins,) = [one.why for one in decision.resolution.steps if one.subject == "hook plugins"]
    assert "did not run: hk; hk: OSError: no such library" in plugins


def test_a_missing_import_of_the_class_is_certain_only_beside_sglang(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site, plat="import vendor_rt_missing\nclass Plat(dict): pass\n")
    assert step(srt(here()), "source", "doubtful")
    site.add("sglang", None, {"sglang/__init__.py": "", "sglang/srt/__init__.py": ""}, version="0.5.23")
    error = srt(here()).error
    assert error is not None
    assert "vendor_rt_missing" in error.message
    assert "plat.py:1" in (error.cause or "")


def test_a_name_is_meant_for_the_runtimes_that_know_it(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    both = ("srt", "diffusion")
    assert runtimes_with(here(), "pa", both) == ("srt",)
    assert runtimes_with(here(), "cpu", both) == ("diffusion",)
    assert runtimes_with(here(), "nobody", both) == both


def test_torch_is_asked_where_its_version_file_cannot_tell(here: Callable[..., Environment], site: Site) -> None:
    init = "class xpu:\n    is_available = staticmethod(lambda: True)\n    device_count = staticmethod(lambda: 1)\n"
    site.write({"torch/__init__.py": init, "torch/version.py": "__version__ = '2.9+xpu'\ncuda = None\nhip = None\nxpu = '2025'\n"})
    found = decide(here(), ("srt", "diffusion"))
    assert (found["srt"].name, found["diffusion"].name) == ("xpu", "xpu")


def test_this_process_never_imports_sglang_or_a_plugin(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site)
    before = set(sys.modules)  # other tests of this process may have the stand-in loaded
    decide(here(), ("srt", "diffusion"))
    assert not {"sglang", "pa", "pa.plat"} & (set(sys.modules) - before)


def test_a_callback_that_reads_current_platform_is_no_failure(here: Callable[..., Environment], site: Site) -> None:
    """SRT logs the recursion's innermost failure and the answer counts; another plugin is not asked by way of it."""
    body = "def activate():\n    from sglang.srt.platforms import current_platform\n    return 'pa.plat.Plat'\n"
    install.platform(site, "pa", body)
    install.platform(site, "pb", "import sys\ndef activate():\n    return None if 'pa' not in sys.modules else 'pb.plat.Plat'\n")
    found = srt(here())
    assert (found.name, found.error) == ("pa", None)


@pytest.mark.parametrize("host", ["", "from sglang.srt.platforms import device_mixin\n"])
def test_what_a_callback_changes_for_the_detection_after_it_is_said(here: Callable[..., Environment], site: Site, host: str) -> None:
    patch = "    os.environ['SGLANG_USE_CPU_ENGINE'] = '1'\n    torch.npu = types.SimpleNamespace(is_available=lambda: True)\n"
    fake = "    torch = sys.modules.setdefault('torch', types.ModuleType('torch'))\n"
    install.platform(site, "pa", f"import os, sys, types\n{host}def activate():\n{fake}{patch}")
    found = srt(here(), verify=not host)
    assert "its callback changed SGLANG_USE_CPU_ENGINE, torch.npu.is_available" in step(found, "effects", "doubtful").why
    if not host:
        assert found.error is not None
        assert found.error.cause is not None
        assert found.error.cause.startswith("platform plugin 'pa': its callback changed SGLANG_USE_CPU_ENGINE")


def test_what_a_chosen_platform_changes_for_the_detection_matters_to_nobody(here: Callable[..., Environment], site: Site) -> None:
    install.platform(site, "pa", "import os\ndef activate():\n    os.environ['SGLANG_USE_CPU_ENGINE'] = '1'\n    return 'pa.plat.Plat'\n")
    assert [one for one in srt(here()).steps if one.rule == "effects"] == []


@pytest.mark.parametrize(
    ("line", "lacking"),
    [("_enum = PlatformEnum.OOT", "_enum"), ('device_name = "acme"', "device_name"), ('device_type = "cpu"', "device_type")],
)
def test_what_diffusion_requires_of_a_class_is_said_without_importing_it(
    here: Callable[..., Environment], site: Site, line: str, lacking: str
) -> None:
    install.platform(site, "da", plat=DIFFUSION_PLATFORM.replace(line, "pass"), group=DIFFUSION_PLATFORMS)
    error = diffusion(here()).error
    assert error is not None
    assert (error.type, lacking in error.message) == ("TypeError", True)


def test_what_something_else_may_set_is_not_missing(here: Callable[..., Environment], site: Site) -> None:
    elsewhere = DIFFUSION_PLATFORM.replace("_enum = PlatformEnum.OOT", "pass") + "\n    Plat._enum = PlatformEnum.OOT\n"
    install.platform(site, "da", plat=elsewhere, group=DIFFUSION_PLATFORMS)
    assert diffusion(here()).error is None
