"""Our hook registry beside SGLang's: the table of cases, and worlds that hypothesis makes up."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sglang_plug.core.hooks import HookRegistry, HookType, current_source
from tests.core.registry_cases import CASES, Bench, Case, collected
from tests.core.test_registry_cases import starts
from tests.sglang import real_registry

if TYPE_CHECKING:
    import types
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.sglang, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def real() -> types.ModuleType:
    return real_registry.load()


def real_bench(real: types.ModuleType, site: Path) -> Bench:
    real.HookRegistry.reset()
    kinds = real.HookType.__members__
    return Bench(real.HookRegistry, kinds, real.plugin_hook, real._current_plugin_source, site)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, real: types.ModuleType, tmp_path: Path):
    """The table says rightly what real SGLang does."""
    bench = real_bench(real, tmp_path)
    with collected(bench):
        assert case.run(bench) == case.real
    assert starts(bench.logs, case.real_logs), bench.logs


WORLD = {
    "wp": "",
    "wp.a": """
def f(x, y=0): return ("f", x, y)
def g(x, y=0): return f(x, y)
def h(*args, **kwargs): return ("h", args, tuple(sorted(kwargs.items())))
same = f
class B:
    def __repr__(self): return "inst"
    def m(self, x, y=0): return ("B.m", type(self).__name__, x, y)
    def n(self, x, y=0): return self.m(x, y)
    @classmethod
    def k(cls, x, y=0): return ("B.k", cls.__name__, x, y)
    @staticmethod
    def s(x, y=0): return ("B.s", x, y)
class S(B):
    def n(self, x, y=0): return ("S.n", super().n(x, y))
""",
    "wp.b": """
from wp.a import f, g as gg, B, S, h
from wp import a
method = B.m
def use(x, y=0): return (f(x, y), gg(x, y), B().m(x, y), S().n(x, y))
""",
    "wp.c": """
from wp.b import f as ff, B as BB
class T(BB):
    def m(self, x, y=0): return ("T.m", super().m(x, y))
def z(x, y=0, fn=ff): return ("z", fn(x, y), ff(x, y), T().m(x, y))
""",
}
TARGETS = [
    "wp.a.f",
    "wp.a.g",
    "wp.a.h",
    "wp.a.B",
    "wp.a.B.m",
    "wp.a.B.n",
    "wp.a.B.k",
    "wp.a.B.s",
    "wp.a.S",
    "wp.a.S.n",
    "wp.a.S.m",
    "wp.b.f",
    "wp.b.gg",
    "wp.b.use",
    "wp.b.B.n",
    "wp.b.method",
    "wp.c.z",
    "wp.c.ff",
    "wp.c.T.m",
    "wp.c.T",
    "wp.nope.f",
    "wp.a.nope",
    "wp.a.B.nope",
    "wp.a.same",
]


@dataclass(frozen=True)
class Registration:
    target: str
    kind: str
    way: int
    number: int


registrations = st.lists(
    st.builds(Registration, st.sampled_from(TARGETS), st.sampled_from(sorted(HookType.__members__)), st.integers(0, 3), st.integers(0, 99)),
    min_size=1,
    max_size=9,
)


def hook_of(entry: Registration, trace: list[Any], world: dict[str, Any]) -> Any:
    """Return a hook that writes down how it is called, and does one of a few things."""

    def shown(values: Any) -> str:
        return repr([value if isinstance(value, (int, str, tuple)) else type(value).__name__ for value in values])

    def write(args: Any, kwargs: Any) -> None:
        trace.append((entry.kind, entry.number, shown(args), sorted(kwargs.items())))

    def before(*args: Any, **kwargs: Any) -> Any:
        write(args, kwargs)
        changed = (args, {**kwargs, "y": entry.number}) if len(args) < 2 + (not isinstance(args[0], int)) else None
        return (None, changed, (args, kwargs), None)[entry.way]

    def after(result: Any, *args: Any, **kwargs: Any) -> Any:
        write((result, *args), kwargs)
        return (None, ("after", entry.number, result), 0, None)[entry.way]

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        write(args, kwargs)
        return ("skipped",) if entry.way == 0 else ("around", entry.number, original(*args, **kwargs))

    def replace(*args: Any, **kwargs: Any) -> Any:
        write(args, kwargs)
        return ("replaced", entry.number)

    if entry.kind == "REPLACE" and entry.target.rpartition(".")[2] in {"B", "S", "T"} and entry.way:
        base = world[entry.target.rpartition(".")[2]]
        # Its own class and static methods: real SGLang breaks inherited ones (the table has that case).
        own = {"k": classmethod(lambda cls, x, y=0: ("R.k", x, y)), "s": staticmethod(lambda x, y=0: ("R.s", x, y))}
        body: dict[str, Any] = {"m": lambda self, x, y=0: ("R.m", entry.number, x, y)} if entry.way == 2 else {}
        return type(f"R{entry.number}", (base,), {**own, **body})
    return {"BEFORE": before, "AFTER": after, "AROUND": around, "REPLACE": replace}[entry.kind]


def story(bench: Bench, first: list[Registration], late: list[Registration], loaded: bool) -> tuple[Any, list[str]]:
    """Return everything that is to be seen of a world with these hooks: calls, results, bindings, warnings."""
    trace: list[Any] = []
    for name, text in WORLD.items():
        path = name.replace(".", "/") + ("/__init__.py" if name == "wp" else ".py")
        bench.file(path, text)
    with collected(bench):
        __import__("wp.a")
        world = {name: getattr(sys.modules["wp.a"], name) for name in "BS"}
        world["T"] = world["B"]
        if loaded:
            __import__("wp.c")
        for part in (first, late):
            for entry in part:
                bench.hook(entry.target, hook_of(entry, trace, world), entry.kind)
            bench.apply()
        try:
            __import__("wp.c")
        except TypeError as error:  # a class replaced by a function is no base
            return type(error).__name__, bench.logs
        return observe(trace), bench.logs


def observe(trace: list[Any]) -> list[Any]:
    a, b, c = (sys.modules[f"wp.{name}"] for name in "abc")
    found: list[Any] = []

    def call(label: str, function: Callable[[], Any]) -> None:
        del trace[:]
        try:
            result: Any = repr(function())
        except Exception as error:
            result = type(error).__name__
        found.append((label, result, list(trace)))

    for module in (a, b, c):
        for name, value in sorted(vars(module).items()):
            if name.startswith("__") or not callable(value):
                continue
            found.append((module.__name__, name, type(value).__name__, getattr(value, "__name__", None)))
            call(f"{module.__name__}.{name}(1)", lambda value=value: value(1))
            call(f"{module.__name__}.{name}(1, y=2)", lambda value=value: value(1, y=2))
            if isinstance(value, type):
                for member in "mnks":
                    kind = type(vars(value).get(member)).__name__
                    call(f"{name}.{member} {kind}", lambda value=value, member=member: getattr(value(), member)(1, 2))
                    call(f"{name}.{member} on class", lambda value=value, member=member: getattr(value, member)(1))
    return found


def meaning(logs: list[str]) -> list[str]:
    """Return log lines without wording: level and first words, and for failures only that there was one."""
    kept = []
    for line in logs:
        level, _, text = line.partition(" ")
        if level in {"WARNING", "ERROR", "INFO"}:
            kept.append(f"{level} {text.split(' (')[0].split(':')[0][:34]}")
    return sorted(kept)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=registrations, late=st.lists(registrations.flatmap(st.sampled_from), max_size=3), loaded=st.booleans())
def test_the_same_story(first: list[Registration], late: list[Registration], loaded: bool, real: types.ModuleType, tmp_path: Path):
    """Same calls, same arguments, same results, same bindings, warnings of the same meaning."""
    ours = HookRegistry()
    our_story, our_logs = story(Bench(ours, HookType.__members__, ours.decorator, current_source, tmp_path), first, late, loaded)
    real_story, real_logs = story(real_bench(real, tmp_path), first, late, loaded)
    assert our_story == real_story
    assert meaning(our_logs) == meaning(real_logs)
