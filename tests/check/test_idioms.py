"""Idioms of real plugins, each with the verdict that SGLang 0.5.21 and 0.5.23 give when the same names are imported there.

Seen in both: Scheduler has run_batch, get_next_batch_to_run and process_batch_result and none of gone_name, bad_batch, runs_batch, old_one,
get_next_batch, process_batch_results; sglang.srt.distributed has no get_pp_group, its parallel_state does; ServerArgs has add_cli_args.
"""

from __future__ import annotations

import pytest

HOOKS = "from sglang.srt.plugins.hook_registry import HookRegistry, HookType, plugin_hook\n"
HOOK = "def h(o, *a, **k): return o(*a, **k)\n"
RELEASES = ("0.5.21", "0.5.23")

# (idiom, what stands above, source, "CODE line [releases, where not both]")
IDIOMS = [
    (
        'a table of phases, wrapped by a bound method',
        HOOKS,
        """\
PH = {'a': 'sglang.srt.managers.scheduler.Scheduler.get_next_batch_to_run', 'b': 'sglang.srt.managers.scheduler.Scheduler.gone_name'}
class R:
    def wrap(self, n):
        def around(original, *a, **k): return original(*a, **k)
        return around
R0 = R()
def register():
    for name, target in PH.items():
        HookRegistry.register(target, R0.wrap(name), HookType.AROUND)
""",
        ['SP501 9'],
    ),
    (
        'the registry is handed to a helper',
        "",
        """\
T = 'sglang.srt.managers.scheduler.Scheduler.gone_name'
def hook(original, *a, **k): return original(*a, **k)
def _reg(registry, target, hook, kind):
    registry.register(target, hook, kind)
def register():
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    _reg(HookRegistry, T, hook, HookType.AROUND)
    _reg(HookRegistry, 'sglang.srt.managers.scheduler.Scheduler.run_batch', hook, HookType.AROUND)
""",
        ['SP501 4'],
    ),
    (
        'another release is refused first',
        HOOK,
        """\
import importlib.metadata
V = '0.5.16'
def _more():
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType
    HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.gone_name', h, HookType.AROUND)
def register():
    version = importlib.metadata.version('sglang')
    if version != V:
        raise RuntimeError(version)
    _more()
    from sglang.srt.nothing import x
""",
        [],
    ),
    (
        'adjacent literals',
        HOOKS,
        """\
@plugin_hook(
    'sglang.srt.layers.quantization.w8a8_int8.W8A8Int8LinearMethod.'
    'process_weights_after_loading', type=HookType.REPLACE)
def f(self, layer): ...
""",
        [],
    ),
    (
        'adjacent literals, name gone',
        HOOKS,
        """\
@plugin_hook(
    'sglang.srt.layers.quantization.w8a8_int8.W8A8Int8LinearMethod.'
    'process_weights_after_load', type=HookType.REPLACE)
def f(self, layer): ...
""",
        ['SP501 1'],
    ),
    (
        'a tuple of targets',
        HOOKS,
        """\
def _need(t):
    import importlib
    m, _, n = t.rpartition('.')
    return getattr(importlib.import_module(m), n)
T = ('sglang.srt.managers.scheduler.Scheduler.run_batch', 'sglang.srt.managers.scheduler.Scheduler.gone_name')
def register():
    for t in T:
        HookRegistry.register(t, lambda o, *a, **k: o(*a, **k), HookType.AROUND)
""",
        ['SP501 8'],
    ),
    (
        'an f-string over a constant',
        HOOKS + HOOK,
        """\
PREFIX = 'sglang.srt.managers'
def register():
    HookRegistry.register(f'{PREFIX}.scheduler.Scheduler.run_batch', h, HookType.AROUND)
    HookRegistry.register(f'{PREFIX}.scheduler.Scheduler.runs_batch', h, HookType.AROUND)
""",
        ['SP501 4'],
    ),
    (
        'members of an enumeration',
        HOOKS + HOOK,
        """\
from enum import Enum
class T(str, Enum):
    RUN = 'sglang.srt.managers.scheduler.Scheduler.run_batch'
    BAD = 'sglang.srt.managers.scheduler.Scheduler.bad_batch'
HookRegistry.register(T.RUN.value, h, HookType.AROUND)
HookRegistry.register(T.BAD.value, h, HookType.AROUND)
""",
        ['SP501 6'],
    ),
    (
        'a ladder of imports',
        "",
        """\
try:
    from sglang.srt.distributed import get_pp_group
except ImportError:
    from sglang.srt.distributed.parallel_state import get_pp_group
""",
        [],
    ),
    (
        'a ladder whose last rung is missing',
        "",
        """\
try:
    from sglang.srt.distributed import get_pp_group
except ImportError:
    from sglang.srt.distributed.parallel_states import get_pp_group
""",
        ['SP702 4'],
    ),
    (
        'a ladder that ends in None',
        "",
        """\
try:
    from sglang.srt.a import x
except ImportError:
    try:
        from sglang.srt.b import x
    except ImportError:
        x = None
""",
        [],
    ),
    (
        'import_module of a constant',
        "",
        """\
import importlib
M = 'sglang.srt.managers.schedulers'
m = importlib.import_module(M)
""",
        ['SP702 3'],
    ),
    (
        "a name of an imported module's class",
        "",
        """\
from importlib import import_module
m = import_module('sglang.srt.managers.scheduler')
print(m.Scheduler.run_batch, m.Scheduler.gone_name)
""",
        ['SP703 3'],
    ),
    (
        'for type checkers alone',
        "",
        """\
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from sglang.srt.gone import Gone
def f(x: Gone): ...
""",
        [],
    ),
    (
        "a helper's import, expected to fail by its caller",
        "",
        """\
import logging
def _patch():
    from sglang.srt.gone import Gone
    Gone.x = 1
def register():
    try:
        _patch()
    except ImportError:
        logging.warning('no')
""",
        [],
    ),
    (
        "a helper's import, not expected to fail",
        "",
        """\
def _patch():
    from sglang.srt.gone import Gone
def register():
    _patch()
""",
        ['SP702 2'],
    ),
    (
        'a version helper',
        "",
        """\
from packaging.version import Version
import sglang
def _ge(v):
    return Version(sglang.__version__) >= Version(v)
if _ge('0.5.99'):
    from sglang.srt.gone import x
""",
        [],
    ),
    (
        'a version as a tuple',
        "",
        """\
import sglang
V = tuple(int(p) for p in sglang.__version__.split('.')[:3])
if V >= (0, 6, 0):
    from sglang.srt.gone import x
else:
    from sglang.srt.managers.scheduler import Scheduler
""",
        [],
    ),
    (
        'the else of a guarded import',
        "",
        """\
try:
    import sglang.srt.gone as g
except ImportError:
    g = None
else:
    from sglang.srt.gone.more import y
""",
        [],
    ),
    (
        'an optional module',
        "",
        """\
try:
    import sglang.srt.gone as g
except ImportError:
    g = None
if g is not None:
    from sglang.srt.gone.more import y
    g.f = 1
""",
        [],
    ),
    (
        'wrap and replace',
        "",
        """\
from sglang.srt.managers import scheduler
_orig = scheduler.Scheduler.run_batch
def new(self, *a, **k): return _orig(self, *a, **k)
scheduler.Scheduler.run_batch = new
""",
        [],
    ),
    (
        'replace what is not there',
        "",
        """\
from sglang.srt.managers import scheduler
def new(self, *a, **k): ...
scheduler.Scheduler.get_next_batch = new
""",
        ['SP711 3'],
    ),
    (
        'setattr over names',
        "",
        """\
from sglang.srt.managers.scheduler import Scheduler
for n in ('run_batch', 'process_batch_results'):
    setattr(Scheduler, n, print)
""",
        ['SP711 3'],
    ),
    (
        'setattr over names that are there',
        "",
        """\
from sglang.srt.managers.scheduler import Scheduler
for n in ('run_batch', 'process_batch_results'):
    if hasattr(Scheduler, n):
        setattr(Scheduler, n, print)
""",
        [],
    ),
    (
        'setattr over owners and names',
        "",
        """\
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.managers.tokenizer_manager import TokenizerManager
for owner, n in ((Scheduler, 'process_batch_results'), (TokenizerManager, 'generate_request')):
    setattr(owner, n, print)
""",
        ['SP711 4'],
    ),
    (
        'a flag of its own',
        "",
        """\
import sglang.srt.utils as u
u._my_plugin_on = True
""",
        [],
    ),
    (
        'a built-in platform gives the members',
        "",
        """\
from sglang.srt.platforms.cuda import CudaSRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum
class P(CudaSRTPlatform):
    _enum = PlatformEnum.OOT
""",
        [],
    ),
    (
        'lazy names of the package',
        "",
        """\
import sglang as sgl
sgl.Engine
sgl.gen
sgl.nothing_at_all
""",
        ['SP703 4'],
    ),
    (
        'getattr with a default',
        "",
        """\
import sglang.srt.utils as u
f = getattr(u, 'is_gone', None)
if f: f()
""",
        [],
    ),
    (
        'suppress(ImportError)',
        "",
        """\
import contextlib
with contextlib.suppress(ImportError):
    from sglang.srt.gone import x
""",
        [],
    ),
    (
        'find_spec',
        "",
        """\
from importlib.util import find_spec
if find_spec('sglang.srt.gone') is not None:
    import sglang.srt.gone
""",
        [],
    ),
    (
        'rows unpacked into the call',
        HOOKS + HOOK,
        """\
S = 'sglang.srt.managers.scheduler.Scheduler.'
ROWS = [(S + 'run_batch', h, HookType.AROUND), (S + 'bad_batch', h, HookType.AROUND)]
for r in ROWS:
    HookRegistry.register(*r)
""",
        ['SP501 4'],
    ),
    (
        'a comprehension over a table',
        HOOKS + HOOK,
        """\
HOOKS = {'sglang.srt.managers.scheduler.Scheduler.run_batch': h, 'sglang.srt.managers.scheduler.Scheduler.bad_batch': h}
[HookRegistry.register(t, f, HookType.AROUND) for t, f in HOOKS.items()]
""",
        ['SP501 2'],
    ),
    (
        'an alias of register',
        HOOKS + HOOK,
        """\
register_hook = HookRegistry.register
register_hook('sglang.srt.managers.scheduler.Scheduler.bad_batch', h, HookType.AROUND)
""",
        ['SP501 2'],
    ),
    (
        'zip',
        HOOKS + HOOK,
        """\
for t, f in zip(['sglang.srt.managers.scheduler.Scheduler.run_batch', 'sglang.srt.managers.scheduler.Scheduler.bad_batch'], [h, h]):
    HookRegistry.register(t, f, HookType.AROUND)
""",
        ['SP501 2'],
    ),
    (
        "a class's own module and qualname",
        HOOKS + HOOK,
        """\
from sglang.srt.managers.scheduler import Scheduler
HookRegistry.register(f'{Scheduler.__module__}.{Scheduler.__qualname__}.bad_batch', h, HookType.AROUND)
""",
        ['SP501 2'],
    ),
    (
        'a package that loads lazily',
        "",
        """\
from sglang.srt.layers import quantization
print(quantization.QUANTIZATION_METHODS, quantization.QUANT_GONE)
""",
        ['SP703 2'],
    ),
    (
        'import_module in a try',
        "",
        """\
import importlib
for n in ('sglang.srt.gone', 'sglang.srt.utils'):
    try:
        importlib.import_module(n)
    except ImportError:
        pass
""",
        [],
    ),
    (
        'too old: return',
        "",
        """\
import sglang
from packaging.version import parse
def f():
    if parse(sglang.__version__) < parse('0.6'):
        return
    from sglang.srt.gone import x
""",
        [],
    ),
    (
        'hasattr before a hook',
        HOOKS + HOOK,
        """\
import sglang.srt.managers.scheduler as m
if hasattr(m.Scheduler, 'gone_name'):
    HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.gone_name', h, HookType.AROUND)
""",
        [],
    ),
    (
        'one target or the other',
        HOOKS + HOOK,
        """\
import sglang
from packaging.version import Version
NEW = Version(sglang.__version__) >= Version('0.5.22')
T = 'sglang.srt.managers.scheduler.Scheduler.run_batch' if NEW else 'sglang.srt.managers.scheduler.Scheduler.old_one'
HookRegistry.register(T, h, HookType.AROUND)
""",
        ['SP501 5 0.5.21'],
    ),
    (
        'resolve or continue',
        HOOKS + HOOK,
        """\
CANDS = ['sglang.srt.managers.scheduler.Scheduler.run_batch', 'sglang.srt.managers.scheduler.Scheduler.gone_name']
import pkgutil
for t in CANDS:
    try:
        pkgutil.resolve_name(t)
    except (ImportError, AttributeError):
        continue
    HookRegistry.register(t, h, HookType.AROUND)
""",
        [],
    ),
    (
        'a probe of its own',
        HOOKS + HOOK,
        """\
CANDS = ['sglang.srt.managers.scheduler.Scheduler.run_batch', 'sglang.srt.managers.scheduler.Scheduler.gone_name']
def _target_exists(t): return True
for t in CANDS:
    if not _target_exists(t):
        print('skip', t)
        continue
    HookRegistry.register(t, h, HookType.AROUND)
""",
        [],
    ),
    (
        'a helper that resolves and returns',
        HOOKS + HOOK,
        """\
CANDS = ['sglang.srt.managers.scheduler.Scheduler.run_batch', 'sglang.srt.managers.scheduler.Scheduler.gone_name']
def _get(t): ...
def _safe(target, hook, kind):
    if _get(target) is None:
        return
    HookRegistry.register(target, hook, kind)
def register():
    for t in CANDS:
        _safe(t, h, HookType.AROUND)
""",
        [],
    ),
    (
        'a helper that resolves in a try',
        HOOKS + HOOK,
        """\
CANDS = ['sglang.srt.managers.scheduler.Scheduler.run_batch', 'sglang.srt.managers.scheduler.Scheduler.gone_name']
import pkgutil
def _safe(target, hook, kind=HookType.AROUND):
    try:
        pkgutil.resolve_name(target)
    except Exception as exc:
        print(exc)
        return False
    HookRegistry.register(target, hook, kind)
    return True
def register():
    for t in CANDS:
        _safe(t, h)
""",
        [],
    ),
    (
        'resolve and register in one try',
        HOOKS + HOOK,
        """\
CANDS = ['sglang.srt.managers.scheduler.Scheduler.run_batch', 'sglang.srt.managers.scheduler.Scheduler.gone_name']
import pkgutil
def _safe(target, hook, kind=HookType.AROUND):
    try:
        obj = pkgutil.resolve_name(target)
        HookRegistry.register(target, hook, kind)
    except Exception as exc:
        print(exc)
def register():
    for t in CANDS:
        _safe(t, h)
""",
        [],
    ),
    (
        'a try around register alone',
        HOOKS + HOOK,
        """\
try:
    HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.gone_name', h, HookType.AROUND)
except Exception as e:
    print(e)
""",
        ['SP501 2'],
    ),
    (
        'submodules through the package',
        "",
        """\
import sglang
sglang.srt.utils.is_cuda()
""",
        [],
    ),
    (
        'deleted and counted',
        "",
        """\
import sglang.srt.managers.scheduler as m
del m.Scheduler.nope
m.COUNT_X = 1
m.COUNT_X += 1
""",
        [],
    ),
    (
        'wraps',
        "",
        """\
import sglang.srt.managers.scheduler as m
import functools
@functools.wraps(m.Scheduler.gone_name)
def f(): ...
""",
        ['SP703 3'],
    ),
    (
        'conditional expressions',
        "",
        """\
import sglang.srt.managers.scheduler as m
X = m.Gone if hasattr(m, 'Gone') else m.Scheduler
Y = hasattr(m, 'Gone') and m.Gone()
try:
    Z = m.Gone
except AttributeError:
    Z = None
""",
        [],
    ),
    (
        'getattr without a default',
        "",
        """\
import sglang.srt.managers.scheduler as m
o = getattr(m.Scheduler, 'gone_name')
q = getattr(m.Scheduler, 'run_batch')
""",
        ['SP703 2'],
    ),
    (
        'star imports',
        "",
        """\
from sglang import *
from sglang.srt.gone import *
""",
        ['SP702 2'],
    ),
    (
        'a look at the signature',
        "",
        """\
import sglang.srt.managers.scheduler as m
import inspect
sig = inspect.signature(m.Scheduler.run_batch)
if 'pp' in sig.parameters:
    m.Scheduler.gone_two
""",
        [],
    ),
    (
        'one class or the other',
        "",
        """\
import sglang.srt.managers.scheduler as m
_CLS = getattr(m, 'GoneCls', None) or getattr(m, 'Scheduler')
_CLS.run_batch
""",
        [],
    ),
    (
        'a moved name by version',
        "",
        """\
import sglang
_V = tuple(map(int, sglang.__version__.split('.')[:3]))
if _V < (0, 5, 22):
    from sglang.srt.distributed import get_pp_group
else:
    from sglang.srt.distributed.parallel_state import get_pp_group
""",
        ['SP701 4 0.5.21'],
    ),
    (
        'a subclass of its own',
        "",
        """\
from sglang.srt.managers.scheduler import Scheduler
class Mine(Scheduler):
    def run_batch(self, *a, **k):
        return super().run_batch(*a, **k)
    def extra(self): return self.whatever
Mine.extra
Mine.other
""",
        [],
    ),
    (
        'patched once',
        "",
        """\
from sglang.srt.managers.scheduler import Scheduler
def apply():
    if getattr(Scheduler, '_mine', False):
        return
    orig = Scheduler.run_batch
    def new(self, *a, **k): return orig(self, *a, **k)
    Scheduler.run_batch = new
    Scheduler._mine = True
    Scheduler._orig_run_batch = orig
""",
        [],
    ),
    (
        'a new flag and a misspelt method',
        "",
        """\
from sglang.srt.server_args import ServerArgs
ServerArgs.my_extra_flag = None
ServerArgs.add_cli_args = staticmethod(lambda p: None)
ServerArgs.add_cli_arg = staticmethod(lambda p: None)
""",
        ['SP711 4'],
    ),
    (
        'flags on several modules',
        "",
        """\
from sglang.srt.managers import scheduler as s, tokenizer_manager as t
for mod in (s, t):
    mod.my_hook_installed = True
""",
        [],
    ),
    (
        'a class handed to a helper',
        "",
        """\
def patch(cls):
    cls.get_next_batch = 1
from sglang.srt.managers.scheduler import Scheduler
patch(Scheduler)
""",
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("above", "source", "verdict"), [row[1:] for row in IDIOMS], ids=[row[0] for row in IDIOMS])
def test_an_idiom(findings, above, source, verdict):
    found = findings(above + source, *RELEASES)
    told = [f"{f.code} {f.location.line - above.count(chr(10))} {' '.join(f.data['releases'])}" for f in found if f.level != "info"]
    assert told == [line if line.count(" ") > 1 else f"{line} {' '.join(RELEASES)}" for line in verdict]


def test_a_caller_that_is_ready_for_anything_is_no_guard(codes):
    """`except Exception` around a call is meant for whatever happens; only an import of its own stands under it."""
    helper = "def f():\n    from sglang.srt.gone import x\n    return x\n"
    source = helper + "def g():\n    try:\n        return f()\n    except {}:\n        return None"
    assert codes(source.format("Exception")) == ["SP702"]
    assert codes(source.format("ImportError")) == []
