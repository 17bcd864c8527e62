"""What a dotted name is, told from source alone; each answer is what importing and `getattr` would give."""

from __future__ import annotations

import pytest

from sglang_plug.contract.model import Kind, Presence

MODULE = """
import os
import torch
from typing import TYPE_CHECKING, NamedTuple
from dataclasses import dataclass, field
import msgspec
import functools
import enum

if TYPE_CHECKING:
    from somewhere import OnlyTyped

CONSTANT = 3
annotated_only: int

def plain(a, b: int = 1, *, c, **rest) -> str: ...
async def coroutine(): ...
def generator():
    yield 1
async def async_generator():
    yield 1
def not_a_generator():
    def inner():
        yield 1
    return inner
@functools.lru_cache(maxsize=1)
def cached(): ...
alias = plain

if os.environ.get("X"):
    def maybe(): ...
if os.name == "nt":
    def either(a): ...
else:
    def either(a, b): ...
try:
    from fast import kernel
except ImportError:
    kernel = None
try:
    from other import needed
except ImportError:
    raise
for _i in (1, 2):
    pass
removed = 1
del removed
def sets_global():
    global later
    later = 1
if __name__ == "__main__":
    in_main = 1

class Base:
    inherited_value = 1
    def inherited(self): ...
    @classmethod
    def make(cls, x): ...
    @staticmethod
    def help(y): ...
    @property
    def name(self): ...
    @functools.cached_property
    def slow(self): ...

class Child(Base):
    def own(self, x): ...
    other_name = own
    @property
    def both(self): ...
    @both.setter
    def both(self, value): ...
    class Inner:
        def deep(self): ...

@dataclass
class Record:
    must: int
    default: int = 1
    made: list = field(default_factory=list)

class Struct(msgspec.Struct):
    must: int
    default: int = 1

class Pair(NamedTuple):
    left: int

class Net(torch.nn.Module):
    def forward(self, x): ...

class Strange(Unknown):
    pass

class Colour(enum.Enum):
    RED = 1

class Plain: ...
Plain.added = 1
for _cls in (Plain, Base):
    _cls.both_have = staticmethod(plain)
"""


@pytest.fixture
def one(release):
    return release(sglang__m=MODULE)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CONSTANT", Kind.ATTRIBUTE),
        ("plain", Kind.FUNCTION),
        ("alias", Kind.FUNCTION),
        ("os", Kind.EXTERNAL),
        ("torch", Kind.EXTERNAL),
        ("kernel", Kind.EXTERNAL),
        ("needed", Kind.EXTERNAL),
        ("either", Kind.FUNCTION),
        ("Base", Kind.CLASS),
        ("Base.inherited", Kind.METHOD),
        ("Base.make", Kind.CLASSMETHOD),
        ("Base.help", Kind.STATICMETHOD),
        ("Base.name", Kind.PROPERTY),
        ("Base.slow", Kind.PROPERTY),
        ("Base.inherited_value", Kind.ATTRIBUTE),
        ("Child.inherited", Kind.METHOD),
        ("Child.other_name", Kind.METHOD),
        ("Child.both", Kind.PROPERTY),
        ("Child.Inner", Kind.CLASS),
        ("Child.Inner.deep", Kind.METHOD),
        ("Record.must", Kind.FIELD),
        ("Record.made", Kind.FIELD),
        ("Record.default", Kind.ATTRIBUTE),
        ("Record.__init__", Kind.METHOD),
        ("Struct.must", Kind.ATTRIBUTE),
        ("Struct.default", Kind.ATTRIBUTE),
        ("Pair.left", Kind.ATTRIBUTE),
        ("Pair._replace", Kind.EXTERNAL),
        ("Net.forward", Kind.METHOD),
        ("Net.register_buffer", Kind.EXTERNAL),
        ("Strange.anything", Kind.UNKNOWN),
        ("Colour.RED", Kind.ATTRIBUTE),
        ("Colour.__members__", Kind.EXTERNAL),
        ("Plain.added", Kind.ATTRIBUTE),
        ("Plain.__init__", Kind.EXTERNAL),
        ("Plain.__name__", Kind.ATTRIBUTE),
        ("Base.both_have", Kind.STATICMETHOD),
        ("__name__", Kind.ATTRIBUTE),
        ("plain.__wrapped__", None),
        ("plain.__code__", Kind.ATTRIBUTE),
        ("cached.cache_clear", Kind.UNKNOWN),
        ("annotated_only", None),
        ("OnlyTyped", None),
        ("removed", None),
        ("in_main", None),
        ("Base.missing", None),
        ("Child.__initt__", None),
        ("Child.__orig_bases__", Kind.UNKNOWN),
        ("Net.__cal__", None),
        ("cached.__codde__", None),
        ("cached.__wrapped__", Kind.UNKNOWN),
        ("Net.missing", None),
        ("missing", None),
        ("missing.deeper", None),
    ],
)
def test_kinds(one, name, kind):
    found = one.find(f"sglang.m.{name}")
    assert (found and found.kind) == kind


def test_colon_and_dot_are_one(one):
    assert one.find("sglang.m:Base.make").kind is Kind.CLASSMETHOD


@pytest.mark.parametrize(
    ("name", "presence", "varies"),
    [
        ("maybe", Presence.MAYBE, False),
        ("later", Presence.MAYBE, False),
        ("either", Presence.SURE, True),
        ("kernel", Presence.SURE, True),
        ("needed", Presence.SURE, False),
        ("plain", Presence.SURE, False),
    ],
)
def test_conditions(one, name, presence, varies):
    found = one.find(f"sglang.m.{name}")
    assert (found.presence, found.varies) == (presence, varies)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("coroutine", "async function"),
        ("generator", "generator function"),
        ("async_generator", "async generator function"),
        ("not_a_generator", "function"),
    ],
)
def test_labels(one, name, label):
    assert one.find(f"sglang.m.{name}").label == label


def test_signatures(one):
    found = one.find("sglang.m.plain")
    assert found.signature == "(a, b: int = 1, *, c, **rest) -> str"
    assert [(p.name, p.kind, p.required) for p in found.parameters] == [
        ("a", "positional", True), ("b", "positional", False), ("c", "keyword-only", True), ("rest", "var-keyword", False),
    ]  # fmt: skip
    assert one.find("sglang.m.cached").decorators == ("functools.lru_cache(…)",)


def test_inheritance_is_told(one):
    found = one.find("sglang.m.Child.make")
    assert (found.inherited, found.origin) == (True, "sglang.m.Base.make")
    assert not one.find("sglang.m.Base.make").inherited


def test_the_resolution_order_decides(release):
    source = "class A:\n    def m(self, a): ...\nclass B(A): ...\nclass C(A):\n    def m(self, c): ...\nclass D(B, C): ...\n"
    assert release(sglang__m=source).find("sglang.m.D.m").origin == "sglang.m.C.m"


REEXPORTS = {
    "sglang__a": "from sglang.b import f, f as g\nfrom sglang.c import *\nfrom sglang.d import *\nfrom . import b as module\n",
    "sglang__b": "def f(): ...\n",
    "sglang__c": "__all__ = ['shown']\nshown = 1\nhidden = 2\n",
    "sglang__d": "shown_too = 1\n_private = 2\nimport os\n",
}


@pytest.mark.parametrize(
    ("name", "there"),
    [("f", True), ("g", True), ("shown", True), ("hidden", False), ("shown_too", True), ("_private", False), ("os", True)],
)
def test_reexports_and_stars(release, name, there):
    assert (release(**REEXPORTS).find(f"sglang.a.{name}") is not None) is there


def test_reexports_lead_to_their_origin(release):
    one = release(**REEXPORTS)
    assert one.find("sglang.a.g").origin == "sglang.b.f"
    assert one.find("sglang.a.module.f").origin == "sglang.b.f"


COMPUTED = """
A = {"old": "new"}
def old(): ...
def kept(): ...
_private = 1
__all__ = [n for n in list(globals()) if not n.startswith("_") and n not in A]
"""


def test_a_computed_all(release):
    one = release(sglang__a="from sglang.b import *", sglang__b=COMPUTED)
    assert one.find("sglang.a.kept") is not None
    assert one.find("sglang.a.old") is None
    assert one.find("sglang.b.old") is not None


@pytest.mark.parametrize(
    "exports",
    [
        "__all__ = ['x'] + ['y']",
        "__all__ = ['x']\n__all__ += ['y']",
        "__all__ = ['x']\n__all__.extend(['y'])",
        "_T = {'x': 1, 'y': 2}\n__all__ = sorted(_T)",
    ],
)
def test_an_all_in_parts(release, exports):
    one = release(sglang__a="from sglang.b import *", sglang__b=f"x = y = z = 1\n{exports}\n")
    assert [one.find(f"sglang.a.{name}") is not None for name in "xyz"] == [True, True, False]


def test_an_all_that_cannot_be_known(release):
    one = release(sglang__a="from sglang.b import *", sglang__b="import os\nx = 1\n__all__ = os.environ['X'].split()\n")
    assert one.find("sglang.a.x").kind is Kind.UNKNOWN
    assert one.find("sglang.a.nope") is None


LAZY = """
_TABLE = {"Thing": "sglang.b", "Other": ("sglang.b", "thing")}
def __getattr__(name):
    if name == "special":
        return 1
    if name in _TABLE:
        ...
    raise AttributeError(name)
"""


def test_lazy_attributes(release):
    one = release(sglang__a=LAZY, sglang__b="class Thing: ...\ndef thing(): ...\n")
    assert one.find("sglang.a.Thing").origin == "sglang.b.Thing"
    assert one.find("sglang.a.Other").origin == "sglang.b.thing"
    assert one.find("sglang.a.special") is not None
    assert one.find("sglang.a.nope") is None


def test_an_open_getattr_may_answer_anything(release):
    one = release(sglang__a="import sglang.b as b\ndef __getattr__(name):\n    return getattr(b, name)\n", sglang__b="")
    assert one.find("sglang.a.whatever").kind is Kind.UNKNOWN


def test_a_table_that_takes_unknown_keys_is_open(release):
    text = "T = {'x': 1}\nfor k in load():\n    T[k] = 1\ndef __getattr__(name):\n    if name in T:\n        return T[name]\n    raise AttributeError\n"  # noqa: E501 - a row of a table
    assert release(sglang__a=text).find("sglang.a.whatever").kind is Kind.UNKNOWN


def test_names_written_through_globals(release):
    one = release(sglang__a="for _n in ('x', 'y'):\n    globals()[_n] = 1\n", sglang__b="for n in load():\n    globals()[n] = 1\n")
    assert one.find("sglang.a.x").kind is Kind.ATTRIBUTE
    assert one.find("sglang.a.z") is None
    assert one.find("sglang.b.z").kind is Kind.UNKNOWN


def test_a_record_made_of_a_class(release):
    text = """
    import msgspec
    class Memory:
        pages: int = 1
    class Args:
        def resolve(self): ...
    _SOURCES = [Memory]
    Args.sources = _SOURCES
    Args = msgspec.defstruct("Args", [], namespace=dict(vars(Args)))
    """
    one = release(sglang__m=text)
    assert one.find("sglang.m.Args.resolve").kind is Kind.METHOD
    assert one.find("sglang.m.Args.pages").kind is Kind.ATTRIBUTE
    assert one.find("sglang.m.Args.nope") is None
    assert "msgspec.Struct" in one.lookup.linearize("sglang.m.Args")


def test_an_attribute_may_hide_a_submodule(release):
    one = release(sglang__p="from sglang.p.f import f\n", sglang__p__f="def f(): ...\n")
    assert one.find("sglang.p.f").kind is Kind.FUNCTION
    assert one.find("sglang.p.f.f").origin == "sglang.p.f.f"


def test_a_circle_of_reexports_ends(release):
    one = release(sglang__a="from sglang.b import x\n", sglang__b="from sglang.a import x\n")
    assert one.find("sglang.a.x").kind is Kind.UNKNOWN


def test_a_module_that_no_parser_reads_is_open(release):
    assert release(sglang__bad="def (:\n").find("sglang.bad.x").kind is Kind.UNKNOWN


def test_near_and_children(release):
    one = release(sglang__a="class C:\n    def run(self): ...\n    def walk(self): ...\n", sglang__b="def moved(): ...\n", sglang__old="")
    assert one.near("sglang.a.C.runn") == ("sglang.a.C.run",)
    assert one.near("sglang.old.moved") == ("sglang.b.moved",)
    assert one.near("sglang.olds") == ("sglang.old",)
    assert [symbol.name for symbol in one.children("sglang.a.C")] == ["sglang.a.C.run", "sglang.a.C.walk"]
    assert [symbol.name for symbol in one.children("sglang")] == ["sglang.a", "sglang.b", "sglang.old"]
    assert one.children("sglang.nope") == ()


def test_private_names_are_mangled(release):
    one = release(sglang__m="class _C:\n    def __hidden(self): ...\n    def __dunder__(self): ...\n")
    assert one.find("sglang.m._C._C__hidden").kind is Kind.METHOD
    assert one.find("sglang.m._C.__dunder__").kind is Kind.METHOD


def test_a_class_that_gets_computed_names_is_open(release):
    text = "class C:\n    def m(self): ...\nclass D: ...\ndef install():\n    for n in load():\n        setattr(C, n, 1)\n"
    one = release(sglang__m=text)
    assert one.find("sglang.m.C.m").kind is Kind.METHOD
    assert one.find("sglang.m.C.other").kind is Kind.UNKNOWN
    assert one.find("sglang.m.D.other") is None
