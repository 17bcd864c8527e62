"""Patches and their way back: undo, revert, and nothing half done."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import pytest

from sglang_plug.core import objects
from sglang_plug.core.patching import Session
from sglang_plug.errors import HookTypeError

if TYPE_CHECKING:
    from sglang_plug.core.runtime import Runtime
    from tests.core.registry_cases import Bench


def snapshot(*modules: types.ModuleType) -> list[dict[str, Any]]:
    found = []
    for module in modules:
        found.append(dict(vars(module)))
        found.extend(dict(vars(value)) for value in vars(module).values() if isinstance(value, type))
    return found


WORLD = """
class B:
    def inherited(self): return 'i'
    @classmethod
    def k(cls): return 'k'
class C(B):
    def m(self): return 'm'
    @staticmethod
    def s(): return 's'
class E(B): pass
def f(): return 'f'
alias = C.m
"""


def test_revert_restores_every_binding(bench: Bench, runtime: Runtime):
    m = bench.module("tm", WORLD)
    user = bench.module("user", "from tm import f, C, alias\nfrom tm import f as g")
    before = snapshot(m, user)
    bench.patch(
        ("tm.f", lambda: "r", "REPLACE"),
        ("user.g", lambda original: original(), "AROUND"),
        ("tm.C", type("D", (m.C,), {}), "REPLACE"),
        ("tm.C.m", lambda self: "r", "REPLACE"),
        ("tm.C.inherited", lambda result, self: "r", "AFTER"),
        ("tm.C.k", lambda result, cls: "r", "AFTER"),
        ("tm.B.k", lambda result, cls: "r", "AFTER"),
        ("tm.C.s", lambda result: "r", "AFTER"),
        ("tm.E.inherited", lambda result, self: "r", "AFTER"),
        ("tm.E.k", lambda result, cls: "r", "AFTER"),
    )
    assert snapshot(m, user) != before
    assert bench.logs == []
    runtime.hooks.revert()
    assert snapshot(m, user) == before
    runtime.hooks.apply()
    assert m.f() == user.f() == user.g() == "r"


def test_revert_leaves_what_others_changed_since(bench: Bench, runtime: Runtime):
    m = bench.module("tm", WORLD)
    user = bench.module("user", "from tm import f")
    bench.patch(("tm.f", lambda: "r", "REPLACE"))
    m.f = other = lambda: "other"
    user.f = other
    runtime.hooks.revert()
    assert m.f is user.f is other


def test_a_patch_reverts_once(bench: Bench, runtime: Runtime):
    m = bench.module("tm", WORLD)
    original = m.f
    bench.patch(("tm.f", lambda: "r", "REPLACE"))
    (patch,) = runtime.hooks.patches.values()
    patch.revert()
    assert m.f is original
    m.f = patch.new
    patch.revert()
    assert m.f is patch.new


def test_undo_before_application_forgets_the_hook(bench: Bench, runtime: Runtime):
    m = bench.module("tm", WORLD)
    undo = bench.hook("tm.f", lambda: "r", "REPLACE")
    undo()
    undo()
    bench.apply()
    assert m.f() == "f"
    assert runtime.hooks.hooks == {}


def test_undo_after_application_takes_only_that_hook_out(bench: Bench):
    m = bench.module("tm", WORLD)
    user = bench.module("user", "from tm import f")
    undo = bench.hook("tm.f", lambda result: result + "1", "AFTER")
    bench.hook("tm.f", lambda result: result + "2", "AFTER")
    bench.apply()
    assert user.f() == "f12"
    undo()
    assert m.f() == user.f() == "f2"


def test_undo_of_the_last_hook_restores_the_original(bench: Bench):
    m = bench.module("tm", WORLD)
    original = m.f
    undo = bench.hook("tm.f", lambda: "r", "REPLACE")
    bench.apply()
    undo()
    assert m.f is original


def test_undo_takes_out_the_very_hook_of_equal_ones(bench: Bench, runtime: Runtime):
    bench.module("tm", WORLD)

    def hook(result: str) -> None:
        pass

    bench.hook("tm.f", hook, "AFTER")
    second = bench.hook("tm.f", hook, "AFTER")
    second()
    assert len(runtime.hooks.hooks["tm.f"]) == 1


def test_undo_reaches_below_a_patch_that_came_later(bench: Bench, runtime: Runtime):
    """A hook on an alias, one on the function itself, and one on a method of a replaced class: each stands on another."""
    m = bench.module("tm", WORLD)
    user = bench.module("user", "from tm import f\nfrom tm import f as g")
    before = snapshot(m, user)
    alias = bench.hook("user.g", lambda result: result + "1", "AFTER")
    new = bench.hook("tm.C", type("D", (m.C,), {}), "REPLACE")
    bench.apply()
    function = bench.hook("tm.f", lambda result: result + "2", "AFTER")
    method = bench.hook("tm.C.m", lambda result, self: result + "3", "AFTER")
    bench.apply()
    bench.hook("tm.f", lambda result: result + "late", "AFTER")
    assert (m.f(), user.f(), user.g()) == ("f12", "f", "f12")  # the module of the target is not searched for other names
    alias()
    new()
    assert (m.f(), user.f(), user.g()) == ("f2", "f2", "f2")  # what came late stays out
    assert (m.C.__name__, m.C().m()) == ("C", "m3")
    function()
    assert m.f() == "flate"
    method()
    runtime.hooks.revert()
    assert snapshot(m, user) == before


def test_undo_leaves_alone_what_others_put_on_top(bench: Bench, runtime: Runtime):
    m = bench.module("tm", WORLD)
    undo = bench.hook("tm.f", lambda result: result + "1", "AFTER")
    bench.hook("tm.f", lambda result: result + "2", "AFTER")
    bench.apply()
    inner = m.f
    m.f = lambda: "<" + inner() + ">"
    undo()
    bench.apply()
    assert m.f() == "<f12>"  # rather than run the second hook twice


def test_hooks_that_are_left_out_do_not_count_as_applied(bench: Bench, runtime: Runtime):
    m = bench.module("tm", WORLD)

    def one(result: str) -> str:
        return result + "1"

    def two(result: str) -> str:
        return result + "2"

    bench.hook("tm.f", one, "AFTER")
    bench.hook("tm.f", two, "AFTER")
    runtime.hooks.apply(only=lambda hook: hook.function is two)
    assert m.f() == "f2"
    assert [runtime.hooks.is_applied("tm:f", hook) for hook in (one, two)] == [False, True]


def test_a_failed_application_leaves_the_target_untouched(bench: Bench, runtime: Runtime):
    m = bench.module("tm", WORLD)
    user = bench.module("user", "from tm import f")
    before = snapshot(m, user)

    class Fixed(types.ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            raise RuntimeError("fixed")

    m.__class__ = Fixed
    bench.patch(("tm.f", lambda: "r", "REPLACE"), ("tm.C.nope", lambda: "r", "REPLACE"))
    assert snapshot(m, user) == before
    assert set(runtime.hooks.failures) == {"tm.f", "tm.C.nope"}
    assert runtime.hooks.patched == set()


def test_a_refused_registration_leaves_nothing(runtime: Runtime):
    for target, hook, kind in (("tm.f", 3, "AFTER"), ("tm.f", print, None), (3, print, "AFTER"), ("tm.f", int, "BEFORE")):
        with pytest.raises(HookTypeError):
            runtime.hooks.register(target, hook, runtime.hooks and kind and __import__("sglang_plug").core.hooks.HookType[kind])  # type: ignore[arg-type]
    assert runtime.hooks.hooks == {}


def test_a_module_that_refuses_keeps_its_binding_and_others_are_reached(bench: Bench):
    bench.module("tm", WORLD)

    class Fixed(types.ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            raise RuntimeError("fixed")

    stubborn = bench.module("stubborn", "from tm import f")
    stubborn.__class__ = Fixed
    user = bench.module("user", "from tm import f")
    bench.patch(("tm.f", lambda: "r", "REPLACE"))
    assert (stubborn.f(), user.f()) == ("f", "r")


def test_strange_things_in_sys_modules_are_passed_over(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    class Nasty:
        @property
        def __class__(self) -> Any:
            raise RuntimeError("do not look")

    monkeypatch.setitem(sys.modules, "nasty", Nasty())
    monkeypatch.setitem(sys.modules, "nothing", None)
    bench.module("tm", WORLD)
    user = bench.module("user", "from tm import f")
    bench.patch(("tm.f", lambda: "r", "REPLACE"))
    assert user.f() == "r"


def test_one_walk_for_all_targets(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """The claim behind the speed: however many hooks, sys.modules is walked once."""
    walks = []
    finish = Session.finish

    def counting(self: Session) -> None:
        if self._waiting:
            walks.append(len(self._waiting))
        finish(self)

    monkeypatch.setattr(Session, "finish", counting)
    bench.module("tm", "\n".join(f"def f{n}(): pass" for n in range(50)))
    bench.patch(*((f"tm.f{n}", lambda: 1, "REPLACE") for n in range(50)))
    assert walks == [50]


def test_load_gives_the_reason_not_the_wrapper(bench: Bench):
    bench.file("pkg/__init__.py", "")
    bench.file("pkg/broken.py", "import no_such_thing")
    bench.file("pkg/good.py", "class Inner:\n    class Deep: pass")
    assert objects.load("pkg.good:Inner.Deep") is objects.load("pkg.good.Inner.Deep")
    assert objects.load("pkg.good") is sys.modules["pkg.good"]
    for name in ("pkg.broken.C", "pkg.broken:C"):
        with pytest.raises(ModuleNotFoundError, match="no_such_thing"):
            objects.load(name)
    with pytest.raises(AttributeError, match=r"module 'pkg.good' has no attribute 'Iner'") as caught:
        objects.load("pkg.good.Iner")
    assert caught.value.hint == "did you mean 'Inner'?"
