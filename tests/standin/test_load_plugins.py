"""`load_plugins` and the hook registry of the SRT runtime: the faces, as SGLang's own tests reach them (S6.2, S9)."""

from __future__ import annotations

import logging
import sys
import types
import unittest
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import sglang.srt.plugins as faces
from sglang.srt.plugins.hook_registry import HookRegistry, HookSource, HookType, _current_plugin_source, plugin_hook

from sglang_plug.core import process

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    HookRegistry.reset()
    faces._plugins_loaded = False
    yield
    HookRegistry.reset()
    faces._plugins_loaded = False
    process.srt.entry_points = None


@pytest.fixture
def installed() -> Iterator[mock.MagicMock]:
    """What the module's `entry_points` returns, with no variable set."""
    with mock.patch("sglang.srt.plugins.envs") as envs, mock.patch("sglang.srt.plugins.entry_points", return_value=[]) as found:
        envs.SGLANG_PLATFORM.get.return_value = envs.SGLANG_PLUGINS.get.return_value = ""
        found.envs = envs
        yield found


def entry(name: str, callback: Any = None, dist: str | None = None, load: Any = None) -> mock.MagicMock:
    found = mock.MagicMock()
    found.name, found.value = name, f"module:{name}"
    found.dist.name = dist or f"{name}-dist"
    found.load = load or mock.MagicMock(return_value=callback or mock.MagicMock())
    return found


def module(**members: Any) -> types.ModuleType:
    made = types.ModuleType(f"made_{len(sys.modules)}")
    vars(made).update(members)
    sys.modules[made.__name__] = made
    return made


def test_plugins_load_once_and_hooks_apply_once(installed: mock.MagicMock) -> None:
    callback = mock.MagicMock()
    installed.return_value = [entry("a", callback)]
    with mock.patch("sglang.srt.plugins.HookRegistry") as registry:
        faces.load_plugins()
        faces.load_plugins()
    callback.assert_called_once_with()
    registry.apply_hooks.assert_called_once_with()


def test_a_broken_plugin_is_logged_and_the_others_go_on(installed: mock.MagicMock, caplog: pytest.LogCaptureFixture) -> None:
    good = mock.MagicMock()
    broken_import = mock.MagicMock(side_effect=ImportError("no such part"))
    installed.return_value = [
        entry("bad", mock.MagicMock(side_effect=RuntimeError("boom"))),
        entry("worse", load=broken_import),
        entry("good", good),
    ]
    with caplog.at_level(logging.ERROR, logger="sglang.srt.plugins"):
        faces.load_plugins()
    good.assert_called_once_with()
    assert "boom" in caplog.text
    assert "no such part" in caplog.text


def test_the_source_is_known_while_a_callback_runs_and_only_then(installed: mock.MagicMock) -> None:
    seen: list[Any] = []

    def broken() -> None:
        seen.append(_current_plugin_source.get())
        raise RuntimeError

    installed.return_value = [entry("a", lambda: seen.append(_current_plugin_source.get())), entry("b", broken, dist="b-pkg")]
    faces.load_plugins()
    assert seen == [HookSource("a", "a-dist"), HookSource("b", "b-pkg")]
    assert _current_plugin_source.get() is None


def test_a_callback_may_ask_to_load_again(installed: mock.MagicMock) -> None:
    order: list[str] = []

    def first() -> None:
        faces.load_plugins()
        order.append("first")

    installed.return_value = [entry("first", first), entry("second", lambda: order.append("second"))]
    faces.load_plugins()
    assert order == ["first", "second"]


@pytest.mark.parametrize(("allowed", "names"), [("alpha, gamma", {"alpha", "gamma"}), (",", set()), ("", {"alpha", "beta", "gamma"})])
def test_the_allowlist_decides_what_is_imported(installed: mock.MagicMock, allowed: str, names: set[str]) -> None:
    installed.envs.SGLANG_PLUGINS.get.return_value = allowed
    installed.return_value = entries = [entry(name) for name in ("alpha", "beta", "gamma")]
    assert set(faces.load_plugins_by_group("some.group")) == names
    assert {found.name for found in entries if found.load.called} == names


def test_a_group_gives_objects_with_their_distributions(installed: mock.MagicMock) -> None:
    callback = object()
    installed.return_value = [entry("a", callback, dist="pkg"), entry("b", dist="unwanted")]
    assert faces.load_plugins_by_group("some.group", excluded_dists={"unwanted"}) == {"a": (callback, "pkg")}


def test_platform_packages_that_are_not_selected_are_excluded(installed: mock.MagicMock) -> None:
    installed.return_value = [entry("kunlun", dist="kunlun-pkg"), entry("other", dist="other-pkg")]
    assert faces._get_excluded_dists() == set()
    installed.envs.SGLANG_PLATFORM.get.return_value = "kunlun"
    assert faces._get_excluded_dists() == {"other-pkg"}


# -- the registry


def test_each_type_of_hook() -> None:
    target = module(f=lambda x, y=0: x + y, g=lambda x: x, h=lambda x: x, r=lambda x: x)
    HookRegistry.register(f"{target.__name__}.f", lambda x, y=0: ((x * 2,), {"y": y + 1}), HookType.BEFORE)
    HookRegistry.register(f"{target.__name__}.g", lambda result, x: result + 10)  # AFTER is the default
    HookRegistry.register(f"{target.__name__}:h", lambda original, x: original(x) * 3, HookType.AROUND)
    HookRegistry.register(f"{target.__name__}.r", lambda x: -x, HookType.REPLACE)
    HookRegistry.apply_hooks()
    HookRegistry.apply_hooks()
    assert (target.f(3), target.g(3), target.h(3), target.r(3)) == (7, 13, 9, -3)


def test_replace_comes_first_and_the_others_wrap_it_in_order() -> None:
    target = module(f=lambda x: x)
    name = f"{target.__name__}.f"
    HookRegistry.register(name, lambda original, x: [*original(x), "inner"], HookType.AROUND)
    HookRegistry.register(name, lambda original, x: [*original(x), "outer"], HookType.AROUND)
    HookRegistry.register(name, lambda x: ["replaced", x], HookType.REPLACE)
    HookRegistry.apply_hooks()
    assert target.f(1) == ["replaced", 1, "inner", "outer"]


def test_class_and_static_methods_stay_what_they_are() -> None:
    class Thing:
        @classmethod
        def name(cls) -> str:
            return cls.__name__

        @staticmethod
        def twice(x: int) -> int:
            return 2 * x

    target = module(Thing=Thing)
    HookRegistry.register(f"{target.__name__}.Thing.name", lambda original, cls: original(cls) + "!", HookType.AROUND)
    HookRegistry.register(f"{target.__name__}.Thing.twice", lambda result, x: result + 1, HookType.AFTER)
    HookRegistry.apply_hooks()
    assert type("Sub", (Thing,), {}).name() == "Sub!"
    assert Thing.twice(3) == Thing().twice(3) == 7


def test_a_class_is_replaced_wherever_it_was_imported() -> None:
    class Old:
        def greet(self) -> str:
            return "old"

    class New(Old):
        def greet(self) -> str:
            return "new"

    source = module(Old=Old)
    importer = module(Alias=Old)
    plugin_hook(f"{source.__name__}.Old", type=HookType.REPLACE)(New)
    HookRegistry.register(f"{source.__name__}.Old.greet", lambda result, self: result + "er")
    HookRegistry.apply_hooks()
    assert source.Old is importer.Alias is New
    assert source.Old().greet() == "newer"


def test_a_class_only_replaces(caplog: pytest.LogCaptureFixture) -> None:
    for kind in (HookType.BEFORE, HookType.AFTER, HookType.AROUND):
        with pytest.raises(TypeError, match="REPLACE"):
            HookRegistry.register("some.target", dict, kind)
    assert not HookRegistry._hooks


def test_a_decorated_function_is_returned_unchanged() -> None:
    target = module(f=lambda x: x)

    def hook(x: int) -> int:
        return x + 42

    assert plugin_hook(f"{target.__name__}.f", type=HookType.REPLACE)(hook) is hook
    HookRegistry.apply_hooks()
    assert target.f(0) == 42
    assert f"{target.__name__}.f" in HookRegistry._patched


def test_reset_forgets_what_was_not_applied() -> None:
    target = module(f=lambda x: x)
    HookRegistry.register(f"{target.__name__}.f", lambda x: -x, HookType.REPLACE)
    HookRegistry.reset()
    HookRegistry.apply_hooks()
    assert target.f(3) == 3


def test_a_missing_target_is_logged_with_the_failing_import(caplog: pytest.LogCaptureFixture) -> None:
    HookRegistry.register("no_such_package_at_all.f", lambda x: x, HookType.REPLACE)
    with caplog.at_level(logging.ERROR, logger="sglang.srt.plugins.hook_registry"):
        HookRegistry.apply_hooks()
    assert "no_such_package_at_all" in caplog.text


def test_loading_asks_the_module_for_the_plugins_of_its_group(installed: mock.MagicMock) -> None:
    seen = []
    found = {"mine": (lambda: seen.append(_current_plugin_source.get()), "mine-dist")}
    with mock.patch("sglang.srt.plugins.load_plugins_by_group", return_value=found) as loader:
        faces.load_plugins()
    loader.assert_called_once_with(faces.GENERAL_PLUGINS_GROUP, set())
    assert seen == [HookSource("mine", "mine-dist")]


def test_the_flag_keeps_plugins_away_where_a_test_sets_it(installed: mock.MagicMock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faces, "_begun", False)
    process.srt.reset_plugins()
    monkeypatch.setattr(faces, "_plugins_loaded", True)
    faces.load_plugins()
    installed.assert_not_called()
    monkeypatch.setattr(faces, "_plugins_loaded", False)
    faces.load_plugins()
    installed.assert_called()
    assert faces._plugins_loaded


def test_the_registry_tells_what_stands_on_a_target() -> None:
    made = module(f=lambda: 1)
    target = f"{made.__name__}.f"

    def first(result: int) -> int:
        return result + 1

    def late(result: int) -> int:
        return result + 10

    undo = HookRegistry.register(target, first)
    HookRegistry.register(f"{made.__name__}.missing", first)
    assert not HookRegistry.is_hook_applied(target, first)
    HookRegistry.apply_hooks()
    HookRegistry.register(target, late)
    HookRegistry.apply_hooks()
    assert made.f() == 2
    assert HookRegistry.is_hook_applied(target, first)
    assert HookRegistry.is_hook_applied(target.replace(".", ":"), first)
    assert not HookRegistry.is_hook_applied(target, first, HookType.BEFORE)
    assert not HookRegistry.is_hook_applied(target, late)
    assert not HookRegistry.is_hook_applied(f"{made.__name__}.missing", first)
    undo()
    assert made.f() == 11
    assert HookRegistry.is_hook_applied(target, late)
    assert not HookRegistry.is_hook_applied(target, first)


def test_a_plugins_own_tests_find_what_they_take_from_sglang() -> None:
    from sglang.test.ci.ci_register import register_cpu_ci
    from sglang.test.test_utils import CustomTestCase

    register_cpu_ci(est_time=1, suite="any")
    steps = []

    class Broken(CustomTestCase):
        @classmethod
        def setUpClass(cls) -> None:
            steps.append("up")
            raise RuntimeError("no server")

        @classmethod
        def tearDownClass(cls) -> None:
            steps.append("down")

        def test_nothing(self) -> None:
            steps.append("never")

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Broken).run(result)
    assert steps == ["up", "down"]
    assert "no server" in result.errors[0][1]
