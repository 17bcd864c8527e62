"""Every way of registering a hook that can be read, with a target that is there and one that is not; and what must stay silent."""

from __future__ import annotations

import pytest

from sglang_plug.checks.source.run import check

HEAD = """\
from sglang.srt.plugins.hook_registry import HookRegistry, HookType, plugin_hook
def hook(original, *a, **k):
    return original(*a, **k)
"""
OWNER, THERE, GONE = "sglang.srt.managers.scheduler.Scheduler", "run_batch", "runs_batch"

# In each form `$T` is the whole target, `$M` its class, `$N` its last name; further modules come by name.
FORMS = {
    "plain": (
        """\
HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "kw": (
        """\
HookRegistry.register(target="$T", hook=hook, hook_type=HookType.AROUND)
""",
        {},
    ),
    "deco": (
        """\
@plugin_hook("$T", type=HookType.AROUND)
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "wrapper": (
        """\
def add(t, f=hook):
    HookRegistry.register(t, f, HookType.AROUND)
add("$T")
""",
        {},
    ),
    "wrapper kw": (
        """\
def add(*, target, fn):
    HookRegistry.register(target, fn, HookType.AROUND)
add(target="$T", fn=hook)
""",
        {},
    ),
    "wrapper2": (
        """\
def add(t):
    _add(t, hook)
def _add(t, f):
    HookRegistry.register(t, f, HookType.AROUND)
def register():
    add("$T")
""",
        {},
    ),
    "wrapper prefix": (
        """\
P="$M"
def add(n):
    HookRegistry.register(f"{P}.{n}", hook, HookType.AROUND)
add("$N")
""",
        {},
    ),
    "wrapper *args": (
        """\
def add(*a, **k):
    HookRegistry.register(*a, **k)
add("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "wrapper **k": (
        """\
def add(t, **k):
    HookRegistry.register(t, hook, **k)
add("$T", hook_type=HookType.AROUND)
""",
        {},
    ),
    "own deco": (
        """\
def my_hook(t):
    def deco(fn):
        HookRegistry.register(t, fn, HookType.AROUND)
        return fn
    return deco
@my_hook("$T")
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "own deco of plugin_hook": (
        """\
def around(t):
    return plugin_hook(t, type=HookType.AROUND)
@around("$T")
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "own deco nested const": (
        """\
def sched(n):
    return plugin_hook("$M." + n, type=HookType.AROUND)
@sched("$N")
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "partial": (
        """\
import functools
reg = functools.partial(HookRegistry.register, hook_type=HookType.AROUND)
reg("$T", hook)
""",
        {},
    ),
    "partial in fn": (
        """\
from functools import partial
def register():
    reg = partial(HookRegistry.register, hook=hook, hook_type=HookType.AROUND)
    reg("$T")
""",
        {},
    ),
    "partial target": (
        """\
from functools import partial
reg = partial(HookRegistry.register, "$T")
reg(hook, HookType.AROUND)
""",
        {},
    ),
    "partial deco": (
        """\
from functools import partial
around = partial(plugin_hook, type=HookType.AROUND)
@around("$T")
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "lambda": (
        """\
reg = lambda t: HookRegistry.register(t, hook, HookType.AROUND)
reg("$T")
""",
        {},
    ),
    "alias class": (
        """\
R = HookRegistry
R.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "alias import": (
        """\
from sglang.srt.plugins.hook_registry import HookRegistry as HR
HR.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "alias register": (
        """\
register_hook = HookRegistry.register
register_hook("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "alias deco": (
        """\
ph = plugin_hook
@ph("$T", type=HookType.AROUND)
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "getattr register": (
        """\
getattr(HookRegistry, "register")("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "module alias": (
        """\
import sglang.srt.plugins.hook_registry as hr
hr.HookRegistry.register("$T", hook, hr.HookType.AROUND)
""",
        {},
    ),
    "module attr deco": (
        """\
import sglang.srt.plugins.hook_registry as hr
@hr.plugin_hook("$T", type=hr.HookType.AROUND)
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "from plugins import": (
        """\
from sglang.srt.plugins import hook_registry
hook_registry.HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "import in fn": (
        """\
def register():
    from sglang.srt.plugins.hook_registry import HookRegistry as H, HookType as T
    H.register("$T", hook, T.AROUND)
""",
        {},
    ),
    "deco called on fn": (
        """\
plugin_hook("$T", type=HookType.AROUND)(hook)
""",
        {},
    ),
    "deco list": (
        """\
for t in ("$T",):
    plugin_hook(t, type=HookType.AROUND)(hook)
""",
        {},
    ),
    "fstring const": (
        """\
C="Scheduler"
HookRegistry.register(f"sglang.srt.managers.scheduler.{C}.$N", hook, HookType.AROUND)
""",
        {},
    ),
    "concat": (
        """\
HookRegistry.register("$M" + "." + "$N", hook, HookType.AROUND)
""",
        {},
    ),
    "join": (
        """\
HookRegistry.register(".".join(["$M", "$N"]), hook, HookType.AROUND)
""",
        {},
    ),
    "join tuple const": (
        """\
PARTS=("sglang","srt","managers","scheduler","Scheduler")
HookRegistry.register(".".join((*PARTS, "$N")), hook, HookType.AROUND)
""",
        {},
    ),
    "percent": (
        """\
HookRegistry.register("%s.%s" % ("$M", "$N"), hook, HookType.AROUND)
""",
        {},
    ),
    "format": (
        """\
HookRegistry.register("{}.{}".format("$M", "$N"), hook, HookType.AROUND)
""",
        {},
    ),
    "format kw": (
        """\
FMT="{cls}.{m}"
HookRegistry.register(FMT.format(cls="$M", m="$N"), hook, HookType.AROUND)
""",
        {},
    ),
    "replace": (
        """\
HookRegistry.register("$M.XX".replace("XX", "$N"), hook, HookType.AROUND)
""",
        {},
    ),
    "dict items": (
        """\
T={"$T": hook}
for t, f in T.items():
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "dict iter": (
        """\
T={"$T": hook}
for t in T:
    HookRegistry.register(t, T[t], HookType.AROUND)
""",
        {},
    ),
    "dict index": (
        """\
T={"a": "$T"}
HookRegistry.register(T["a"], hook, HookType.AROUND)
""",
        {},
    ),
    "dict get": (
        """\
T={"a": "$T"}
HookRegistry.register(T.get("a"), hook, HookType.AROUND)
""",
        {},
    ),
    "dict values rows": (
        """\
T={"a": ("$T", hook)}
for t, f in T.values():
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "nested dict": (
        """\
T={"$M": {"$N": hook}}
for c, ms in T.items():
    for m, f in ms.items():
        HookRegistry.register(f"{c}.{m}", f, HookType.AROUND)
""",
        {},
    ),
    "list dicts": (
        """\
T=[{"target": "$T", "hook": hook, "hook_type": HookType.AROUND}]
for row in T:
    HookRegistry.register(**row)
""",
        {},
    ),
    "list dicts idx": (
        """\
T=[{"target": "$T", "hook": hook}]
for row in T:
    HookRegistry.register(row["target"], row["hook"], HookType.AROUND)
""",
        {},
    ),
    "row index": (
        """\
T=[("$T", hook)]
for row in T:
    HookRegistry.register(row[0], row[1], HookType.AROUND)
""",
        {},
    ),
    "enumerate": (
        """\
T=["$T"]
for i, t in enumerate(T):
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "zip": (
        """\
for t, f in zip(["$T"], [hook]):
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "range index": (
        """\
T=["$T"]
for i in range(len(T)):
    HookRegistry.register(T[i], hook, HookType.AROUND)
""",
        {},
    ),
    "star row": (
        """\
T=[("$T", hook, HookType.AROUND)]
for row in T:
    HookRegistry.register(*row)
""",
        {},
    ),
    "compr": (
        """\
[HookRegistry.register(t, hook, HookType.AROUND) for t in ["$T"]]
""",
        {},
    ),
    "compr table": (
        """\
T=["$M." + n for n in ["$N"]]
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "itertools product": (
        """\
import itertools
for c, n in itertools.product(["$M"], ["$N"]):
    HookRegistry.register(f"{c}.{n}", hook, HookType.AROUND)
""",
        {},
    ),
    "itertools chain": (
        """\
from itertools import chain
for t in chain(["$T"], []):
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "sorted": (
        """\
for t in sorted({"$T"}):
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "append": (
        """\
T=[]
T.append("$T")
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "augadd": (
        """\
T=[]
T += ["$T"]
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "augstr": (
        """\
def register():
    t = "$M"
    t += ".$N"
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "dict setitem": (
        """\
T={}
T["$T"]=hook
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "dict update": (
        """\
T={}
T.update({"$T": hook})
for t, f in T.items():
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "const other module": (
        """\
from .consts import TARGET
HookRegistry.register(TARGET, hook, HookType.AROUND)
""",
        {"consts": 'TARGET="$T"'},
    ),
    "const module attr": (
        """\
from . import consts2
HookRegistry.register(consts2.TARGET, hook, HookType.AROUND)
""",
        {"consts2": 'TARGET="$T"'},
    ),
    "table other module": (
        """\
from .consts3 import TABLE
for t in TABLE:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {"consts3": 'P="$M"\nTABLE=[f"{P}.$N"]'},
    ),
    "star import const": (
        """\
from .consts4 import *
HookRegistry.register(TARGET4, hook, HookType.AROUND)
""",
        {"consts4": 'TARGET4="$T"'},
    ),
    "reexport const": (
        """\
from .c5b import TARGET5
HookRegistry.register(TARGET5, hook, HookType.AROUND)
""",
        {"c5b": "from .c5a import T5 as TARGET5", "c5a": 'T5="$T"'},
    ),
    "class attr": (
        """\
class C:
    T="$T"
HookRegistry.register(C.T, hook, HookType.AROUND)
""",
        {},
    ),
    "class attr self": (
        """\
class C:
    T="$T"
    def go(self):
        HookRegistry.register(self.T, hook, HookType.AROUND)
C().go()
""",
        {},
    ),
    "class attr cls": (
        """\
class C:
    T="$T"
    @classmethod
    def go(cls):
        HookRegistry.register(cls.T, hook, HookType.AROUND)
C.go()
""",
        {},
    ),
    "class attr base": (
        """\
class Base:
    T=None
    def go(self):
        HookRegistry.register(self.T, hook, HookType.AROUND)
class C(Base):
    T="$T"
C().go()
""",
        {},
    ),
    "self init": (
        """\
class C:
    def __init__(self):
        self.t="$T"
    def go(self):
        HookRegistry.register(self.t, hook, HookType.AROUND)
C().go()
""",
        {},
    ),
    "init param": (
        """\
class C:
    def __init__(self, t):
        self.t=t
    def go(self):
        HookRegistry.register(self.t, hook, HookType.AROUND)
C("$T").go()
""",
        {},
    ),
    "enum": (
        """\
import enum
class T(str, enum.Enum):
    A="$T"
HookRegistry.register(T.A.value, hook, HookType.AROUND)
""",
        {},
    ),
    "enum loop": (
        """\
import enum
class T(enum.Enum):
    A="$T"
for t in T:
    HookRegistry.register(t.value, hook, HookType.AROUND)
""",
        {},
    ),
    "dataclass rows": (
        """\
from dataclasses import dataclass
@dataclass
class Spec:
    target: str
    fn: object
S=[Spec("$T", hook)]
for s in S:
    HookRegistry.register(s.target, s.fn, HookType.AROUND)
""",
        {},
    ),
    "dataclass rows kw": (
        """\
from dataclasses import dataclass
@dataclass(frozen=True)
class Spec:
    target: str
    fn: object = None
S=(Spec(target="$T", fn=hook),)
for s in S:
    HookRegistry.register(s.target, s.fn, HookType.AROUND)
""",
        {},
    ),
    "namedtuple rows": (
        """\
from typing import NamedTuple
class Spec(NamedTuple):
    target: str
    fn: object
for s in [Spec("$T", hook)]:
    HookRegistry.register(s.target, s.fn, HookType.AROUND)
""",
        {},
    ),
    "namedtuple unpack": (
        """\
from collections import namedtuple
Spec = namedtuple("Spec", "target fn")
for t, f in [Spec("$T", hook)]:
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "default arg": (
        """\
def register(t="$T"):
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "ternary": (
        """\
FLAG=True
t = "$T" if FLAG else "$T"
HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "or": (
        """\
t = None or "$T"
HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "annotated": (
        """\
T: str = "$T"
HookRegistry.register(T, hook, HookType.AROUND)
""",
        {},
    ),
    "final": (
        """\
from typing import Final
T: Final[str] = "$T"
HookRegistry.register(T, hook, HookType.AROUND)
""",
        {},
    ),
    "tuple assign": (
        """\
A, T = 1, "$T"
HookRegistry.register(T, hook, HookType.AROUND)
""",
        {},
    ),
    "chained assign": (
        """\
A = T = "$T"
HookRegistry.register(T, hook, HookType.AROUND)
""",
        {},
    ),
    "global": (
        """\
T = None
def setup():
    global T
    T = "$T"
def register():
    HookRegistry.register(T, hook, HookType.AROUND)
""",
        {},
    ),
    "local function const": (
        """\
def register():
    base = "sglang.srt.managers"
    mod = base + ".scheduler"
    HookRegistry.register(mod + ".Scheduler.$N", hook, HookType.AROUND)
""",
        {},
    ),
    "returned const": (
        """\
def target():
    return "$T"
HookRegistry.register(target(), hook, HookType.AROUND)
""",
        {},
    ),
    "returned fstring": (
        """\
def sched(n):
    return f"$M.{n}"
HookRegistry.register(sched("$N"), hook, HookType.AROUND)
""",
        {},
    ),
    "returned table": (
        """\
def table():
    return [("$T", hook)]
for t, f in table():
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "yielded table": (
        """\
def table():
    yield "$T", hook
for t, f in table():
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "module+qualname": (
        """\
from sglang.srt.managers.scheduler import Scheduler
HookRegistry.register(f"{Scheduler.__module__}.{Scheduler.__qualname__}.$N", hook, HookType.AROUND)
""",
        {},
    ),
    "module __name__": (
        """\
import sglang.srt.managers.scheduler as s
HookRegistry.register(s.__name__ + ".Scheduler.$N", hook, HookType.AROUND)
""",
        {},
    ),
    "with": (
        """\
import contextlib
with contextlib.nullcontext():
    HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "async def": (
        """\
async def register():
    HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "match": (
        """\
import sys
match sys.platform:
    case "linux":
        HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "map": (
        """\
list(map(lambda t: HookRegistry.register(t, hook, HookType.AROUND), ["$T"]))
""",
        {},
    ),
    "nested function": (
        """\
def register():
    def inner(t):
        HookRegistry.register(t, hook, HookType.AROUND)
    inner("$T")
""",
        {},
    ),
    "method wrapper": (
        """\
class P:
    def add(self, t):
        HookRegistry.register(t, hook, HookType.AROUND)
    def go(self):
        self.add("$T")
""",
        {},
    ),
    "static wrapper": (
        """\
class P:
    @staticmethod
    def add(t):
        HookRegistry.register(t, hook, HookType.AROUND)
P.add("$T")
""",
        {},
    ),
    "instance wrapper": (
        """\
class P:
    def add(self, t):
        HookRegistry.register(t, hook, HookType.AROUND)
p = P()
p.add("$T")
""",
        {},
    ),
    "wrapper other module": (
        """\
from .reg6 import add
add("$T", hook)
""",
        {"reg6": HEAD + "def add(t, f):\n    HookRegistry.register(t, f, HookType.AROUND)\n"},
    ),
    "deco other module": (
        """\
from .reg7 import around
@around("$T")
def f(original,*a,**k): return original(*a,**k)
""",
        {
            "reg7": HEAD + "def around(t):\n    def deco(fn):\n        HookRegistry.register(t, fn, HookType.AROUND)\n"
            "        return fn\n    return deco\n"
        },
    ),
    "registry reexport": (
        """\
from .reg8 import HookRegistry as HH
HH.register("$T", hook, HookType.AROUND)
""",
        {"reg8": HEAD},
    ),
    "registry lazily": (
        """\
def registry():
    from sglang.srt.plugins.hook_registry import HookRegistry
    return HookRegistry
registry().register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "importlib": (
        """\
import importlib
m = importlib.import_module("sglang.srt.plugins.hook_registry")
m.HookRegistry.register("$T", hook, m.HookType.AROUND)
""",
        {},
    ),
    "try import": (
        """\
try:
    from sglang.srt.plugins.hook_registry import HookRegistry as Q
except ImportError:
    Q = None
if Q is not None:
    Q.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "version yes": (
        """\
import sglang
from packaging.version import Version
if Version(sglang.__version__) >= Version("0.5.17"):
    HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "try/finally": (
        """\
try:
    HookRegistry.register("$T", hook, HookType.AROUND)
finally:
    pass
""",
        {},
    ),
    "try except log": (
        """\
import logging
try:
    HookRegistry.register("$T", hook, HookType.AROUND)
except Exception:
    logging.exception("x")
""",
        {},
    ),
    "pathlib-like": (
        """\
SEP="."
HookRegistry.register(SEP.join(("$M", "$N")), hook, HookType.AROUND)
""",
        {},
    ),
    "bytes decode skip": (
        """\
T = "$T"; T2 = str(T)
HookRegistry.register(T2, hook, HookType.AROUND)
""",
        {},
    ),
    "colon": (
        """\
HookRegistry.register("sglang.srt.managers.scheduler:Scheduler.$N", hook, HookType.AROUND)
""",
        {},
    ),
    "multi deco": (
        """\
@plugin_hook("$T", type=HookType.AROUND)
@plugin_hook("sglang.srt.managers.scheduler.Scheduler.process_batch_result", type=HookType.AROUND)
def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "nested deco in fn": (
        """\
def register():
    @plugin_hook("$T", type=HookType.AROUND)
    def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "deco in class": (
        """\
class Hooks:
    @staticmethod
    @plugin_hook("$T", type=HookType.AROUND)
    def f(original,*a,**k): return original(*a,**k)
""",
        {},
    ),
    "slots setattr table": (
        """\
TARGETS = tuple("$M.%s" % n for n in ("$N",))
for t in TARGETS:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "dict comp": (
        """\
T = {n: "$M." + n for n in ("$N",)}
for n, t in T.items():
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "split const": (
        """\
for n in "$N".split():
    HookRegistry.register("$M." + n, hook, HookType.AROUND)
""",
        {},
    ),
    "multi-line split": (
        """\
NAMES = \"\"\"
  $N
\"\"\"
for n in NAMES.split():
    HookRegistry.register(f"$M.{n}", hook, HookType.AROUND)
""",
        {},
    ),
    "MappingProxy": (
        """\
from types import MappingProxyType
T = MappingProxyType({"$T": hook})
for t, f in T.items():
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "SimpleNamespace": (
        """\
from types import SimpleNamespace
T = SimpleNamespace(a="$T")
HookRegistry.register(T.a, hook, HookType.AROUND)
""",
        {},
    ),
    "functools.partial map": (
        """\
from functools import partial
add = partial(HookRegistry.register, hook=hook, hook_type=HookType.AROUND)
for t in ["$T"]:
    add(t)
""",
        {},
    ),
    "registry param": (
        """\
def setup(reg, kind):
    reg.register("$T", hook, kind.AROUND)
setup(HookRegistry, HookType)
""",
        {},
    ),
    "registry self": (
        """\
class P:
    def __init__(self):
        self.registry = HookRegistry
    def go(self):
        self.registry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "default dict table": (
        """\
from collections import OrderedDict
T = OrderedDict([("$T", hook)])
for t, f in T.items():
    HookRegistry.register(t, f, HookType.AROUND)
""",
        {},
    ),
    "list plus": (
        """\
A=["$T"]
B=A+[]
for t in B:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "list unpack": (
        """\
A=["$T"]
for t in [*A]:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "filter in loop": (
        """\
for t in ["$T", ""]:
    if not t:
        continue
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "inner var": (
        """\
for n in ["$N"]:
    target = f"$M.{n}"
    HookRegistry.register(target, hook, HookType.AROUND)
""",
        {},
    ),
    "inner var wrapper": (
        """\
def add(cls, n):
    target = f"{cls}.{n}"
    HookRegistry.register(target, hook, HookType.AROUND)
add("$M","$N")
""",
        {},
    ),
    "inner var with split": (
        """\
def add(path):
    target = path.replace("/", ".")
    HookRegistry.register(target, hook, HookType.AROUND)
add("sglang/srt/managers/scheduler/Scheduler/$N")
""",
        {},
    ),
    "rpartition": (
        """\
def add(path):
    m, _, n = path.rpartition(":")
    HookRegistry.register(m + "." + n, hook, HookType.AROUND)
add("$M:$N")
""",
        {},
    ),
    "classes in loop": (
        """\
class A:
    target="$T"
    @staticmethod
    def hook(original,*a,**k): return original(*a,**k)
for cls in (A,):
    HookRegistry.register(cls.target, cls.hook, HookType.AROUND)
""",
        {},
    ),
    "deferred decorator": (
        """\
_HOOKS=[]
def on(target, kind=HookType.AROUND):
    def deco(fn):
        _HOOKS.append((target, fn, kind))
        return fn
    return deco
@on("$T")
def f(original,*a,**k): return original(*a,**k)
def register():
    for t, fn, kind in _HOOKS:
        HookRegistry.register(t, fn, kind)
""",
        {},
    ),
    "deferred dict": (
        """\
_HOOKS={}
def on(target):
    def deco(fn):
        _HOOKS[target]=fn
        return fn
    return deco
@on("$T")
def f(original,*a,**k): return original(*a,**k)
def register():
    for t, fn in _HOOKS.items():
        HookRegistry.register(t, fn, HookType.AROUND)
""",
        {},
    ),
    "spec dict": (
        """\
SPECS={"a": {"target": "$T", "fn": hook}}
for n, s in SPECS.items():
    HookRegistry.register(s["target"], s["fn"], HookType.AROUND)
""",
        {},
    ),
    "spec get": (
        """\
SPECS=[dict(target="$T", fn=hook)]
for s in SPECS:
    HookRegistry.register(s["target"], s["fn"], HookType.AROUND)
""",
        {},
    ),
    "dataclass default": (
        """\
from dataclasses import dataclass, field
@dataclass
class S:
    fn: object
    target: str = "$T"
for s in [S(hook)]:
    HookRegistry.register(s.target, s.fn, HookType.AROUND)
""",
        {},
    ),
    "dataclass property": (
        """\
from dataclasses import dataclass
@dataclass
class S:
    cls: str
    name: str
    @property
    def target(self): return f"{self.cls}.{self.name}"
for s in [S("$M","$N")]:
    HookRegistry.register(s.target, hook, HookType.AROUND)
""",
        {},
    ),
    "dataclass method": (
        """\
class S:
    def __init__(self, cls, name):
        self.cls=cls; self.name=name
    def path(self): return f"{self.cls}.{self.name}"
HookRegistry.register(S("$M","$N").path(), hook, HookType.AROUND)
""",
        {},
    ),
    "self registers": (
        """\
class S:
    def __init__(self, cls, name):
        self.cls=cls; self.name=name
    def path(self): return f"{self.cls}.{self.name}"
    def install(self):
        HookRegistry.register(self.path(), hook, HookType.AROUND)
s=S("$M","$N")
s.install()
""",
        {},
    ),
    "list of objects install": (
        """\
class S:
    def __init__(self, t): self.t=t
    def install(self):
        HookRegistry.register(self.t, hook, HookType.AROUND)
for s in [S("$T")]:
    s.install()
""",
        {},
    ),
    "kwonly default": (
        """\
def add(fn, *, target="$T"):
    HookRegistry.register(target, fn, HookType.AROUND)
add(hook)
""",
        {},
    ),
    "try fallback registry": (
        """\
try:
    from sglang.srt.plugins.hook_registry import HookRegistry as R
except ImportError:
    R = None
def register():
    if R is None:
        return
    R.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "json-like const": (
        """\
import json
T = json.loads('["$T"]')
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "textwrap": (
        """\
import textwrap
for line in textwrap.dedent(\"\"\"
    $T
    \"\"\").strip().splitlines():
    HookRegistry.register(line, hook, HookType.AROUND)
""",
        {},
    ),
    "__all__-like": (
        """\
MODULE = "sglang.srt.managers.scheduler"
CLASS = f"{MODULE}.Scheduler"
METHODS = frozenset(["$N"])
def register():
    for m in METHODS:
        HookRegistry.register(CLASS + "." + m, hook, HookType.AROUND)
""",
        {},
    ),
    "dict of lists": (
        """\
T = {"$M": ["$N"]}
for c in T:
    for m in T[c]:
        HookRegistry.register(f"{c}.{m}", hook, HookType.AROUND)
""",
        {},
    ),
    "dict merge": (
        """\
A={"$T": hook}
B={**A}
C=A | {}
for t in {**B, **C}:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "tuple add": (
        """\
A=("$T",)
for t in A + ():
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "reversed": (
        """\
for t in reversed(["$T"]):
    HookRegistry.register(t, hook, HookType.AROUND)
""",
        {},
    ),
    "in with suppress": (
        """\
import contextlib
with contextlib.suppress(ImportError):
    HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "class body": (
        """\
class P:
    HookRegistry.register("$T", hook, HookType.AROUND)
""",
        {},
    ),
    "fstring debug": (
        """\
n="$N"
HookRegistry.register(f"$M.{n!s}", hook, HookType.AROUND)
""",
        {},
    ),
}

SILENT = {
    "remove": """\
T=["$G","$B"]
T.remove("$B")
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "del": """\
T={"$G":1,"$B":2}
del T["$B"]
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "filter reassign": """\
from .x import exists
T=["$G","$B"]
T=[t for t in T if exists(t)]
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "filter fn": """\
def exists(t): return bool(t)
T=["$G","$B"]
for t in filter(exists, T):
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "reassigned str": """\
t="$B"
t="$G"
HookRegistry.register(t, hook, HookType.AROUND)
""",
    "other register": """\
import atexit
class R:
    def register(self, t, f): pass
r=R()
r.register("$B", hook)
""",
    "abstract base": """\
class Base:
    T="$B"
    def go(self):
        HookRegistry.register(self.T, hook, HookType.AROUND)
class C(Base):
    T="$G"
C().go()
""",
    "init const overwritten": """\
class C:
    def __init__(self):
        self.t="$B"
    def fix(self):
        self.t="$G"
    def go(self):
        self.fix()
        HookRegistry.register(self.t, hook, HookType.AROUND)
C().go()
""",
    "instance combos": """\
class C:
    def __init__(self, c, n):
        self.c=c; self.n=n
    def go(self):
        HookRegistry.register(f"{self.c}.{self.n}", hook, HookType.AROUND)
C("sglang.srt.managers.scheduler.Scheduler","run_batch").go()
C("sglang.srt.managers.detokenizer_manager.DetokenizerManager","event_loop").go()
""",
    "nested combos": """\
def outer(c, names):
    def inner(n):
        HookRegistry.register(f"{c}.{n}", hook, HookType.AROUND)
    for n in names:
        inner(n)
outer("sglang.srt.managers.scheduler.Scheduler",["run_batch"])
outer("sglang.srt.managers.detokenizer_manager.DetokenizerManager",["event_loop"])
""",
    "deco combos": """\
def on(c):
    def at(n):
        def deco(fn):
            HookRegistry.register(f"{c}.{n}", fn, HookType.AROUND)
            return fn
        return deco
    return at
s=on("sglang.srt.managers.scheduler.Scheduler")
d=on("sglang.srt.managers.detokenizer_manager.DetokenizerManager")
@s("run_batch")
def a(original,*x,**k): return original(*x,**k)
@d("event_loop")
def b(original,*x,**k): return original(*x,**k)
""",
    "version helper": """\
import sglang
def target():
    if sglang.__version__ < "0.5.20":
        return "$B"
    return "$G"
HookRegistry.register(target(), hook, HookType.AROUND)
""",
    "version dict": """\
import sglang
T={"0.5.17":"$B"}
t=T.get(sglang.__version__)
if t:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "version dict default": """\
import sglang
T={"0.5.17":"$B"}
HookRegistry.register(T.get(sglang.__version__, "$G"), hook, HookType.AROUND)
""",
    "next existing": """\
from .x import exists
C=("$B","$G")
t=next(c for c in C if exists(c))
HookRegistry.register(t, hook, HookType.AROUND)
""",
    "config flag off": """\
ENABLED=False
if ENABLED:
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "row version": """\
import sglang
from packaging.version import Version
T=[("$G","0.5.11"),("$B","9.0.0")]
for t, v in T:
    if Version(sglang.__version__) >= Version(v):
        HookRegistry.register(t, hook, HookType.AROUND)
""",
    "row version max": """\
import sglang
from packaging.version import Version
V=Version(sglang.__version__)
T=[("$G",None),("$B","0.5.12")]
for t, upto in T:
    if upto is not None and V >= Version(upto):
        continue
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "row version tuple": """\
import sglang
V=tuple(int(x) for x in sglang.__version__.split(".")[:3])
T=[("$G",(0,5,11)),("$B",(0,6,0))]
for t, v in T:
    if V < v:
        continue
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "row enabled": """\
T=[("$G",True),("$B",False)]
for t, on in T:
    if on:
        HookRegistry.register(t, hook, HookType.AROUND)
""",
    "hasattr": """\
import sglang.srt.managers.scheduler as s
if hasattr(s.Scheduler, "run_batchx"):
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "wrapper checks": """\
import importlib
def add(t):
    m,_,n=t.rpartition(".")
    m,_,c=m.rpartition(".")
    if not hasattr(getattr(importlib.import_module(m),c),n):
        return
    HookRegistry.register(t, hook, HookType.AROUND)
add("$B")
""",
    "wrapper since": """\
import sglang
from packaging.version import Version
def add(t, since=None):
    if since and Version(sglang.__version__) < Version(since):
        return
    HookRegistry.register(t, hook, HookType.AROUND)
add("$G")
add("$B", since="0.9")
""",
    "wrapper optional": """\
def add(t, optional=False):
    if optional and not exists(t):
        return
    HookRegistry.register(t, hook, HookType.AROUND)
def exists(t):
    import importlib
    try:
        importlib.import_module(t)
    except ImportError:
        return False
    return True
add("$B", optional=True)
""",
    "env list": """\
import os
T=os.environ.get("T","").split(",")
for t in T:
    HookRegistry.register(t, hook, HookType.AROUND)
""",
    "match version": """\
import sglang
match sglang.__version__:
    case "0.5.12":
        HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "version in tuple": """\
import sglang
if sglang.__version__ in ("0.5.11","0.5.12"):
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "version startswith": """\
import sglang
if sglang.__version__.startswith("0.5.12"):
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "chained compare": """\
import sglang
from packaging.version import Version
if Version("0.5.11") <= Version(sglang.__version__) < Version("0.5.14"):
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "specifier": """\
import sglang
from packaging.specifiers import SpecifierSet
if sglang.__version__ in SpecifierSet("<0.5.14"):
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "specifier contains": """\
import sglang
from packaging.specifiers import SpecifierSet
if SpecifierSet("<0.5.14").contains(sglang.__version__):
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "ternary version": """\
import sglang
from packaging.version import Version
NEW = Version(sglang.__version__) >= Version("0.5.13")
HookRegistry.register("$G" if NEW else "$B", hook, HookType.AROUND)
""",
    "dict by flag": """\
import sglang
from packaging.version import Version
NEW = Version(sglang.__version__) >= Version("0.5.13")
HookRegistry.register({True:"$G",False:"$B"}[NEW], hook, HookType.AROUND)
""",
    "import version md": """\
from importlib.metadata import version
from packaging.version import Version as V
if V(version("sglang")) < V("0.5.13"):
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "raises when old": """\
import sglang
if sglang.__version__ >= "0.5.13":
    raise ImportError("too new")
HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "early return in caller": """\
import sglang
from packaging.version import Version
def _go():
    HookRegistry.register("$B", hook, HookType.AROUND)
def register():
    if Version(sglang.__version__) > Version("0.5.12"):
        return
    _go()
""",
    "try except import": """\
try:
    from sglang.srt.managers.scheduler import Gone
except ImportError:
    pass
else:
    HookRegistry.register("$B", hook, HookType.AROUND)
""",
    "str not target": """\
from .y import register_hook
register_hook("$B", hook)
""",
    "unregister": """\
HookRegistry.unregister("$B") if hasattr(HookRegistry,"unregister") else None
""",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The codes for each form with a good and a bad target, and for each silent one: all in one run."""
    root = tmp_path_factory.mktemp("forms")
    places = {}
    for kind, last in (("there", THERE), ("gone", GONE)):
        for number, (name, (source, more)) in enumerate(FORMS.items()):
            files = {f"f{number}": HEAD + source, **more}
            for stem, text in files.items():
                written = text.replace("$T", f"{OWNER}.{last}").replace("$M", OWNER).replace("$N", last)
                _write(root / f"plug{kind}" / f"{stem}.py", written if text.startswith("from") or stem[0] == "f" else written + "\n")
                places.setdefault(f"plug{kind}/{stem}.py", (kind, name))
    for number, (name, source) in enumerate(SILENT.items()):
        _write(root / "plugsilent" / f"s{number}.py", HEAD + source.replace("$B", f"{OWNER}.{GONE}").replace("$G", f"{OWNER}.{THERE}"))
        places[f"plugsilent/s{number}.py"] = ("silent", name)
    _write(root / "plugsilent" / "x.py", "def exists(t):\n    import importlib\n    return importlib.util.find_spec(t)\n")
    _write(root / "plugsilent" / "y.py", "def register_hook(*a): pass\n")
    found = {}
    for finding in check(root, ("0.5.23",)).findings:
        if finding.location and finding.location.path in places:
            found.setdefault(places[finding.location.path], []).append(finding.code)
    return found


def test_what_tests_hand_in_is_theirs(plugins):
    add = f"{HEAD}def add(target):\n    HookRegistry.register(target, hook, HookType.AROUND)\nadd('{OWNER}.{THERE}')\n"
    files = {"plug/__init__.py": "", "plug/mod.py": add, "tests/test_mod.py": "from plug.mod import add\nadd('sglang.no.such')  # sglang\n"}
    assert [finding.code for finding in plugins.findings(files) if finding.code.startswith("SP5")] == []


def _write(path, text):
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    path.write_text(text)


@pytest.mark.parametrize("form", FORMS)
def test_a_target_is_read(said, form):
    assert "SP501" in said.get(("gone", form), [])
    assert said.get(("there", form), []) == []


@pytest.mark.parametrize("case", SILENT)
def test_no_alarm(said, case):
    assert [code for code in said.get(("silent", case), []) if code != "SP706"] == []
