"""`current_platform`: the faces over the chain (S3), as SGLang's own tests reach them, and in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import sglang.srt.platforms as faces
from sglang.srt.platforms.cuda import CudaSRTPlatform
from sglang.srt.platforms.interface import SRTPlatform

from sglang_plug import standin
from sglang_plug.core import process
from tests.plugins.install import SRT_PLATFORMS, Site

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def variables() -> Iterator[mock.MagicMock]:
    """The module's `envs`, with no platform selected."""
    with mock.patch("sglang.srt.platforms.envs") as envs:
        envs.SGLANG_PLATFORM.get.return_value = ""
        yield envs


def entry(name: str, callback: Any = None) -> mock.MagicMock:
    found = mock.MagicMock()
    found.name = name
    found.load.return_value = callback
    return found


def resolve_to(qualname: str) -> Any:
    made = mock.MagicMock()
    return made, mock.patch("sglang.srt.platforms._load_platform_class", return_value=mock.MagicMock(return_value=made))


def test_a_selected_plugin_is_the_only_one_imported(variables: mock.MagicMock) -> None:
    variables.SGLANG_PLATFORM.get.return_value = "mine"
    other, mine = entry("other"), entry("mine", lambda: "pkg.mod:Platform")
    made, loading = resolve_to("pkg.mod:Platform")
    with mock.patch("sglang.srt.platforms.entry_points", return_value=[other, mine]), loading as load:
        assert faces._resolve_platform() is made
    load.assert_called_once_with("pkg.mod:Platform")
    other.load.assert_not_called()


@pytest.mark.parametrize(("installed", "words"), [([], "not found"), ([entry("mine", lambda: None)], "returned None")])
def test_a_selection_that_cannot_be_met_is_a_runtime_error(variables: mock.MagicMock, installed: list[Any], words: str) -> None:
    variables.SGLANG_PLATFORM.get.return_value = "mine"
    with mock.patch("sglang.srt.platforms.entry_points", return_value=installed), pytest.raises(RuntimeError, match=words):
        faces._resolve_platform()


def test_what_a_selected_plugin_raises_comes_through(variables: mock.MagicMock) -> None:
    variables.SGLANG_PLATFORM.get.return_value = "mine"
    broken = entry("mine", mock.MagicMock(side_effect=ImportError("no runtime")))
    with mock.patch("sglang.srt.platforms.entry_points", return_value=[broken]), pytest.raises(ImportError, match="no runtime"):
        faces._resolve_platform()


@pytest.mark.usefixtures("variables")
def test_automatically_the_one_active_plugin_wins_over_broken_and_absent_ones() -> None:
    loaded = {
        "bad": (mock.MagicMock(side_effect=OSError("boom")), "bad-dist"),
        "absent": (lambda: None, "absent-dist"),
        "good": (lambda: "pkg.mod:Good", "good-dist"),
    }
    made, loading = resolve_to("pkg.mod:Good")
    with mock.patch("sglang.srt.platforms.load_plugins_by_group", return_value=loaded), loading as load:
        assert faces._resolve_platform() is made
    load.assert_called_once_with("pkg.mod:Good")


@pytest.mark.usefixtures("variables")
def test_two_active_plugins_are_one_too_many() -> None:
    loaded = {name: (lambda: "pkg.mod:P", f"{name}-dist") for name in ("a", "b")}
    with (
        mock.patch("sglang.srt.platforms.load_plugins_by_group", return_value=loaded),
        pytest.raises(RuntimeError, match="SGLANG_PLATFORM"),
    ):
        faces._resolve_platform()


@pytest.mark.usefixtures("variables")
@pytest.mark.parametrize("cuda", [True, False])
def test_without_plugins_the_detectors_decide(cuda: bool) -> None:
    absent = {f"_is_{name}_available": mock.Mock(return_value=False) for name in ("cpu", "rocm", "xpu")}
    with (
        mock.patch("sglang.srt.platforms.load_plugins_by_group", return_value={}),
        mock.patch.multiple("sglang.srt.platforms", _is_cuda_available=lambda: cuda, **absent),
    ):
        found = faces._resolve_platform()
    assert type(found) is (CudaSRTPlatform if cuda else SRTPlatform)


@pytest.mark.parametrize(("resolved", "fits"), [(type("P", (SRTPlatform,), {}), True), (str, False), ("text", False)])
def test_only_platform_classes_are_accepted(resolved: Any, fits: bool) -> None:
    with mock.patch("sglang.srt.platforms.pkgutil.resolve_name", return_value=resolved):
        if fits:
            assert faces._load_platform_class("pkg.mod:P") is resolved
        else:
            with pytest.raises(TypeError):
                faces._load_platform_class("pkg.mod:P")


def test_the_platform_is_resolved_once_and_anew_after_a_reset() -> None:
    kept, resolution = faces._current_platform, process.srt.resolution
    try:
        faces._current_platform = None
        with mock.patch("sglang.srt.platforms._resolve_platform", side_effect=[mock.sentinel.first, mock.sentinel.second]) as resolve:
            assert faces.current_platform is faces.current_platform is mock.sentinel.first
            assert process.srt.platform is mock.sentinel.first
            faces._current_platform = None
            assert faces.current_platform is mock.sentinel.second
        assert resolve.call_count == 2
    finally:
        faces._current_platform = process.srt.platform = kept
        process.srt.resolution = resolution


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = faces.no_such_name


# -- fresh processes


def run(site: Site, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = standin.environment(site.env(SGLANG_USE_CPU_ENGINE="1", **variables))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)


PLATFORM = """
from sglang.srt.platforms.interface import SRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum
class Plat(SRTPlatform):
    _enum = PlatformEnum.OOT
    device_name = "pa"
"""
SHOW = "from sglang.srt.platforms import current_platform; print(current_platform)"


def test_import_sglang_resolves_the_platform_without_torch(site: Site) -> None:
    site.add(
        "pa-dist",
        {SRT_PLATFORMS: {"pa": "pa:activate"}},
        {"pa/__init__.py": "def activate(): return 'pa.plat.Plat'", "pa/plat.py": PLATFORM},
    )
    done = run(site, "import sglang, sys; from sglang_plug.core import process; print(process.srt.platform, 'torch' in sys.modules)")
    assert done.stdout == "Plat(device=pa) False\n", done.stderr


@pytest.mark.parametrize("qualname", ["pa.plat.Plat", "pa.plat:Plat"])
def test_a_failing_import_behind_the_class_is_the_reported_cause(site: Site, qualname: str) -> None:
    """SGLang shows the dotted form's failure as "cannot import name 'current_platform'"; the stand-in says what is missing."""
    files = {"pa/__init__.py": f"def activate(): return {qualname!r}", "pa/plat.py": "import no_such_runtime\n" + PLATFORM}
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, files)
    done = run(site, SHOW)
    assert done.returncode == 1
    assert "No module named 'no_such_runtime'" in done.stderr.splitlines()[-1]


def test_an_attribute_error_in_activate_is_not_masked(site: Site) -> None:
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {"pa/__init__.py": "def activate(): return None .nothing"})
    done = run(site, SHOW, SGLANG_PLATFORM="pa")
    assert "'NoneType' object has no attribute 'nothing'" in done.stderr.splitlines()[-1]


def test_utils_are_not_ready_while_the_platform_is_resolved(site: Site) -> None:
    """As in SGLang, where `import sglang` resolves the platform from within `sglang.srt.utils`."""
    code = "def activate():\n    from sglang.srt.utils import is_cuda\n    return 'pa.plat.Plat'"
    site.add("pa-dist", {SRT_PLATFORMS: {"pa": "pa:activate"}}, {"pa/__init__.py": code, "pa/plat.py": PLATFORM})
    done = run(site, "import sglang; " + SHOW)
    assert "partially initialized module 'sglang.srt.utils" in done.stderr
    assert done.stdout == "CpuSRTPlatform(device=cpu)\n"


def test_two_active_plugins_stop_import_sglang(site: Site) -> None:
    for name in ("pa", "pb"):
        site.add(f"{name}-dist", {SRT_PLATFORMS: {name: f"{name}:activate"}}, {f"{name}/__init__.py": f"def activate(): return '{name}.P'"})
    done = run(site, "import sglang")
    assert "Multiple platform plugins activated: 'pa', 'pb'" in done.stderr
    assert os.linesep not in done.stdout
