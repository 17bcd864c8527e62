"""What hooks do, as a table of executed cases. Each runs on our registry for both runtimes, and on the real one where it is at hand.

A case is a function of a `Bench`: it makes modules, registers, applies, and returns what it saw. `expected` is what the document or the
real registry gives; `real` is given only where real SGLang does otherwise (docs/reference/differences.md).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import pickle
import sys
import textwrap
import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_plug.core.hooktypes import HookSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOGGER = "sglang.srt.plugins.hook_registry"
SAME = object()


@dataclass(frozen=True)
class Case:
    run: Callable[[Bench], Any]
    expected: Any
    real: Any
    logs: tuple[str, ...]
    real_logs: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.run.__name__


CASES: list[Case] = []


def case(expected: Any, *logs: str, real: Any = SAME, real_logs: Any = SAME) -> Callable[[Any], Any]:
    """Keep a function as a case: its result, the beginnings of its log lines, and where the real registry differs."""

    def keep(run: Any) -> Any:
        CASES.append(Case(run, expected, expected if real is SAME else real, logs, logs if real_logs is SAME else tuple(real_logs)))
        return run

    return keep


class Bench:
    """One registry under test, with modules that vanish afterwards."""

    def __init__(self, registry: Any, types_: Any, decorate: Any, source: Any, site: Any) -> None:
        self.registry = registry
        self._register = registry.register
        self.apply = getattr(registry, "apply_hooks", None) or registry.apply
        self.types = types_
        self.decorate = decorate
        self.source = source
        self.site = site
        self.logs: list[str] = []

    def module(self, name: str, source: str = "", *, package: bool = False) -> types.ModuleType:
        made = types.ModuleType(name)
        if package:
            made.__path__ = []
        sys.modules[name] = made
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, made)
        exec(compile(textwrap.dedent(source), name, "exec"), made.__dict__)
        return made

    def file(self, path: str, source: str) -> None:
        target = self.site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(source))
        __import__("importlib").invalidate_caches()

    def hook(self, target: str, function: Any, kind: str = "AROUND") -> Any:
        return self._register(target, function, self.types[kind])

    def patch(self, *hooks: tuple[str, Any, str]) -> None:
        for target, function, kind in hooks:
            self.hook(target, function, kind)
        self.apply()


@contextlib.contextmanager
def collected(bench: Bench) -> Iterator[None]:
    """Write down WARNING and above of the registry, and INFO that is no report of success."""

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if record.levelno >= logging.WARNING or (record.levelno == logging.INFO and not text.startswith("Applied")):
                bench.logs.append(f"{record.levelname} {text}")
                if record.exc_info and record.exc_info[0]:
                    bench.logs.append(f"{record.exc_info[0].__name__}: {record.exc_info[1]}")

    logger = logging.getLogger(LOGGER)
    handler = Collector()
    before, level, propagate = set(sys.modules), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    sys.path.insert(0, str(bench.site))
    try:
        yield
    finally:
        sys.path.remove(str(bench.site))
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
        for name in set(sys.modules) - before:
            del sys.modules[name]


def raised(call: Any, *args: Any, **kwargs: Any) -> str:
    """Return what `call` raises as `Type: text`, or its result."""
    try:
        return f"returned {call(*args, **kwargs)!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def kind_raised(call: Any, *args: Any, **kwargs: Any) -> str:
    """Return only the type of what `call` raises."""
    return raised(call, *args, **kwargs).partition(":")[0]


F = "def f(x=1): return x"
C = """
class C:
    def m(self, x=1): return x
"""


def times(n: int) -> Any:
    return lambda result, *args, **kwargs: result * n


def tag(word: str) -> Any:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        return f"{word}> {original(*args, **kwargs)} <{word}"

    return around


# -- order


@case(
    ["b2", "A2>", "b1", "A1>", "orig", "<A1", "a1", "<A2"],
    "WARNING Multiple AROUND hooks on 'tm.f' (2 hooks, from: unknown, unknown)",
)
def first_registered_is_innermost(b: Bench) -> Any:
    seen: list[str] = []
    m = b.module("tm")
    m.f = lambda: seen.append("orig")

    def around(word: str) -> Any:
        def hook(original: Any) -> None:
            seen.append(f"{word}>")
            original()
            seen.append(f"<{word}")

        return hook

    b.patch(
        ("tm.f", around("A1"), "AROUND"),
        ("tm.f", lambda: seen.append("b1"), "BEFORE"),
        ("tm.f", lambda result: seen.append("a1"), "AFTER"),
        ("tm.f", around("A2"), "AROUND"),
        ("tm.f", lambda: seen.append("b2"), "BEFORE"),
    )
    # The AFTER registered before A2 runs inside of it.
    m.f()
    return seen


@case(["A> replaced <A"], "INFO Target 'tm.f' has both REPLACE and around hooks")
def replace_registered_last_is_still_innermost(b: Bench) -> Any:
    m = b.module("tm", "def f(): return 'orig'")
    b.patch(("tm.f", tag("A"), "AROUND"), ("tm.f", lambda: "replaced", "REPLACE"))
    return [m.f()]


@case("r2", "WARNING Multiple REPLACE hooks on 'tm.f': previous (")
def of_two_replacements_the_last_wins(b: Bench) -> Any:
    m = b.module("tm", F)
    b.patch(("tm.f", lambda: "r1", "REPLACE"), ("tm.f", lambda: "r2", "REPLACE"))
    return m.f()


@case([("hook", "D"), True])
def class_replacement_comes_before_its_members(b: Bench) -> Any:
    m = b.module("tm", C)
    original = m.C
    b.hook("tm.C.m", lambda original, self, *a: ("hook", type(self).__name__))
    b.hook("tm.C", type("D", (original,), {}), "REPLACE")
    b.apply()
    return [m.C().m(), original.m is vars(original)["m"]]


@case(["tm.a", "tm.b", "tm.c"])
def other_targets_come_by_name(b: Bench) -> Any:
    m = b.module("tm", "def a(): pass\ndef b(): pass\ndef c(): pass")
    order: list[str] = []

    class Watched(types.ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            order.append(f"tm.{name}")
            super().__setattr__(name, value)

    m.__class__ = Watched
    for name in "cab":
        b.hook(f"tm.{name}", lambda result: None, "AFTER")
    b.apply()
    return order


@case(11)
def the_default_type_is_after(b: Bench) -> Any:
    m = b.module("tm", F)
    b._register("tm.f", lambda result, x: result + 10)
    b.apply()
    return m.f(1)


# -- how targets are written


@case("colon> dot> orig <dot <colon", "WARNING Multiple AROUND", real_logs=[])
def both_spellings_are_one_target(b: Bench) -> Any:
    b.module("pk", package=True)
    m = b.module("pk.mod", "class C:\n    def f(self): return 'orig'")
    b.patch(("pk.mod.C.f", tag("dot"), "AROUND"), ("pk.mod:C.f", tag("colon"), "AROUND"))
    return m.C().f()


@case("colon", "WARNING Multiple REPLACE", real_logs=[])
def replacing_under_both_spellings_warns(b: Bench) -> Any:
    b.module("pk", package=True)
    m = b.module("pk.mod", "class C:\n    def f(self): return 'orig'")
    b.patch(("pk.mod.C.f", lambda self: "dot", "REPLACE"), ("pk.mod:C.f", lambda self: "colon", "REPLACE"))
    return m.C().f()


@case("A> colon <A", "INFO Target 'pk.mod.C.f' has both", real="colon", real_logs=[])
def a_colon_replacement_keeps_wrappers_of_the_dotted_spelling(b: Bench) -> Any:
    b.module("pk", package=True)
    m = b.module("pk.mod", "class C:\n    def f(self): return 'orig'")
    b.patch(("pk.mod.C.f", tag("A"), "AROUND"), ("pk.mod:C.f", lambda self: "colon", "REPLACE"))
    return m.C().f()


@case(2, real=1, real_logs=["ERROR Failed to apply hooks to tm:f", "ValueError"])
def colon_function_of_a_module(b: Bench) -> Any:
    m = b.module("tm", F)
    b.patch(("tm:f", times(2), "AFTER"))
    return m.f()


@case(2, real=1, real_logs=["ERROR Failed to apply hooks to pk.mod:f", "AttributeError"])
def colon_function_in_a_package(b: Bench) -> Any:
    b.module("pk", package=True)
    m = b.module("pk.mod", F)
    b.patch(("pk.mod:f", times(2), "AFTER"))
    return m.f()


@case("D", real="C", real_logs=["ERROR Failed to apply hooks to pk.mod:C", "AttributeError"])
def colon_class_in_a_package(b: Bench) -> Any:
    b.module("pk", package=True)
    m = b.module("pk.mod", C)
    b.patch(("pk.mod:C", type("D", (m.C,), {}), "REPLACE"))
    return m.C.__name__


@case([2, 2])
def colon_method_and_nested_method(b: Bench) -> Any:
    b.module("pk", package=True)
    m = b.module("pk.mod", C + "    class I:\n        def m(self, x=1): return x")
    b.patch(("pk.mod:C.m", times(2), "AFTER"), ("pk.mod:C.I.m", times(2), "AFTER"))
    return [m.C().m(), m.C.I().m()]


@case(None, "ERROR Failed to apply hooks to os", "TargetError", real_logs=["ERROR Failed to apply hooks to os", "ValueError"])
def a_target_needs_two_parts(b: Bench) -> Any:
    b.patch(("os", times(2), "AFTER"))


@case(1, "ERROR Failed to apply hooks to  tm.f", "TargetError", real_logs=["ERROR Failed to apply hooks to  tm.f", "ValueError"])
def spaces_are_no_target(b: Bench) -> Any:
    m = b.module("tm", F)
    b.patch((" tm.f", times(2), "AFTER"))
    return m.f()


@case(
    None,
    "ERROR Failed to apply hooks to tm.nope",
    "TargetError: module 'tm' has no attribute 'nope'",
    real_logs=["ERROR Failed to apply hooks to tm.nope", "AttributeError: module 'tm' has no attribute 'nope'"],
)
def a_missing_attribute(b: Bench) -> Any:
    b.module("tm", F)
    b.patch(("tm.nope", times(2), "AFTER"))


@case(
    None,
    "ERROR Failed to apply hooks to no_such_q.mod.f",
    "TargetError: the module behind 'no_such_q.mod.f' does not import: ModuleNotFoundError: No module named 'no_such_q'",
    real_logs=["ERROR Failed to apply hooks to no_such_q.mod.f", "ModuleNotFoundError: No module named 'no_such_q'"],
)
def a_missing_top_level_module(b: Bench) -> Any:
    b.patch(("no_such_q.mod.f", times(2), "AFTER"))


@case(
    None,
    "ERROR Failed to apply hooks to pq.sub.C.f",
    "TargetError: module 'pq' has no attribute 'sub'",
    real_logs=["ERROR Failed to apply hooks to pq.sub.C.f", "AttributeError: module 'pq' has no attribute 'sub'"],
)
def a_missing_submodule(b: Bench) -> Any:
    b.file("pq/__init__.py", "")
    b.patch(("pq.sub.C.f", times(2), "AFTER"))


HIDDEN = "TargetError: the module behind 'bro.bad.{}' does not import: ModuleNotFoundError: No module named 'no_such_dep_xyz'"


@case(
    None,
    "ERROR Failed to apply hooks to bro.bad.f",
    HIDDEN.format("f"),
    real_logs=["ERROR Failed to apply hooks to bro.bad.f", "AttributeError: module 'bro' has no attribute 'bad'"],
)
def the_import_that_fails_behind_a_function_is_the_reason(b: Bench) -> Any:
    b.file("bro/__init__.py", "")
    b.file("bro/bad.py", "import no_such_dep_xyz\ndef f(): pass")
    b.patch(("bro.bad.f", times(2), "AFTER"))


@case(
    None,
    "ERROR Failed to apply hooks to bro.bad.C.m",
    HIDDEN.format("C.m"),
    real_logs=["ERROR Failed to apply hooks to bro.bad.C.m", "AttributeError: module 'bro' has no attribute 'bad'"],
)
def the_import_that_fails_behind_a_method_is_the_reason(b: Bench) -> Any:
    b.file("bro/__init__.py", "")
    b.file("bro/bad.py", "import no_such_dep_xyz\nclass C:\n    def m(self): pass")
    b.patch(("bro.bad.C.m", times(2), "AFTER"))


@case(
    None,
    "ERROR Failed to apply hooks to bro.bad.C.m",
    HIDDEN.format("C.m"),
    real_logs=["ERROR Failed to apply hooks to bro.bad:C.m", "ModuleNotFoundError: No module named 'no_such_dep_xyz'"],
)
def the_import_that_fails_behind_a_colon_method_is_the_reason(b: Bench) -> Any:
    b.file("bro/__init__.py", "")
    b.file("bro/bad.py", "import no_such_dep_xyz")
    b.patch(("bro.bad:C.m", times(2), "AFTER"))


@case(None, "ERROR Failed to apply hooks to bro.boom.f", "RuntimeError: boom at import")
def any_other_failure_of_an_import_passes_through(b: Bench) -> Any:
    b.file("bro/__init__.py", "")
    b.file("bro/boom.py", "raise RuntimeError('boom at import')")
    b.patch(("bro.boom.f", times(2), "AFTER"))


@case(
    9,
    "ERROR Failed to apply hooks to tm.late",
    "TargetError",
    real_logs=["ERROR Failed to apply hooks to tm.late", "AttributeError"],
)
def a_failed_target_is_tried_again(b: Bench) -> Any:
    m = b.module("tm", F)
    b.patch(("tm.late", lambda: 9, "REPLACE"))
    m.late = lambda: 1
    b.apply()
    return m.late()


@case(
    [1, 2],
    "ERROR Failed to apply hooks to tm.C.__m",
    "TargetError: class 'C' has no attribute '__m'",
    real_logs=["ERROR Failed to apply hooks to tm.C.__m", "AttributeError: type object 'C' has no attribute '__m'"],
)
def private_names_are_mangled(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def __m(self): return 1\n    def call(self): return self.__m()")
    b.patch(("tm.C.__m", times(2), "AFTER"))
    first = m.C().call()
    b.patch(("tm.C._C__m", times(2), "AFTER"))
    b.logs[2:] = []
    return [first, m.C().call()]


@case([2, True])
def a_lazy_attribute_of_a_module(b: Bench) -> Any:
    m = b.module("tm", "def __getattr__(name):\n    if name == 'f': return lambda: 1\n    raise AttributeError(name)")
    b.patch(("tm.f", times(2), "AFTER"))
    return [m.f(), "f" in vars(m)]


@case(["r", "o"])
def a_method_of_one_instance(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def m(self): return 'o'\nobj = C()")
    b.patch(("tm.obj.m", lambda: "r", "REPLACE"))
    return [m.obj.m(), m.C().m()]


# -- class, static and inherited methods


@case([("hook", "C", 1), ("hook", "D", 2), "classmethod"])
def a_class_method_stays_one(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    @classmethod\n    def k(cls, x): return cls.__name__, x\nclass D(C): pass")
    b.patch(("tm.C.k", lambda original, cls, x: ("hook", *original(cls, x)), "AROUND"))
    return [m.C.k(1), m.D().k(2), type(vars(m.C)["k"]).__name__]


@case([2, 2, "staticmethod"])
def a_static_method_stays_one(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    @staticmethod\n    def s(x): return x")
    b.patch(("tm.C.s", times(2), "AFTER"))
    return [m.C.s(1), m.C().s(1), type(vars(m.C)["s"]).__name__]


@case(
    ["classmethod", ("hook", "C", 1), ("hook", "D", 1), ("hook", "C", 1), ("B", 1)],
    real=["function", ("hook", "C", 1), ("hook", "C", 1), "TypeError", ("B", 1)],
)
def an_inherited_class_method_stays_one(b: Bench) -> Any:
    m = b.module("tm", "class B:\n    @classmethod\n    def k(cls, x): return cls.__name__, x\nclass C(B): pass\nclass D(C): pass")
    b.patch(("tm.C.k", lambda original, *args: ("hook", *original(*args)), "AROUND"))
    on_instance = kind_raised(lambda: m.C().k(1))
    return [
        type(vars(m.C)["k"]).__name__,
        m.C.k(1),
        m.D.k(1),
        "TypeError" if on_instance == "TypeError" else m.C().k(1),
        m.B.k(1),
    ]


@case(["staticmethod", ("hook", 1), ("hook", 1)], real=["function", ("hook", 1), "TypeError"])
def an_inherited_static_method_stays_one(b: Bench) -> Any:
    m = b.module("tm", "class B:\n    @staticmethod\n    def s(x): return x\nclass C(B): pass")
    b.patch(("tm.C.s", lambda original, *args: ("hook", original(*args)), "AROUND"))
    on_instance = kind_raised(lambda: m.C().s(1))
    return [type(vars(m.C)["s"]).__name__, m.C.s(1), "TypeError" if on_instance == "TypeError" else m.C().s(1)]


@case(["classmethod", {"a": None}, {"a": None}], real=["function", {"a": None}, {}])
def a_class_method_inherited_from_c_stays_one(b: Bench) -> Any:
    m = b.module("tm", "class D(dict): pass")
    b.patch(("tm.D.fromkeys", lambda result, *args: None, "AFTER"))
    return [type(vars(m.D)["fromkeys"]).__name__, dict(m.D.fromkeys("a")), dict(m.D().fromkeys("a"))]


@case(["from D", "E"], real=["from nothing", "D"])
def a_class_method_inherited_from_c_hears_which_class_is_meant(b: Bench) -> Any:
    m = b.module("tm", "class D(dict): pass\nclass E(D): pass")
    heard: list[str] = []
    b.patch(
        ("tm.D.fromkeys", lambda *args: heard.append("from " + (args[0].__name__ if isinstance(args[0], type) else "nothing")), "BEFORE")
    )
    m.D.fromkeys("a")
    return [heard[0], type(m.E.fromkeys("a")).__name__]


@case(["error", True], "ERROR Failed to apply hooks to builtins.dict.fromkeys", "TypeError: cannot set")
def a_class_written_in_c_is_left_alone(b: Bench) -> Any:
    before = vars(dict)["fromkeys"]
    b.patch(("builtins.dict.fromkeys", lambda result, *args: None, "AFTER"))
    return ["error" if b.logs else "applied", vars(dict)["fromkeys"] is before]


@case(["hook", "b", True])
def an_inherited_method_is_set_on_the_named_class(b: Bench) -> Any:
    m = b.module("tm", "class B:\n    def m(self): return 'b'\nclass C(B): pass")
    b.patch(("tm.C.m", lambda self: "hook", "REPLACE"))
    return [m.C().m(), m.B().m(), "m" in vars(m.C)]


@case(["hook", "c"])
def a_hook_on_a_base_does_not_reach_an_override(b: Bench) -> Any:
    m = b.module("tm", "class B:\n    def m(self): return 'b'\nclass C(B):\n    def m(self): return 'c'")
    b.patch(("tm.B.m", lambda self: "hook", "REPLACE"))
    return [m.B().m(), m.C().m()]


@case("c+hook")
def super_calls_meet_the_hook_of_the_base(b: Bench) -> Any:
    m = b.module("tm", "class B:\n    def m(self): return 'b'\nclass C(B):\n    def m(self): return 'c+' + super().m()")
    b.patch(("tm.B.m", lambda self: "hook", "REPLACE"))
    return m.C().m()


# -- what is no function


@case("method", "WARNING Target 'tm.C.p' is a property", real_logs=[])
def a_property_becomes_a_method(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    @property\n    def p(self): return 1")
    b.patch(("tm.C.p", lambda original, self: 2, "AROUND"))
    return type(m.C().p).__name__


@case("TypeError: 'property' object is not callable", "WARNING Target 'tm.C.p' is a property", real_logs=[])
def a_hooked_property_cannot_call_its_original(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    @property\n    def p(self): return 1")
    b.patch(("tm.C.p", lambda result, self: result, "AFTER"))
    return raised(m.C().p)


@case("method", "WARNING Target 'tm.C.p' is a property", real_logs=[])
def a_replaced_property_becomes_a_method(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    @property\n    def p(self): return 1")
    b.patch(("tm.C.p", lambda self: 2, "REPLACE"))
    return type(m.C().p).__name__


@case("method", "WARNING Target 'tm.C.p' is a cached_property", real_logs=[])
def a_cached_property_becomes_a_method(b: Bench) -> Any:
    m = b.module("tm", "import functools\nclass C:\n    @functools.cached_property\n    def p(self): return 1")
    b.patch(("tm.C.p", lambda result, self: result, "AFTER"))
    return type(m.C().p).__name__


@case(["function", "function"], "WARNING Target 'tm.C.n' is a int", "WARNING Target 'tm.X' is a object", real_logs=[])
def a_constant_becomes_a_function(b: Bench) -> Any:
    m = b.module("tm", "X = object()\nclass C:\n    n = 123456789")
    b.patch(("tm.X", lambda result: result, "AFTER"), ("tm.C.n", lambda result: result, "AFTER"))
    return [type(m.X).__name__, type(m.C.n).__name__]


@case("int", "WARNING Target 'tm.X' is a int", real="function", real_logs=[])
def a_constant_is_not_replaced_in_unrelated_modules(b: Bench) -> Any:
    m = b.module("tm", "X = 987654321")
    other = b.module("unrelated")
    other.Y = m.X
    b.patch(("tm.X", lambda result: result, "AFTER"))
    return type(other.Y).__name__


@case([3.0])
def a_builtin_function(b: Bench) -> Any:
    m = b.module("tm", "from math import sqrt")
    b.patch(("tm.sqrt", lambda result, x: result + 1, "AFTER"))
    return [m.sqrt(4)]


IMMUTABLE = "TypeError: cannot set 'get' attribute of immutable type 'dict'"


@case(None, "ERROR Failed to apply hooks to builtins.dict.get", IMMUTABLE)
def a_method_of_a_builtin_type_cannot_be_set(b: Bench) -> Any:
    b.patch(("builtins.dict.get", times(2), "AFTER"))


@case([3])
def a_partial(b: Bench) -> Any:
    m = b.module("tm", "import functools\nf = functools.partial(int, '2')")
    b.patch(("tm.f", lambda result: result + 1, "AFTER"))
    return [m.f()]


@case([False, False])
def a_cached_function_loses_its_cache_methods(b: Bench) -> Any:
    m = b.module("tm", "import functools\n@functools.lru_cache\ndef f(): return 1")
    b.patch(("tm.f", lambda result: result, "AFTER"))
    return [hasattr(m.f, "cache_clear"), hasattr(m.f, "cache_info")]


@case([True, "TypeError: 'function' object is not subscriptable"])
def a_callable_object_becomes_a_function(b: Bench) -> Any:
    m = b.module(
        "tm",
        "class K:\n    def __call__(self): return 1\n    def __getitem__(self, key): return self\n    other = 1\nkernel = K()",
    )
    b.patch(("tm.kernel", lambda result: result, "AFTER"))
    return [not hasattr(m.kernel, "other"), raised(lambda: m.kernel[0])]


# -- classes


WRONG_KIND = "Target 'tm.C' is a class. Only HookType.REPLACE is allowed for class targets (got around)."


@case("C", "ERROR Failed to apply hooks to tm.C", f"HookTypeError: {WRONG_KIND}", real_logs=["ERROR Failed", f"TypeError: {WRONG_KIND}"])
def a_class_takes_only_replacements(b: Bench) -> Any:
    m = b.module("tm", C)
    b.patch(("tm.C", tag("A"), "AROUND"))
    return m.C.__name__


@case("C", "ERROR Failed to apply hooks to tm.C", f"HookTypeError: {WRONG_KIND}", real_logs=["ERROR Failed", f"TypeError: {WRONG_KIND}"])
def one_wrong_hook_rejects_the_whole_target(b: Bench) -> Any:
    m = b.module("tm", C)
    b.patch(("tm.C", type("D", (m.C,), {}), "REPLACE"), ("tm.C", tag("A"), "AROUND"))
    return m.C.__name__


@case(["function", "made", "TypeError"])
def a_class_replaced_by_a_function(b: Bench) -> Any:
    m = b.module("tm", C)
    b.patch(("tm.C", lambda: "made", "REPLACE"))
    return [type(m.C).__name__, m.C(), kind_raised(lambda: isinstance(1, m.C))]


@case(True)
def a_function_replaced_by_a_class(b: Bench) -> Any:
    m = b.module("tm", F)
    cls = type("K", (), {})
    b.patch(("tm.f", cls, "REPLACE"))
    return m.f is cls


@case(0)
def a_method_replaced_by_a_class_gets_no_self(b: Bench) -> Any:
    m = b.module("tm", C)

    class K:
        def __init__(self, *args: Any) -> None:
            self.count = len(args)

    b.patch(("tm.C.m", K, "REPLACE"))
    return m.C().m().count


@case(["b", "B", False])
def existing_subclasses_keep_the_old_base(b: Bench) -> Any:
    m = b.module("tm", "class B:\n    def m(self): return 'b'\nclass S(B): pass")
    new = type("N", (), {"m": lambda self: "n"})
    b.patch(("tm.B", new, "REPLACE"))
    return [m.S().m(), m.S.__mro__[1].__name__, issubclass(m.S, m.B)]


@case("N")
def a_replacement_need_not_be_a_subclass(b: Bench) -> Any:
    m = b.module("tm", C)
    b.patch(("tm.C", type("N", (), {}), "REPLACE"))
    return m.C.__name__


@case(["PicklingError", "PicklingError"])
def instances_of_a_replaced_class_do_not_pickle(b: Bench) -> Any:
    m = b.module("tm", "class B: pass")
    old = m.B()
    b.patch(("tm.B", type("B2", (m.B,), {"__module__": "tm"}), "REPLACE"))
    return [kind_raised(pickle.dumps, old), kind_raised(pickle.dumps, m.B())]


@case(["PicklingError", True])
def the_wrapper_pickles_and_the_original_does_not(b: Bench) -> Any:
    m = b.module("tm", F)
    original = m.f
    b.patch(("tm.f", times(2), "AFTER"))
    return [kind_raised(pickle.dumps, original), pickle.loads(pickle.dumps(m.f)) is m.f]


@case(["h", "o"])
def member_hooks_land_on_the_replacement(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def m(self): return 'o'")
    old = m.C
    b.patch(("tm.C.m", lambda original, self: "h", "AROUND"), ("tm.C", type("D", (old,), {}), "REPLACE"))
    return [m.C().m(), old().m()]


@case("M", "WARNING Method REPLACE on 'tm.C.m' will override the class REPLACE's own implementation of 'm'")
def replacing_a_member_of_a_replacement_warns(b: Bench) -> Any:
    m = b.module("tm", C)
    b.patch(("tm.C", type("D", (m.C,), {"m": lambda self: "D"}), "REPLACE"), ("tm.C.m", lambda self: "M", "REPLACE"))
    return m.C().m()


# -- what the registry takes


CLASS_GIVEN = "Class int can only be used with HookType.REPLACE, got HookType.{}. Use a function for BEFORE/AFTER/AROUND hooks."


@case(["HookTypeError: " + CLASS_GIVEN.format("AROUND")], real=["TypeError: " + CLASS_GIVEN.format("AROUND")])
def a_class_is_no_around_hook(b: Bench) -> Any:
    return [raised(b.hook, "tm.f", int)]


@case(["HookTypeError: " + CLASS_GIVEN.format("AFTER")], real=["TypeError: " + CLASS_GIVEN.format("AFTER")])
def a_class_is_no_after_hook(b: Bench) -> Any:
    return [raised(b._register, "tm.f", int)]


@case(
    ["HookTypeError: Unknown hook type: 'around'", 2],
    real=["AttributeError: 'str' object has no attribute 'value'", 1],
    real_logs=["ERROR Failed to apply hooks to tm.f", "ValueError: Unknown hook type: around"],
)
def a_type_given_as_text_is_refused_and_poisons_nothing(b: Bench) -> Any:
    m = b.module("tm", F)
    b.hook("tm.f", times(2), "AFTER")
    refused = raised(b._register, "tm.f", tag("A"), "around")
    b.apply()
    return [refused, m.f()]


@case("HookTypeError", real="TypeError")
def a_hook_that_cannot_be_called_is_refused(b: Bench) -> Any:
    m = b.module("tm", F)
    early = kind_raised(b.hook, "tm.f", "text")
    if early != "returned None":
        return early
    b.apply()
    return kind_raised(m.f)


@case(2)
def the_same_hook_twice_applies_twice(b: Bench) -> Any:
    m = b.module("tm", "def f(): return 0")

    def more(result: int) -> int:
        return result + 1

    b.patch(("tm.f", more, "AFTER"), ("tm.f", more, "AFTER"))
    return m.f()


@case([1, 2])
def a_late_target_needs_another_application(b: Bench) -> Any:
    m = b.module("tm", F)
    b.apply()
    b.hook("tm.f", times(2), "AFTER")
    first = m.f()
    b.apply()
    return [first, m.f()]


@case(2)
def a_late_hook_on_a_patched_target_is_never_applied(b: Bench) -> Any:
    m = b.module("tm", F)
    b.patch(("tm.f", times(2), "AFTER"))
    b.patch(("tm.f", times(10), "AFTER"))
    return m.f()


@case(2)
def applying_twice_patches_once(b: Bench) -> Any:
    m = b.module("tm", F)
    b.patch(("tm.f", times(2), "AFTER"))
    b.apply()
    return m.f()


@case([1, 3])
def hooks_registered_while_applying(b: Bench) -> Any:
    """On a new target they wait; on a known one that is not patched yet they count."""
    m = b.module("tm", "def new(): return 1\ndef znown(): return 1")
    b.module("reg").bench = b
    b.file(
        "at_import.py",
        """
        from reg import bench
        bench.hook("tm.new", lambda result: 2, "AFTER")
        bench.hook("tm.znown", lambda result: 3, "AFTER")
        def f(): pass
        """,
    )
    b.patch(("at_import.f", times(1), "AFTER"), ("tm.znown", lambda result: None, "AFTER"))
    return [m.new(), m.znown()]


@case([5, 5, "TypeError"])
def the_decorator_returns_its_function(b: Bench) -> Any:
    m = b.module("tm", F)

    @b.decorate("tm.f")
    def hook(result: int, x: int = 1) -> int:
        return 5

    b.apply()
    return [m.f(1), hook(0), kind_raised(b.decorate, "tm.f", hook_type=1)]


# -- propagation


@case(["r", "r"])
def importers_see_the_patch_under_any_name(b: Bench) -> Any:
    b.module("tm", "def f(): return 'o'")
    user = b.module("user", "from tm import f\nfrom tm import f as g")
    b.patch(("tm.f", lambda: "r", "REPLACE"))
    return [user.f(), user.g()]


@case({"default": "o", "class_attr": "o", "dict": "o", "partial": "o", "closure": "o", "module_global": "r"})
def only_names_of_modules_are_reached(b: Bench) -> Any:
    b.module("tm", "def f(): return 'o'")
    user = b.module(
        "user",
        """
        import functools
        from tm import f
        def default(f=f): return f()
        class K: attr = staticmethod(f)
        table = {'f': f}
        partial = functools.partial(f)
        def make(g):
            return lambda: g()
        closure = make(f)
        def module_global(): return f()
        """,
    )
    b.patch(("tm.f", lambda: "r", "REPLACE"))
    return {
        "default": user.default(),
        "class_attr": user.K.attr(),
        "dict": user.table["f"](),
        "partial": user.partial(),
        "closure": user.closure(),
        "module_global": user.module_global(),
    }


@case(["old", "new"])
def a_default_argument_keeps_the_old_class(b: Bench) -> Any:
    b.module("tm", "class C: name = 'old'")
    user = b.module("user", "from tm import C\ndef default(cls=C): return cls.name\ndef now(): return C.name")
    b.patch(("tm.C", type("C", (), {"name": "new"}), "REPLACE"))
    return [user.default(), user.now()]


@case(["r", "o"])
def a_second_name_in_the_same_module_is_not_reached(b: Bench) -> Any:
    m = b.module("tm", "def f(): return 'o'\ng = f")
    b.patch(("tm.f", lambda: "r", "REPLACE"))
    return [m.f(), m.g()]


@case(["r", "r"])
def a_module_name_of_a_method_is_reached(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def m(self): return 'o'\nalias = C.m")
    b.patch(("tm.C.m", lambda self: "r", "REPLACE"))
    return [m.C().m(), m.alias(None)]


@case("function", real="classmethod")
def a_module_name_of_a_class_method_stays_callable(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    @classmethod\n    def k(cls): return 1\nalias = C.__dict__['k'].__func__")
    b.patch(("tm.C.k", lambda result, cls: result, "AFTER"))
    return type(m.alias).__name__


@case(["r", "r", "r"])
def a_target_given_through_a_re_export(b: Bench) -> Any:
    pk = b.module("pk", package=True)
    impl = b.module("pk.impl", "def f(): return 'o'")
    pk.f = impl.f
    user = b.module("user", "from pk.impl import f")
    b.patch(("pk.f", lambda: "r", "REPLACE"))
    return [pk.f(), impl.f(), user.f()]


@case(["B> A> o <A <B"] * 3)
def a_target_and_its_re_export_both_apply(b: Bench) -> Any:
    pk = b.module("pk", package=True)
    impl = b.module("pk.impl", "def f(): return 'o'")
    pk.f = impl.f
    user = b.module("user", "from pk.impl import f")
    b.patch(("pk.f", tag("A"), "AROUND"), ("pk.impl.f", tag("B"), "AROUND"))
    return [pk.f(), impl.f(), user.f()]


@case("r")
def a_module_imported_later_sees_the_patch(b: Bench) -> Any:
    b.module("tm", "def f(): return 'o'")
    b.patch(("tm.f", lambda: "r", "REPLACE"))
    return b.module("user", "from tm import f").f()


@case(["new", "new", "new"])
def a_target_imported_while_applying_sees_earlier_patches(b: Bench) -> Any:
    b.module("tm", "class C: name = 'old'")
    b.module("user", "from tm import C")
    b.file("later.py", "from user import C\nclass D(C): pass\ndef f(cls=C): return cls.name")
    b.patch(("tm.C", type("C", (), {"name": "new"}), "REPLACE"), ("later.f", lambda result, *a: None, "AFTER"))
    later = sys.modules["later"]
    return [later.D.name, later.f(), later.C.name]


@case(["hook", "hook"])
def members_named_through_an_importer_land_on_the_replacement(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def m(self): return 'o'")
    user = b.module("user", "from tm import C")
    b.patch(("tm.C", type("D", (m.C,), {}), "REPLACE"), ("user.C.m", lambda self: "hook", "REPLACE"))
    return [m.C().m(), user.C().m()]


@case(["o", "r"])
def a_bound_method_kept_by_a_module_is_not_reached(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def m(self): return 'o'\nc = C()\nbound = c.m")
    b.patch(("tm.C.m", lambda self: "r", "REPLACE"))
    return [m.bound(), m.c.m()]


# -- what hooks may answer


def shows(b: Bench) -> Any:
    return b.module("tm", "def f(*args, **kwargs): return repr((args, kwargs))")


@case("((1,), {'b': 2})")
def before_answering_none_changes_nothing(b: Bench) -> Any:
    m = shows(b)
    b.patch(("tm.f", lambda *a, **k: None, "BEFORE"))
    return m.f(1, b=2)


ANSWERS: list[tuple[Any, str]] = [
    (((9,), {"z": 1}), "returned \"((9,), {'z': 1})\""),
    ((9,), "ValueError: not enough values to unpack (expected 2, got 1)"),
    ({"z": 1}, "ValueError: not enough values to unpack (expected 2, got 1)"),
    (True, "TypeError: cannot unpack non-iterable bool object"),
    (0, "TypeError: cannot unpack non-iterable int object"),
    ((), "ValueError: not enough values to unpack (expected 2, got 0)"),
    ((8, 9), "TypeError"),
    ("ab", "TypeError"),
    (([9], {"q": 1}), "returned \"((9,), {'q': 1})\""),
    (((9,), None), "TypeError"),
    ({"a": 1, "b": 2}, "TypeError"),
    ((1, 2, 3), "ValueError: too many values to unpack (expected 2)"),
    (({"p": 1}, {}), "returned \"(('p',), {})\""),
]


@case([text.partition(":")[0] if text.startswith("T") and ":" not in text else text for _, text in ANSWERS])
def what_before_may_answer(b: Bench) -> Any:
    found = []
    for index, (answer, expected) in enumerate(ANSWERS):
        m = b.module(f"tm{index}", "def f(*args, **kwargs): return repr((args, kwargs))")
        b.patch((f"tm{index}.f", functools.partial(lambda answer, *a, **k: answer, answer), "BEFORE"))
        text = raised(m.f, 1)
        found.append(text.partition(":")[0] if ":" not in expected else text)
    return found


@case(["((7, 8), {})", "((7, 8), {})"])
def before_may_answer_a_generator_of_arguments(b: Bench) -> Any:
    m = shows(b)
    seen = []
    b.patch(
        ("tm.f", lambda result, *a, **k: seen.append(repr((a, k))), "AFTER"),
        ("tm.f", lambda *a, **k: ((n for n in (7, 8)), {}), "BEFORE"),
    )
    return [m.f(1), *seen]


@case([2, "TypeError"])
def before_gets_self_and_must_answer_it(b: Bench) -> Any:
    m = b.module("tm", C + "    def n(self, x=1): return x")
    b.patch(
        ("tm.C.m", lambda self, x: ((self, x + 1), {}), "BEFORE"),
        ("tm.C.n", lambda self, x: ((), {}), "BEFORE"),
    )
    return [m.C().m(1), kind_raised(m.C().n, 1)]


@case([1, 0, False, ""])
def after_cannot_answer_none_but_anything_else(b: Bench) -> Any:
    found = []
    for index, answer in enumerate((None, 0, False, "")):
        m = b.module(f"tm{index}", F)
        b.patch((f"tm{index}.f", functools.partial(lambda answer, result: answer, answer), "AFTER"))
        found.append(m.f())
    return found


@case(["KeyError", []])
def after_does_not_run_when_the_original_raises(b: Bench) -> Any:
    m = b.module("tm", "def f(): raise KeyError('k')")
    seen: list[int] = []
    b.patch(("tm.f", lambda result: seen.append(1), "AFTER"))
    return [kind_raised(m.f), seen]


@case(["ValueError: hook bug"] * 4)
def what_a_hook_raises_reaches_the_caller(b: Bench) -> Any:
    found = []

    def bug(*args: Any, **kwargs: Any) -> None:
        raise ValueError("hook bug")

    for kind in ("BEFORE", "AFTER", "AROUND", "REPLACE"):
        m = b.module("tm" + kind, F)
        b.patch((f"tm{kind}.f", bug, kind))
        found.append(raised(m.f))
    return found


@case([(10, 1), (10, 1), (99, 1), (99, 1)])
def each_hook_sees_the_arguments_as_those_outside_left_them(b: Bench) -> Any:
    """Registered A1 B1 A2 B2: B2 runs first; A2 sees what B2 left, A1 what B1 left after it."""
    m = b.module("tm", "def f(x, k=0): return (x, k)")
    seen: list[Any] = []
    b.patch(
        ("tm.f", lambda result, x, k=0: seen.append((x, k)), "AFTER"),
        ("tm.f", lambda x, k=0: ((99,), {"k": k}), "BEFORE"),
        ("tm.f", lambda result, x, k=0: seen.append((x, k)), "AFTER"),
        ("tm.f", lambda x, k=0: ((10,), {"k": k + 1}), "BEFORE"),
    )
    result = m.f(1)
    return [seen[1], seen[1], seen[0], result]


# -- special functions


@case(["(a, b=1)", "f", "doc", 1])
def a_wrapper_looks_like_its_original(b: Bench) -> Any:
    m = b.module("tm", "def f(a, b=1):\n    'doc'\n    return b")
    original = m.f
    b.patch(("tm.f", lambda *a: 1, "REPLACE"))
    return [str(inspect.signature(m.f)), m.f.__name__, m.f.__doc__, m.f(2) if m.f.__wrapped__ is original else None]


@case([1, ["coroutine"], False])
def after_gets_the_coroutine_of_an_async_function(b: Bench) -> Any:
    import asyncio

    m = b.module("tm", "async def f(): return 1")
    seen: list[str] = []
    b.patch(("tm.f", lambda result: seen.append(type(result).__name__), "AFTER"))
    return [asyncio.run(m.f()), seen, inspect.iscoroutinefunction(m.f)]


@case("TypeError: cannot unpack non-iterable coroutine object")
def an_async_before_is_no_before(b: Bench) -> Any:
    m = b.module("tm", "async def f(): return 1")
    made: list[Any] = []

    async def before() -> None:
        pass

    def spy() -> Any:
        made.append(before())
        return made[-1]

    b.patch(("tm.f", spy, "BEFORE"))
    text = raised(m.f)
    made[0].close()
    return text


@case([2, 2])
def async_after_and_around_work_when_they_await(b: Bench) -> Any:
    import asyncio

    m = b.module("tm", "async def f(): return 1\nasync def g(): return 1")

    async def after(result: Any) -> int:
        return await result + 1

    async def around(original: Any) -> int:
        return await original() + 1

    b.patch(("tm.f", after, "AFTER"), ("tm.g", around, "AROUND"))
    return [asyncio.run(m.f()), asyncio.run(m.g())]


@case([[1], ["generator"], False])
def after_gets_the_generator_before_it_runs(b: Bench) -> Any:
    m = b.module("tm", "def f(): yield 1")
    seen: list[str] = []
    b.patch(("tm.f", lambda result: seen.append(type(result).__name__), "AFTER"))
    return [list(m.f()), seen, inspect.isgeneratorfunction(m.f)]


@case([[1], ["async_generator"], False])
def after_gets_the_async_generator_before_it_runs(b: Bench) -> Any:
    import asyncio

    m = b.module("tm", "async def f(): yield 1")
    seen: list[str] = []
    b.patch(("tm.f", lambda result: seen.append(type(result).__name__), "AFTER"))

    async def collect() -> list[int]:
        return [item async for item in m.f()]

    return [asyncio.run(collect()), seen, inspect.isasyncgenfunction(m.f)]


@case([3, ["_GeneratorContextManager"]])
def after_gets_the_context_manager(b: Bench) -> Any:
    m = b.module("tm", "import contextlib\n@contextlib.contextmanager\ndef f(): yield 3")
    seen: list[str] = []
    b.patch(("tm.f", lambda result: seen.append(type(result).__name__), "AFTER"))
    with m.f() as value:
        return [value, seen]


@case(5)
def a_dataclass_post_init(b: Bench) -> Any:
    m = b.module("tm", "import dataclasses\n@dataclasses.dataclass\nclass C:\n    x: int = 1\n    def __post_init__(self): pass")
    b.patch(("tm.C.__post_init__", lambda result, self: setattr(self, "x", 5), "AFTER"))
    return m.C().x


@case([2, "TypeError: __init__() should return None, not 'int'", "TypeError: __init__() should return None, not 'C'"])
def an_init(b: Bench) -> Any:
    made = []
    for index, (function, kind) in enumerate(
        (
            (lambda result, self: setattr(self, "x", 2), "AFTER"),
            (lambda original, self: 1, "AROUND"),
            (lambda result, self: self, "AFTER"),
        )
    ):
        m = b.module(f"tm{index}", "class C:\n    def __init__(self): self.x = 1")
        b.patch((f"tm{index}.C.__init__", function, kind))
        made.append(raised(m.C) if index else m.C().x)
    return made


@case([3, "staticmethod"])
def special_methods(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def __len__(self): return 2\n    def __new__(cls): return object.__new__(cls)")
    b.patch(("tm.C.__len__", lambda result, self: result + 1, "AFTER"), ("tm.C.__new__", lambda result, cls: None, "AFTER"))
    return [len(m.C()), type(vars(m.C)["__new__"]).__name__]


@case("TypeError: object.__new__() takes exactly one argument (the type to instantiate)")
def an_inherited_new_breaks_construction(b: Bench) -> Any:
    m = b.module("tm", "class C:\n    def __init__(self, x): pass")
    b.patch(("tm.C.__new__", lambda result, *a: None, "AFTER"))
    return raised(m.C, 1)


@case("C")
def an_inherited_init(b: Bench) -> Any:
    m = b.module("tm", "class C: pass")
    b.patch(("tm.C.__init__", lambda result, self: None, "AFTER"))
    return type(m.C()).__name__


@case("TypeError")
def an_abstract_method_stays_abstract(b: Bench) -> Any:
    m = b.module("tm", "import abc\nclass C(abc.ABC):\n    @abc.abstractmethod\n    def m(self): pass")
    b.patch(("tm.C.m", lambda result, self: None, "AFTER"))
    return kind_raised(m.C)


@case(("h", ("deco", 1)))
def a_decorated_function_is_wrapped_outermost(b: Bench) -> Any:
    m = b.module(
        "tm",
        """
        import functools
        def deco(f):
            @functools.wraps(f)
            def inner(): return ('deco', f())
            return inner
        @deco
        def f(): return 1
        """,
    )
    b.patch(("tm.f", lambda original: ("h", original()), "AROUND"))
    return m.f()


@case(
    [1, 2],
    "ERROR Failed to apply hooks to tm.bad",
    "TargetError",
    real_logs=["ERROR Failed to apply hooks to tm.bad", "AttributeError"],
)
def a_failing_target_does_not_stop_the_others(b: Bench) -> Any:
    m = b.module("tm", "def a(): return 1\ndef c(): return 1")
    b.patch(("tm.bad", times(2), "AFTER"), ("tm.c", times(2), "AFTER"))
    return [m.a(), m.c()]


@case([1, 2])
def reset_forgets_without_taking_patches_back(b: Bench) -> Any:
    m = b.module("tm", "def f(): return 0")

    def more(result: int) -> int:
        return result + 1

    b.patch(("tm.f", more, "AFTER"))
    first = m.f()
    b.registry.reset()
    b.patch(("tm.f", more, "AFTER"))
    return [first, m.f()]


@case([None, ("here", None)])
def the_source_is_known_in_its_own_thread_only(b: Bench) -> Any:
    import threading

    b.module("tm", F)
    token = b.source.set(HookSource("here", None))
    try:
        thread = threading.Thread(target=b.hook, args=("tm.f", tag("A")))
        thread.start()
        thread.join()
        b.hook("tm.f", tag("B"))
    finally:
        b.source.reset(token)
    hooks = b.registry._hooks if hasattr(b.registry, "_hooks") else b.registry.hooks
    found = [hook[2] and tuple(hook[2]) for hook in hooks["tm.f"]]
    hooks.clear()
    return found


@case([1, 5])
def slots_and_frozen_classes(b: Bench) -> Any:
    m = b.module(
        "tm", "import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True)\nclass C:\n    x: int = 1\n    def m(self): return 0"
    )
    b.patch(("tm.C.m", lambda self: 5, "REPLACE"))
    return [m.C().x, m.C().m()]
