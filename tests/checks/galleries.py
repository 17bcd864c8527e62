"""Plugins with one flaw each, and sound ones: name -> (module text, codes of the errors and warnings that doctor must report).

Texts are `str.format`-free: `TGT` stands for the plugin's own target module, `MOD` for the plugin's own module.
"""

# ruff: noqa: E501, ISC004 - a program a line keeps the table a table
from __future__ import annotations

from typing import TYPE_CHECKING

from tests.plugins.install import SRT_PLATFORMS, SRT_PLUGINS

if TYPE_CHECKING:
    from tests.plugins.install import Site

TARGET = """
import functools
def f(x): return x * 2
def g(x, *, scale=1): return x * scale
async def af(x): return x
async def agen(x):
    yield x
def gen(x):
    yield x
@functools.lru_cache
def cached(x): return x
from time import perf_counter
from json import dumps as encode
CONST = 3
NAMES = ["a"]
class Kernel:
    def __getitem__(self, grid): return self
    def __call__(self, x): return x
kernel = Kernel()
class Base:
    flag = True
    def m(self): return "base"
    @classmethod
    def cm(cls, x): return x
    @staticmethod
    def sm(x): return x
    @property
    def prop(self): return False
    @functools.cached_property
    def cprop(self): return 1
    async def am(self): return 1
    def mx(self, x): return x
class Sub(Base): pass
class Over(Base):
    def m(self): return "over"
class Alone:
    def __init__(self, x=1): self.x = x
    def run(self): return self.x
REG = {"h": None}
def h(x): return x
REG["h"] = h
def user(x, fn=h): return fn(x)
bound = functools.partial(h, 1)
def k(x): return x
def fast(x): return x
fast._torchdynamo_orig_callable = k  # as torch.compile leaves it
"""

API = "from sglang.srt.plugins.hook_registry import HookRegistry, HookType, plugin_hook\n"
DIFF_API = "from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType, plugin_hook\n"


def registering(*lines: str, api: str = API, before: str = "") -> str:
    """Return a plugin module whose callback runs `lines`."""
    return api + before + "def register():\n" + "".join(f"    {line}\n" for line in lines)


def one(target: str, hook: str, kind: str | None, **more: str) -> str:
    """Return a plugin module that registers one hook."""
    last = f", HookType.{kind}" if kind else ""
    return registering(f'HookRegistry.register("{target}", {hook}{last})', **more)


AROUND = "lambda fn, *a, **k: fn(*a, **k)"
AFTER = "lambda result, *a, **k: None"
BEFORE = "lambda *a, **k: None"
WORKER = "sglang.srt.managers.tp_worker.TpModelWorker.__init__"  # the stand-in's is made of other things than the release's
WORKER_TAKES = (
    "self, server_args, gpu_id, nccl_port, is_draft_worker=False, req_to_token_pool=None, token_to_kv_pool_allocator=None, memory_pool_config=None, "
    "is_multi_layer_eagle=False, context_length=None, draft_attention_backend=None, random_seed=None, load_group=None"
)

HOOKS: dict[str, tuple[str, set[str]]] = {
    # sound
    "ok_around": (one("TGT.f", AROUND, "AROUND"), set()),
    "ok_exact": (one("TGT.f", "lambda original, x: original(x)", "AROUND"), set()),
    "ok_after": (one("TGT.f", AFTER, "AFTER"), set()),
    "ok_after_named": (one("TGT.f", "lambda result, x: result", "AFTER"), set()),
    "ok_default": (one("TGT.f", AFTER, None), set()),
    "ok_before": (one("TGT.f", BEFORE, "BEFORE"), set()),
    "ok_before_pair": (registering("def hook(x): return (x + 1,), {}", 'HookRegistry.register("TGT.f", hook, HookType.BEFORE)'), set()),
    "ok_replace": (one("TGT.f", "lambda x: x", "REPLACE"), set()),
    "ok_method": (one("TGT.Alone.run", "lambda fn, self: fn(self)", "AROUND"), set()),
    "ok_original_named_self": (
        registering("def hook(self, *a, **k): return self(*a, **k)", 'HookRegistry.register("TGT.Alone.run", hook, HookType.AROUND)'),
        set(),
    ),
    "ok_original_passed_on": (
        registering(
            "def call(fn, x): return fn(x)",
            "def hook(fn, x):\n        def inner(): return call(fn, x)\n        return inner()",
            'HookRegistry.register("TGT.f", hook, HookType.AROUND)',
        ),
        set(),
    ),
    "ok_original_unused_on_purpose": (
        registering("def hook(_original, x): return x", 'HookRegistry.register("TGT.f", hook, HookType.AROUND)'),
        set(),
    ),
    "ok_init": (one("TGT.Alone.__init__", "lambda result, self, x=1: None", "AFTER"), set()),
    "ok_classmethod": (one("TGT.Base.cm", "lambda fn, cls, x: fn(cls, x)", "AROUND"), set()),
    "ok_staticmethod": (one("TGT.Base.sm", "lambda fn, x: fn(x)", "AROUND"), set()),
    "ok_class": (
        registering("import TGT", "class New(TGT.Alone): pass", 'HookRegistry.register("TGT.Alone", New, HookType.REPLACE)'),
        set(),
    ),
    "ok_colon": (one("TGT:Alone.run", AROUND, "AROUND"), set()),
    "ok_decorator": (registering('@plugin_hook("TGT.f", type=HookType.AROUND)', "def hook(original_fn, x): return original_fn(x)"), set()),
    "ok_async": (
        registering("async def hook(original, x): return await original(x)", 'HookRegistry.register("TGT.af", hook, HookType.AROUND)'),
        set(),
    ),
    "ok_keyword": (one("TGT.g", "lambda fn, x, *, scale=1: fn(x, scale=scale)", "AROUND"), set()),
    "ok_partial": (
        registering(
            "import functools",
            "def hook(k, fn, x): return fn(x)",
            'HookRegistry.register("TGT.f", functools.partial(hook, 1), HookType.AROUND)',
        ),
        set(),
    ),
    "ok_callable": (
        registering("class H:", "    def __call__(self, fn, *a): return fn(*a)", 'HookRegistry.register("TGT.f", H(), HookType.AROUND)'),
        set(),
    ),
    "ok_two_kinds": (
        registering(
            f'HookRegistry.register("TGT.f", {AROUND}, HookType.AROUND)', f'HookRegistry.register("TGT.g", {AFTER}, HookType.AFTER)'
        ),
        set(),
    ),
    "ok_async_awaiting": (
        registering("async def hook(result, x): return await result", 'HookRegistry.register("TGT.af", hook, HookType.AFTER)'),
        set(),
    ),
    "ok_gen_around": (
        registering("def hook(original, x): yield from original(x)", 'HookRegistry.register("TGT.gen", hook, HookType.AROUND)'),
        set(),
    ),
    "ok_other_runtime": (
        "def register():\n    from sglang.multimodal_gen.runtime.platforms import current_platform\n    current_platform.device_name\n",
        set(),
    ),
    "ok_own_runtime": ("from sglang.srt.platforms import current_platform\ndef register():\n    current_platform.device_name\n", set()),
    "names_a_class": ("def register(): return 'MOD.plat:Plat'\n", {"SP516"}),
    "ok_plain_patch": ("def register():\n    import json\n    json.sglang_plug_test = 1\n", set()),
    # targets that are not there
    "gone_attribute": (one("TGT.ff", AROUND, "AROUND"), {"SP501"}),
    "gone_method": (one("TGT.Base.nope", AROUND, "AROUND"), {"SP501"}),
    "gone_module": (one("tgtx.f", AROUND, "AROUND"), {"SP501"}),
    "gone_submodule": (one("email.nope.f", AROUND, "AROUND"), {"SP501"}),
    "gone_in_sglang": (one("sglang.srt.managers.scheduler.Scheduler.schedule", AROUND, "AROUND"), {"SP501"}),
    "import_fails": (one("broken_late.f", AROUND, "AROUND"), {"SP502"}),
    "import_fails_inside": (one("broken_pkg.sub.f", AROUND, "AROUND"), {"SP502"}),
    "import_raises": (one("broken_raise.f", AROUND, "AROUND"), {"SP502"}),
    "import_syntax": (one("broken_syntax.f", AROUND, "AROUND"), {"SP502"}),
    "no_dot": (one("nodot", AROUND, "AROUND"), {"SP503"}),
    "whole_module": (one("broken_pkg.whole", AROUND, "AROUND"), {"SP503"}),
    "without_self": (one("TGT.Base.mx", "lambda fn, x: fn(x)", "AROUND"), {"SP513"}),
    "registers_and_exits": (registering(f'HookRegistry.register("TGT.f", {AROUND}, HookType.AROUND)', "raise SystemExit(0)"), {"SP303"}),
    "colon_function": (one("TGT:f", AROUND, "AROUND"), {"SP503"}),
    "colon_in_package": (one("email.message:message_from_string", AROUND, "AROUND"), {"SP503"}),
    "blank": (one(" TGT.f", AROUND, "AROUND"), {"SP503"}),
    "dashes": (one("my-mod.f", AROUND, "AROUND"), {"SP503"}),
    # kinds of target
    "after_async": (one("TGT.af", AFTER, "AFTER"), {"SP504"}),
    "after_async_method": (one("TGT.Base.am", AFTER, "AFTER"), {"SP504"}),
    "before_async_hook": (
        registering("async def hook(*a, **k): return a, k", 'HookRegistry.register("TGT.af", hook, HookType.BEFORE)'),
        {"SP515"},
    ),
    "async_on_plain": (
        registering("async def hook(fn, *a): return fn(*a)", 'HookRegistry.register("TGT.f", hook, HookType.AROUND)'),
        {"SP515"},
    ),
    "after_generator": (one("TGT.gen", AFTER, "AFTER"), {"SP505"}),
    "ok_after_generator_runs_through": (
        registering("def hook(result, *a): yield from result", 'HookRegistry.register("TGT.gen", hook, HookType.AFTER)'),
        set(),
    ),
    "property": (one("TGT.Base.prop", AROUND, "AROUND"), {"SP506"}),
    "property_replace": (one("TGT.Base.prop", "lambda self: True", "REPLACE"), {"SP506"}),
    "cached_property": (one("TGT.Base.cprop", AROUND, "AROUND"), {"SP506"}),
    "constant": (one("TGT.CONST", AROUND, "AROUND"), {"SP507"}),
    "list_constant": (one("TGT.NAMES", AROUND, "AROUND"), {"SP507"}),
    "class_flag": (one("TGT.Base.flag", AROUND, "AROUND"), {"SP507"}),
    "inherited_classmethod": (one("TGT.Sub.cm", "lambda fn, *a: fn(*a)", "AROUND"), {"SP508"}),
    "inherited_staticmethod": (one("TGT.Sub.sm", "lambda fn, *a: fn(*a)", "AROUND"), {"SP508"}),
    "cached_function": (one("TGT.cached", AROUND, "AROUND"), {"SP509"}),
    "kernel": (one("TGT.kernel", AROUND, "AROUND"), {"SP509"}),
    "stdlib_reexport": (one("TGT.perf_counter", "lambda fn: fn()", "AROUND"), {"SP510"}),
    "other_reexport": (one("TGT.encode", AROUND, "AROUND"), {"SP510"}),
    "wraps_class": (one("TGT.Alone", AROUND, "AROUND"), {"SP511"}),
    "function_for_class": (one("TGT.Alone", "lambda *a: None", "REPLACE"), {"SP511"}),
    "class_for_function": (one("TGT.f", "type('H', (), {})", "REPLACE"), {"SP511"}),
    "class_before": (one("TGT.f", "type('H', (), {})", "BEFORE"), {"SP511"}),
    "class_around": (one("TGT.Alone", "type('H', (), {})", "AROUND"), {"SP511"}),
    "too_late": (
        registering(
            f'HookRegistry.register("TGT.f", {AROUND}, HookType.AROUND)',
            "HookRegistry.apply_hooks()",
            f'HookRegistry.register("TGT.f", {AROUND}, HookType.AROUND)',
        ),
        {"SP529"},
    ),
    "ok_applies_itself": (
        registering(f'HookRegistry.register("TGT.f", {AROUND}, HookType.AROUND)', "HookRegistry.apply_hooks()"),
        set(),
    ),
    "yields": (registering("def hook(fn, x):\n        yield fn(x)", 'HookRegistry.register("TGT.f", hook, HookType.AROUND)'), {"SP505"}),
    "ok_yields_from": (
        registering("def hook(fn, x):\n        yield from fn(x)", 'HookRegistry.register("TGT.f", hook, HookType.AROUND)'),
        set(),
    ),
    "async_object": (
        registering(
            "class Hook:\n        async def __call__(self, fn, x): return fn(x)",
            'HookRegistry.register("TGT.f", Hook(), HookType.AROUND)',
        ),
        {"SP515"},
    ),
    "not_awaited": (
        registering("async def hook(fn, x): return fn(x)", 'HookRegistry.register("TGT.af", hook, HookType.AROUND)'),
        {"SP515"},
    ),
    "replaces_async": (one("TGT.af", "lambda x: x", "REPLACE"), {"SP504"}),
    # shapes
    "type_forgotten": (registering('@plugin_hook("TGT.f")', "def timer(original_fn, x): return original_fn(x)"), {"SP512"}),
    "type_forgotten_fn": (one("TGT.f", "lambda fn, x: fn(x)", None), {"SP512"}),
    "around_result": (one("TGT.f", "lambda result, x: result", "AROUND"), {"SP512"}),
    "before_original": (one("TGT.f", "lambda original_fn, x: None", "BEFORE"), {"SP512"}),
    "around_nothing": (one("TGT.f", "lambda: 1", "AROUND"), {"SP512"}),
    "around_without_original": (
        registering("def hook(self): return self.x", 'HookRegistry.register("TGT.Alone.run", hook, HookType.AROUND)'),
        {"SP512"},
    ),
    "around_never_calls": (
        registering("def hook(args, x): return x", 'HookRegistry.register("TGT.f", hook, HookType.AROUND)'),
        {"SP512"},
    ),
    "too_few": (one("TGT.f", "lambda fn: fn(1)", "AROUND"), {"SP513"}),
    "too_many": (one("TGT.f", "lambda fn, x, y: fn(x)", "AROUND"), {"SP513"}),
    "replace_too_few": (one("TGT.f", "lambda: 1", "REPLACE"), {"SP513"}),
    "no_keyword": (one("TGT.g", "lambda fn, x: fn(x)", "AROUND"), {"SP513"}),
    "method_without_self": (one("TGT.Alone.run", "lambda: 1", "REPLACE"), {"SP513"}),
    "before_single": (registering("def hook(x): return (x + 1,)", 'HookRegistry.register("TGT.f", hook, HookType.BEFORE)'), {"SP514"}),
    "before_value": (registering("def hook(x): return x + 1", 'HookRegistry.register("TGT.f", hook, HookType.BEFORE)'), {"SP514"}),
    "before_dict": (registering("def hook(x): return {'x': x}", 'HookRegistry.register("TGT.f", hook, HookType.BEFORE)'), {"SP514"}),
    "init_returns": (
        registering("def hook(result, self, x=1): return self", 'HookRegistry.register("TGT.Alone.__init__", hook, HookType.AFTER)'),
        {"SP514"},
    ),
    # what is registered
    "nothing_false": ("def register():\n    return False\n", {"SP516"}),
    "unimported": ("def register():\n    pass\n", {"SP516"}),
    "other_registry": (one("TGT.f", AROUND, "AROUND", api=DIFF_API), {"SP517"}),
    "partial": (registering(f'HookRegistry.register("TGT.f", {AROUND}, HookType.AROUND)', 'raise OSError("late")'), {"SP302", "SP518"}),
    "two_spellings": (
        registering(
            f'HookRegistry.register("TGT.Alone.run", {AROUND}, HookType.AROUND)',
            f'HookRegistry.register("TGT:Alone.run", {AFTER}, HookType.AFTER)',
        ),
        {"SP528"},
    ),
    "recursive": (
        registering(
            "def hook(x): return _orig(x) * 10",
            'HookRegistry.register("TGT.f", hook, HookType.REPLACE)',
            before="from TGT import f as _orig\n",
        ),
        {"SP522"},
    ),
    "recursive_class": (
        API
        + "from TGT import Alone\nclass New(Alone):\n    def run(self): return Alone.run(self)\n"
        + 'def register():\n    HookRegistry.register("TGT.Alone", New, HookType.REPLACE)\n',
        {"SP522"},
    ),
    "stale": (one("TGT.h", AROUND, "AROUND"), {"SP523"}),
    "keeps_base": (
        registering("class New: pass", 'HookRegistry.register("TGT.Base", New, HookType.REPLACE)'),
        {"SP525"},
    ),
    "server_args_init": (one("sglang.srt.server_args.ServerArgs.__post_init__", AFTER, "AFTER"), {"SP531"}),
    "process_entry": (one("sglang.srt.managers.scheduler.run_scheduler_process", AROUND, "AROUND"), {"SP526"}),
    "tokenizer_worker": (one("sglang.srt.managers.multi_tokenizer_mixin.TokenizerWorker.__init__", AROUND, "AROUND"), {"SP526"}),
    "diffusion_code": (one("sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.__init__", AROUND, "AROUND"), {"SP526"}),
    "compiled_before": (one("TGT.k", AROUND, "AROUND"), {"SP523"}),
    "ok_as_the_release": (
        one("sglang.srt.mem_cache.memory_pool.ReqToTokenPool.alloc", "lambda fn, self, reqs: fn(self, reqs)", "AROUND"),
        set(),
    ),
    "ok_as_the_release_alone": (one(WORKER, f"lambda {WORKER_TAKES}: None", "BEFORE"), set()),
    "as_the_standin_alone": (one(WORKER, "lambda self, server_args, port_args, gpu_id, tp_rank: None", "BEFORE"), {"SP513"}),
    "drops_batch": (
        registering(
            "def hook(original, *a, **k): original(*a, **k)",
            'HookRegistry.register("sglang.srt.managers.scheduler.Scheduler.run_batch", hook, HookType.AROUND)',
        ),
        {"SP514"},
    ),
    "drops_result": (
        registering("def hook(original, *a, **k): original(*a, **k)", 'HookRegistry.register("TGT.f", hook, HookType.AROUND)'),
        {"SP514"},
    ),
    "ok_drops_nothing": (
        registering("def hook(original, *a, **k): original(*a, **k)", 'HookRegistry.register("TGT.Alone.__init__", hook, HookType.AROUND)'),
        set(),
    ),
    "ok_refuses": (
        registering(
            "def hook(original, *a, **k):\n        original(*a, **k)\n        raise ValueError(a)",
            'HookRegistry.register("TGT.f", hook, HookType.AROUND)',
        ),
        set(),
    ),
    "before_swapped": (registering("def hook(x): return {}, (x,)", 'HookRegistry.register("TGT.f", hook, HookType.BEFORE)'), {"SP514"}),
    "recursion_by_module": ("import TGT\n" + one("TGT.f", "lambda x: TGT.f(x)", "REPLACE"), {"SP522"}),
    "ok_saved_original": ("import TGT\nKEPT = [TGT.f]\n" + one("TGT.f", "lambda x: KEPT[0](x) and TGT.g(x)", "REPLACE"), set()),
    "ok_beyond_the_standin": (
        one("sglang.srt.layers.attention.flashinfer_backend.FlashInferAttnBackend.forward_extend", AROUND, "AROUND"),
        set(),
    ),
    "type_as_text": (registering('HookRegistry.register("TGT.f", lambda fn, x: 1, "around")'), {"SP302"}),
    "target_with_call": (one("TGT.f()", AROUND, "AROUND"), {"SP503"}),
    "after_async_generator": (one("TGT.agen", AFTER, "AFTER"), {"SP505"}),
    # callbacks
    "import_error": ("import vendor_rt_missing\ndef register(): pass\n", {"SP301"}),
    "syntax_error": ("def register(:\n    pass\n", {"SP301"}),
    "import_raises_os": ('raise OSError("libacme.so.3: cannot open")\ndef register(): pass\n', {"SP301"}),
    "raises": ('def register():\n    raise OSError("libacme.so.3: cannot open")\n', {"SP302"}),
    "raises_chained": (
        'def register():\n    try:\n        import vendor_rt_missing\n    except ImportError as e:\n        raise RuntimeError("wrapper") from e\n',
        {"SP302"},
    ),
    "exits": ("import sys\ndef register():\n    sys.exit(3)\n", {"SP303"}),
    "exits_at_import": ("import sys\nsys.exit(0)\n", {"SP303"}),
    "os_exits": ("import os\ndef register():\n    os._exit(7)\n", {"SP303"}),
    "os_exits_clean": ("import os\ndef register():\n    os._exit(0)\n", {"SP303"}),
    "interrupts": ("def register():\n    raise KeyboardInterrupt\n", {"SP303"}),
    "segfault": ("import ctypes\ndef register():\n    ctypes.string_at(0)\n", {"SP304"}),
    "aborts": ("import os\ndef register():\n    os.abort()\n", {"SP304"}),
    "kills_itself": ("import os, signal\ndef register():\n    os.kill(os.getpid(), signal.SIGKILL)\n", {"SP304"}),
    "hangs": ("import time\ndef register():\n    time.sleep(3600)\n", {"SP305"}),
    "spins": ("def register():\n    while True: pass\n", {"SP305"}),
    "hangs_at_import": ("import time\ntime.sleep(3600)\n", {"SP305"}),
    "deaf_hang": (
        "import signal, time\ndef register():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n    time.sleep(3600)\n",
        {"SP305"},
    ),
    "eats_memory": ("def register():\n    keep = []\n    while True: keep.append(bytearray(1 << 24))\n", {"SP306"}),
    "needs_argument": ("def register(config): pass\n", {"SP307"}),
    "is_async": ("async def register(): pass\n", {"SP307"}),
    "is_generator": ("def register():\n    yield\n", {"SP307"}),
    "not_callable": ("register = 3\n", {"SP307"}),
    "no_such_function": ("def regster(): pass\n", {"SP301"}),
    # side effects
    "sets_env": ('import os\ndef register():\n    os.environ["ACME_X"] = "1"\n', {"SP320"}),
    "sets_env_at_import": ('import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "7"\ndef register(): pass\n', {"SP320"}),
    "removes_env": ('import os\ndef register():\n    os.environ.pop("HOME", None)\n', {"SP320"}),
    "updates_env": ('import os\ndef register():\n    os.environ.update(ACME_Y="2")\n', {"SP320"}),
    "prints": ('print("ACME runtime 3.1")\ndef register(): pass\n', {"SP321"}),
    "writes_fd": ('import os\ndef register():\n    os.write(1, b"hello")\n', {"SP321"}),
    "floods_stderr": ('import sys\ndef register():\n    sys.stderr.write("y" * 3000000)\n', {"SP321"}),
    "chdir": ('import os\ndef register():\n    os.chdir("/")\n', {"SP322"}),
    "umask": ("import os\ndef register():\n    os.umask(0)\n", {"SP322"}),
    "excepthook": ("import sys\ndef register():\n    sys.excepthook = print\n", {"SP322"}),
    "handler": ("import signal\ndef register():\n    signal.signal(signal.SIGTERM, lambda *a: None)\n", {"SP323"}),
    "mask": ("import signal\ndef register():\n    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n", {"SP323"}),
    "thread": (
        "import threading, time\ndef register():\n    threading.Thread(target=time.sleep, args=(60,), daemon=True, name='acme').start()\n",
        {"SP324"},
    ),
    "child": (
        "import subprocess, sys\ndef register():\n    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n",
        {"SP325"},
    ),
    "daemon_child": (
        "import os, time\ndef register():\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: time.sleep(60)\n        os._exit(0)\n",
        {"SP325"},
    ),
    "start_method": ("import multiprocessing\ndef register():\n    multiprocessing.set_start_method('fork', force=True)\n", {"SP326"}),
    "root_logger": ("import logging\ndef register():\n    logging.basicConfig(level=10)\n", {"SP327"}),
    "device": (
        "import sys, types\nsys.modules.setdefault('torch', types.ModuleType('torch'))\nimport torch\n"
        "class _D:\n    on = False\n    @classmethod\n    def is_initialized(cls): return cls.on\n"
        "torch.cuda = _D\ndef register():\n    _D.on = True\n",
        {"SP328"},
    ),
    "replaces_stdout": ("import sys, io\ndef register():\n    sys.stdout = io.StringIO()\n", {"SP329"}),
    "ok_library_filters": ("import warnings\nwarnings.simplefilter('ignore')\ndef register(): pass\n", set()),
    "ok_locale_imported": ("import locale\ndef register(): pass\n", set()),
    "chdir_gone": ("import os, tempfile\ndef register():\n    d = tempfile.mkdtemp()\n    os.chdir(d)\n    os.rmdir(d)\n", {"SP322"}),
    "alarm": ("import signal\ndef register():\n    signal.alarm(100)\n", {"SP322"}),
    "affinity": ("import os\ndef register():\n    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n", {"SP322"}),
    "open_files": ("import resource\ndef register():\n    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n", {"SP322"}),
    "sets_locale": ("import locale\ndef register():\n    locale.setlocale(locale.LC_ALL, 'C')\n", {"SP322"}),
    "cuts_path": ("import sys\ndef register():\n    del sys.path[-1]\n", {"SP322"}),
    "stops_garbage": ("import gc\ndef register():\n    gc.disable()\n", {"SP322"}),
    "traces": ("import sys\ndef register():\n    sys.settrace(lambda *a: None)\n", {"SP322"}),
    "profiles": ("import sys\ndef register():\n    sys.setprofile(lambda *a: None)\n", {"SP322"}),
    "logger_class": (
        "import logging\nclass L(logging.Logger): pass\ndef register():\n    logging.setLoggerClass(L)\n",
        {"SP327"},
    ),
    "quietens_sglang": ("import logging\ndef register():\n    logging.getLogger('sglang').setLevel(50)\n", {"SP327"}),
    "breaks_environ": ("import os\ndef register():\n    os.environ = None\n", {"SP902"}),
    "ok_own_json": ("import json\ndef register():\n    json.dumps = lambda *a, **k: 'garbage'\n", set()),
    "kills_parent": ("import os, signal\ndef register():\n    os.kill(os.getppid(), signal.SIGKILL)\n", {"SP303"}),
    "stops_parent": ("import os, signal\ndef register():\n    os.kill(os.getppid(), signal.SIGTERM)\n", {"SP303"}),
    "fills_disk": (
        "import os\ndef register():\n    for _ in range(600): os.pwrite(1, b'x', _ << 20)\n",
        {"SP321"},
    ),
    "silent_exception": (
        "class E(Exception):\n    def __str__(self): raise ValueError('no')\n    __repr__ = __str__\ndef register(): raise E\n",
        {"SP302"},
    ),
    "slow": ("import time\ndef register():\n    time.sleep(3.2)\n", {"SP331"}),
}


def plat(
    *, head: str = "", body: str = "", without: tuple[str, ...] = (), base: str = "SRTPlatform", enum: str = "PlatformEnum.OOT"
) -> str:
    """Return a module with an SRT platform class: sound, but for what is added or left out."""
    members = {
        "_enum": f"_enum = {enum}",
        "device_name": 'device_name = "acme"',
        "device_type": 'device_type = "cpu"',
        "get_device": 'def get_device(self, device_id=0): return "cpu"',
        "set_device": "def set_device(self, device): pass",
        "get_device_uuid": 'def get_device_uuid(self, device_id=0): return "acme-0"',
        "get_device_capability": "def get_device_capability(self, device_id=0): return None",
        "get_device_total_memory": "def get_device_total_memory(self, device_id=0): return 1 << 34",
        "get_current_memory_usage": "def get_current_memory_usage(self, device=None): return 0.0",
        "get_default_attention_backend": 'def get_default_attention_backend(self): return "torch_native"',
    }
    lines = [text for name, text in members.items() if name not in without] + ([body] if body else [])
    start = "from sglang.srt.platforms.interface import SRTPlatform\nfrom sglang.srt.platforms.device_mixin import PlatformEnum\n"
    return f"{start}{head}\nclass Plat({base}):\n" + "".join(f"    {line}\n" for line in lines)


GIVES = 'def activate():\n    return "MOD.plat.Plat"\n'


def gives(value: str) -> str:
    """Return a module whose callback returns an expression."""
    return f"def activate():\n    return {value}\n"


#: name -> (text of MOD/__init__.py, text of MOD/plat.py, codes)
PLATFORMS: dict[str, tuple[str, str, set[str]]] = {
    # sound
    "ok": (GIVES, plat(), set()),
    "ok_colon": (gives('"MOD.plat:Plat"'), plat(), set()),
    "ok_none": (gives("None"), plat(), set()),
    "ok_mixin_first": (
        GIVES,
        plat(
            head="class Mixin:\n    def get_device(self, device_id=0): return 'cpu'\n", base="Mixin, SRTPlatform", without=("get_device",)
        ),
        set(),
    ),
    "ok_more_arguments": (GIVES, plat(body="def get_device_name(self, device_id=0, verbose=False): return 'acme'"), set()),
    "ok_star": (
        GIVES,
        plat(without=("get_device_capability",), body="def get_device_capability(self, *args, **kwargs): return None"),
        set(),
    ),
    "ok_class_method": (
        GIVES,
        plat(without=("get_device_uuid",), body="@classmethod\n    def get_device_uuid(cls, device_id=0): return 'acme'"),
        set(),
    ),
    "ok_private_helper": (GIVES, plat(body="def _driver(self): return None"), set()),
    "ok_init": (GIVES, plat(body="def __init__(self): self.handle = 1"), set()),
    "ok_other_runtime": (
        "def activate():\n    from sglang.multimodal_gen.runtime.platforms import current_platform\n    return 'MOD.plat.Plat'\n",
        plat(),
        set(),
    ),
    "ok_safe_imports": (
        "def activate():\n    from sglang.srt.platforms.device_mixin import PlatformEnum\n    return 'MOD.plat.Plat'\n",
        plat(),
        set(),
    ),
    # loading and calling
    "import_missing": ("import vendor_rt_missing\n" + GIVES, plat(), {"SP301"}),
    "raises": ('def activate():\n    raise OSError("libacme.so.3: cannot open")\n', plat(), {"SP302"}),
    "exits": ("import sys\ndef activate():\n    sys.exit(0)\n", plat(), {"SP303"}),
    "os_exits": ("import os\ndef activate():\n    os._exit(7)\n", plat(), {"SP303"}),
    "segfault": ("import ctypes\ndef activate():\n    ctypes.string_at(0)\n", plat(), {"SP304"}),
    "hangs": ("import time\ndef activate():\n    time.sleep(3600)\n", plat(), {"SP305"}),
    "memory": ("def activate():\n    return [bytearray(1 << 25) for _ in range(1000)]\n", plat(), {"SP306"}),
    "needs_argument": ("def activate(config): return 'MOD.plat.Plat'\n", plat(), {"SP307"}),
    "is_async": ("async def activate(): return 'MOD.plat.Plat'\n", plat(), {"SP307"}),
    "is_generator": ("def activate():\n    yield 'MOD.plat.Plat'\n", plat(), {"SP307"}),
    "reads_current": (
        "def activate():\n    from sglang.srt.platforms import current_platform\n    return 'MOD.plat.Plat'\n",
        plat(),
        {"SP311"},
    ),
    "reads_current_quietly": (
        "def activate():\n    try:\n        from sglang.srt.platforms import current_platform\n    except Exception: pass\n    return None\n",
        plat(),
        {"SP311"},
    ),
    "circular": ("def activate():\n    from sglang.srt.utils import get_bool_env_var\n    return None\n", plat(), {"SP310"}),
    "top_import": ("from sglang.srt.plugins.hook_registry import HookRegistry\n" + GIVES, plat(), {"SP312"}),
    # what is returned
    "tuple": (gives("(True, 'MOD.plat.Plat')"), plat(), {"SP308"}),
    "true": (gives("True"), plat(), {"SP308"}),
    "bytes": (gives("b'MOD.plat.Plat'"), plat(), {"SP308"}),
    "class_itself": ("def activate():\n    from MOD.plat import Plat\n    return Plat\n", plat(), {"SP308"}),
    "empty": (gives("''"), plat(), {"SP308"}),
    "no_module": (gives("'Plat'"), plat(), {"SP308"}),
    "spaces": (gives("'not a name'"), plat(), {"SP308"}),
    "slashes": (gives("'MOD/plat.py:Plat'"), plat(), {"SP308"}),
    # the class
    "class_missing": (gives('"MOD.plat.Nope"'), plat(), {"SP401"}),
    "class_missing_colon": (gives('"MOD.plat:Nope"'), plat(), {"SP401"}),
    "module_missing": (gives('"MOD.nope.Plat"'), plat(), {"SP401"}),
    "class_import": (GIVES, "import vendor_rt_missing\n" + plat(), {"SP402"}),
    "class_import_colon": (gives('"MOD.plat:Plat"'), "import vendor_rt_missing\n" + plat(), {"SP402"}),
    "class_syntax": (GIVES, "class Plat(:\n", {"SP402"}),
    "class_raises": (GIVES, "raise OSError('no driver')\n", {"SP402"}),
    "no_base": (GIVES, "class Plat: pass\n", {"SP403"}),
    "module_for_class": (gives('"MOD.plat"'), plat(), {"SP403"}),
    "function_for_class": (gives('"MOD.plat.Plat"'), "def Plat(): pass\n", {"SP403"}),
    "diffusion_base": (
        GIVES,
        "from sglang.multimodal_gen.runtime.platforms.interface import Platform\nclass Plat(Platform): pass\n",
        {"SP403"},
    ),
    "own_enum": (GIVES, plat(head="import enum\nclass E(enum.Enum):\n    OOT = 1", enum="E.OOT"), {"SP404"}),
    "sglangs_own": (gives("'sglang.srt.platforms.interface.SRTPlatform'"), plat(), {"SP404"}),
    "ok_text_subclass": ("class S(str): pass\ndef activate(): return S('MOD.plat.Plat')\n", plat(), set()),
    "new_gives_none": (GIVES, plat(body="def __new__(cls): return None"), {"SP405"}),
    "name_raises": (GIVES, plat(without=("device_name",), body="device_name = property(lambda self: 1 / 0)"), {"SP406"}),
    "class_circular": (GIVES, "from sglang.srt.utils import is_cuda\n" + plat(), {"SP310"}),
    "misspelt_override": (GIVES, plat(body="def init_bakend(self): pass"), {"SP409"}),
    "ok_other_helpers": (GIVES, plat(body="def device_names(self): return []\n    def get_device_names(self): return []"), set()),
    "memory_is_true": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): return True"),
        {"SP415"},
    ),
    "memory_is_nothing": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): return 0"),
        {"SP415"},
    ),
    "device_exits": (GIVES, plat(without=("get_device",), body="def get_device(self, device_id=0): import os; os._exit(3)"), {"SP415"}),
    "memory_then_loop": (
        "def activate():\n    keep = []\n    while True: keep.append(bytearray(1 << 24))\n",
        plat(),
        {"SP306"},
    ),
    "capabilities_dict": (GIVES, plat(body="capabilities = {'graph_capture': True}"), {"SP414"}),
    "ok_capabilities_own": (
        GIVES,
        plat(
            head="import dataclasses\nfrom sglang.srt.platforms.interface import PlatformCapabilities as Caps\nclass More(Caps): pass",
            body="capabilities = More(graph_capture=True)",
        ),
        set(),
    ),
    "collective_misspelt": (
        GIVES,
        plat(body="def get_torch_distributed_backend_str(self): return 'glooo'"),
        {"SP415"},
    ),
    "ok_collective_of_its_own": (
        GIVES,
        plat(head="import torch.distributed", body="def get_torch_distributed_backend_str(self): return 'cpu:gloo,acme:hccl'"),
        set(),
    ),
    "type_upper_case": (GIVES, plat(head="import torch", without=("device_type",), body='device_type = "CPU"'), {"SP412"}),
    "attention_none": (
        GIVES,
        plat(without=("get_default_attention_backend",), body="def get_default_attention_backend(self): return None"),
        {"SP415"},
    ),
    "attention_misspelt": (
        GIVES,
        plat(without=("get_default_attention_backend",), body="def get_default_attention_backend(self): return 'torch_nativ'"),
        {"SP415"},
    ),
    "ok_attention_of_its_own": (
        GIVES,
        plat(without=("get_default_attention_backend",), body="def get_default_attention_backend(self): return 'acme_triton'"),
        set(),
    ),
    "no_enum": (GIVES, plat(without=("_enum",)), {"SP404"}),
    "cuda_enum": (GIVES, plat(enum="PlatformEnum.CUDA"), {"SP404"}),
    "text_enum": (GIVES, plat(enum="'OOT'"), {"SP404"}),
    "init_argument": (GIVES, plat(body="def __init__(self, config): pass"), {"SP405"}),
    "init_raises": (GIVES, plat(body="def __init__(self): self.driver.open()"), {"SP405"}),
    "abstract": (
        GIVES,
        plat(head="import abc", base="SRTPlatform, abc.ABC", body="@abc.abstractmethod\n    def must(self): ..."),
        {"SP405"},
    ),
    "no_name": (GIVES, plat(without=("device_name",), body='device_name = ""'), {"SP406"}),
    "no_type": (GIVES, plat(without=("device_type",), body='device_type = ""'), {"SP406"}),
    "no_total_memory": (GIVES, plat(without=("get_device_total_memory",)), {"SP407"}),
    "no_uuid": (GIVES, plat(without=("get_device_uuid",)), {"SP407"}),
    "no_attention": (GIVES, plat(without=("get_default_attention_backend",)), {"SP407"}),
    "no_set_device": (GIVES, plat(without=("set_device",)), {"SP407"}),
    "old_graph": (GIVES, plat(body="def support_cuda_graph(self): return True"), {"SP408"}),
    "old_fp8": (GIVES, plat(body="def supports_fp8(self): return True"), {"SP408"}),
    "old_nsa": (GIVES, plat(body="def get_nsa_kv_pool_cls(self): return None"), {"SP408"}),
    "no_device_argument": (GIVES, plat(without=("get_device",), body="def get_device(self): return 'cpu'"), {"SP410"}),
    "extra_argument": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id, unit): return 1"),
        {"SP410"},
    ),
    "memory_in_gib": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): return 64.0"),
        {"SP415"},
    ),
    "memory_in_words": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): return '8GB'"),
        {"SP415"},
    ),
    "memory_raises": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): return {}[device_id]"),
        {"SP415"},
    ),
    "device_no_text": (
        GIVES,
        plat(without=("get_device",), body="def get_device(self, device_id=0): return ('cpu', device_id)"),
        {"SP415"},
    ),
    "ok_memory_float": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): return float(1 << 34)"),
        set(),
    ),
    "ok_memory_prints": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): print('asked'); return 1 << 34"),
        set(),
    ),
    "memory_crashes": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): import os; os.abort()"),
        {"SP415"},
    ),
    "memory_hangs": (
        GIVES,
        plat(without=("get_device_total_memory",), body="def get_device_total_memory(self, device_id=0): import time; time.sleep(99)"),
        {"SP415"},
    ),
    "renamed_argument": (GIVES, plat(without=("get_device",), body="def get_device(self, local_rank=0): return 'cpu'"), {"SP410"}),
    "async_method": (GIVES, plat(without=("get_device",), body="async def get_device(self, device_id=0): return 'cpu'"), {"SP414"}),
    "property_method": (
        GIVES,
        plat(without=("get_device_uuid",), body="@property\n    def get_device_uuid(self): return 'acme'"),
        {"SP414"},
    ),
    "mixin_last": (
        GIVES,
        plat(
            head="class Mixin:\n    def get_device(self, device_id=0): return 'cpu'\n", base="SRTPlatform, Mixin", without=("get_device",)
        ),
        {"SP411"},
    ),
    "ok_enum_of_the_object": (GIVES, plat(without=("_enum",), body="def __init__(self): self._enum = PlatformEnum.OOT"), set()),
    "ok_enum_property": (GIVES, plat(without=("_enum",), body="@property\n    def _enum(self): return PlatformEnum.OOT"), set()),
    "ok_catches_absence": ("def activate():\n    try: import acme_rt\n    except ImportError: return None\n", plat(), set()),
    "catches_a_slip": ("def activate():\n    try: return driverr()\n    except Exception: return None\n", plat(), {"SP309"}),
    "hooks_in_its_group": (
        "def activate():\n    from sglang.srt.plugins.hook_registry import HookRegistry\n    HookRegistry.register('json.dumps', print)\n",
        plat(),
        {"SP309"},
    ),
    "ok_delegates": (
        GIVES,
        plat(
            head="class Device:\n    def get_device(self, device_id=0): return 'cpu'\n",
            without=("get_device",),
            body="def __init__(self): self.get_device = Device().get_device",
        ),
        set(),
    ),
    "ok_passes_on": (
        GIVES,
        plat(
            head="class Device:\n    def get_device(self, device_id=0): return 'cpu'\n",
            without=("get_device",),
            body="def __getattribute__(self, name):\n        return getattr(Device() if name == 'get_device' else super(), '__getattribute__')(name)",
        ),
        set(),
    ),
    # side effects
    "sets_env": (
        'import os\ndef activate():\n    os.environ["CUDA_VISIBLE_DEVICES"] = "7"\n    return "MOD.plat.Plat"\n',
        plat(),
        {"SP320"},
    ),
    "prints": ('print("ACME")\n' + GIVES, plat(), {"SP321"}),
    "floods": ('def activate():\n    for _ in range(30000): print("x" * 1000)\n    return "MOD.plat.Plat"\n', plat(), {"SP321"}),
    "prints_in_init": (GIVES, plat(body='def __init__(self): print("hello")'), {"SP321"}),
    "child": ("import subprocess\ndef activate():\n    subprocess.Popen(['sleep', '60'])\n    return 'MOD.plat.Plat'\n", plat(), {"SP325"}),
    "closes_all": ("import os\ndef activate():\n    os.closerange(0, 65536)\n    return 'MOD.plat.Plat'\n", plat(), {"SP329"}),
}


def lay_hooks(site: Site) -> None:
    """Install every hook plugin of the gallery, each with a target module of its own."""
    for name, (text, _) in HOOKS.items():
        body = text.replace("TGT", f"tgt_{name}").replace("MOD", f"hk_{name}")
        files = {f"hk_{name}.py": body, f"tgt_{name}.py": TARGET}
        if name == "unimported":
            files = {
                f"hk_{name}/__init__.py": body,
                f"hk_{name}/hooks.py": 'from x import plugin_hook\n@plugin_hook("a.b")\ndef h(r): pass\n',
            }
        site.add(f"{name.replace('_', '-')}-dist", {SRT_PLUGINS: {name: f"hk_{name}:register"}}, files)
    site.write(
        {
            "broken_late.py": "import not_installed_anywhere\ndef f(x): return x\n",
            "broken_pkg/__init__.py": "",
            "broken_pkg/whole.py": "def f(x): return x\n",
            "broken_pkg/sub.py": "import not_installed_anywhere\ndef f(x): return x\n",
            "broken_raise.py": "raise RuntimeError('no device')\n",
            "broken_syntax.py": "def f(:\n",
        }
    )


def lay_platforms(site: Site) -> None:
    """Install every platform plugin of the gallery."""
    for name, (activate, text, _) in PLATFORMS.items():
        files = {f"pl_{name}/__init__.py": activate, f"pl_{name}/plat.py": text}
        files = {path: body.replace("MOD", f"pl_{name}") for path, body in files.items()}
        site.add(f"{name.replace('_', '-')}-dist", {SRT_PLATFORMS: {name: f"pl_{name}:activate"}}, files)
