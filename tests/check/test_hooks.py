"""Hooks: every way of registering is read, and targets, types and parameters are judged."""

from __future__ import annotations

import pytest

HEAD = """\
from sglang.srt.plugins.hook_registry import HookRegistry, HookType, plugin_hook
S = "sglang.srt.managers.scheduler.Scheduler"
"""
GONE = "sglang.srt.managers.scheduler.Scheduler.schedule"  # a docstring's example: it exists in no release


def named(findings, code):
    return [finding for finding in findings if finding.code == code]


@pytest.mark.parametrize(
    "body",
    [
        f'HookRegistry.register("{GONE}", lambda r, *a, **k: r, HookType.AFTER)',
        f'def register():\n    HookRegistry.register(target="{GONE}", hook=lambda r, *a, **k: r, hook_type=HookType.AFTER)',
        'HookRegistry.register(S + ".schedule", lambda r, *a, **k: r)',
        'HookRegistry.register(f"{S}.schedule", lambda r, *a, **k: r)',
        'HookRegistry.register("%s.%s" % (S, "schedule"), lambda r, *a, **k: r)',
        'HookRegistry.register("{}.schedule".format(S), lambda r, *a, **k: r)',
        'HookRegistry.register(".".join([S, "schedule"]), lambda r, *a, **k: r)',
        f'@plugin_hook("{GONE}", type=HookType.AROUND)\ndef h(original, *a, **k):\n    return original(*a, **k)',
        'for name in ("schedule",):\n    HookRegistry.register(f"{S}.{name}", lambda r, *a, **k: r)',
        'T = [(S + ".run_batch", None), (S + ".schedule", None)]\nfor target, hook in T:\n    HookRegistry.register(target, hook)',
        'T = {S + ".schedule": print}\nfor target, hook in T.items():\n    HookRegistry.register(target, hook)',
        'def add(target, hook, kind=HookType.AROUND):\n    HookRegistry.register(target, hook, kind)\nadd(S + ".schedule", print)',
        'T = [(S + ".schedule", print, HookType.AFTER)]\nfor row in T:\n    HookRegistry.register(*row)',
        'class Names:\n    TARGET = S + ".schedule"\nHookRegistry.register(Names.TARGET, print)',
        'from sglang.srt.managers.scheduler import Scheduler as T\nHookRegistry.register(f"{T.__module__}.{T.__qualname__}.schedule", print)',  # noqa: E501 - a row of a table
        'def make(name):\n    return name\nx, y = S + ".schedule", 1\nHookRegistry.register(x, print)',
        'class P:\n    def _hook(self, n):\n        HookRegistry.register(f"{S}.{n}", print)\n    def go(self):\n        self._hook("schedule")',  # noqa: E501 - a row of a table
    ],
)
def test_every_way_of_registering_is_read(findings, body):
    found = named(findings(HEAD + body), "SP501")
    assert [finding.subject["name"] for finding in found] == [GONE]


def test_targets_of_another_module(plugins):
    found = plugins.findings({
        "plug/__init__.py": "",
        "plug/names.py": 'BASE = "sglang.srt.managers.scheduler.Scheduler"\nALL = [BASE + ".schedule", BASE + ".run_batch"]\n',
        "plug/hooks.py": "from sglang.srt.plugins.hook_registry import HookRegistry\nfrom . import names\nfrom .names import ALL\n"
        "for target in ALL:\n    HookRegistry.register(target, print)\nHookRegistry.register(names.BASE + '.nope', print)\n",
    })  # fmt: skip
    assert sorted(finding.subject["name"].rpartition(".")[2] for finding in named(found, "SP501")) == ["nope", "schedule"]


def test_the_renamed_is_suggested(findings):
    (finding,) = named(findings(HEAD + 'HookRegistry.register("sglang.srt.managers.scheduler.Scheduler.run_batchx", print)'), "SP501")
    assert "Scheduler.run_batch" in finding.hint


def test_a_target_of_some_releases(findings):
    target = "sglang.srt.layers.utils.multi_platform.MultiPlatformOp.dispatch_forward"
    found = named(findings(HEAD + f'HookRegistry.register("{target}", print)', "0.5.21", "0.5.22", "0.5.23"), "SP501")
    assert [finding.data["releases"] for finding in found] == [["0.5.23"]]


@pytest.mark.parametrize(
    "body",
    [
        'HookRegistry.register(S + ".run_batch", lambda original, *a, **k: original(*a, **k), HookType.AROUND)',
        'HookRegistry.register("sglang.srt.managers.scheduler:Scheduler.run_batch", lambda r, *a, **k: r)',
        "def there(t): ...\nfor n in ('schedule',):\n    t = f'{S}.{n}'\n    if there(t):\n        HookRegistry.register(t, print)",
        "def there(t): ...\nfor t in (S + '.schedule',):\n    if not there(t):\n        continue\n    HookRegistry.register(t, print)",
        "import sglang\nfrom packaging.version import Version as V\nif V(sglang.__version__) < V('0.5'):\n    HookRegistry.register(S + '.x', print)",  # noqa: E501 - a row of a table
        "from sglang.srt.managers import scheduler as s\nif hasattr(s.Scheduler, 'schedule'):\n    HookRegistry.register(S + '.schedule', print)",  # noqa: E501 - a row of a table
        "HookRegistry.register('other.package.function', print)",
        "mine = {}\nmine.register('x', print)",
        "HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.__init__', lambda r, *a, **k: None)",
        "HookRegistry.register('sglang.srt.server_args.ServerArgs.add_cli_args', lambda r, parser: None)",
    ],
)
def test_what_is_no_finding(codes, body):
    assert codes(HEAD + body) == []


def test_versions_choose_a_target(codes):
    source = HEAD + (
        "import sglang\nfrom packaging.version import Version\n"
        "if Version(sglang.__version__) >= Version('0.5.22'):\n    T = S + '.run_batch'\nelse:\n    T = S + '.schedule'\n"
        "HookRegistry.register(T, print)\n"
    )
    assert "SP501" not in codes(source, "0.5.22")
    assert "SP501" in codes(source, "0.5.21")


def test_an_unreadable_target_is_said(findings):
    (finding,) = named(findings(HEAD + "import os\nHookRegistry.register(os.environ['T'], print)"), "SP706")
    assert finding.level == "info"
    assert "os.environ['T']" in finding.message


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("sglang.srt.utils:is_cuda", "sglang.srt.utils.is_cuda"),
        ("scheduler", "module.Class.method"),
        (" sglang.srt.utils.is_cuda", "'sglang.srt.utils.is_cuda'"),
        ("sglang.srt.managers.scheduler.Scheduler.run-batch", "module.Class.method"),
    ],
)
def test_a_misspelt_target(findings, target, hint):
    (finding,) = named(findings(HEAD + f"HookRegistry.register({target!r}, print)"), "SP503")
    assert hint in finding.hint


KINDS = [
    ("sglang.srt.managers.scheduler.Scheduler", "AROUND", "SP511"),  # a class
    ("sglang.srt.entrypoints.engine.Engine.async_generate", "AFTER", "SP504"),  # async
    ("sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request", "AFTER", "SP505"),  # an async generator
    ("sglang.srt.server_args.ServerArgs.launch_command", "AROUND", "SP506"),  # a property
    ("sglang.srt.managers.scheduler", "AROUND", "SP507"),  # a module
    ("sglang.srt.managers.scheduler.logger", "AFTER", "SP507"),  # an object of the standard library's
    ("sglang.srt.managers.scheduler.time", "AROUND", "SP510"),  # the standard library's
    ("sglang.srt.server_args.ServerArgs.__post_init__", "AROUND", "SP531"),  # a struct since 0.5.20
    ("sglang.srt.server_args.ServerArgs.__init__", "AROUND", "SP531"),
    ("sglang.srt.managers.scheduler.run_scheduler_process", "AROUND", "SP526"),
    ("sglang.srt.ray.scheduler_actor.SchedulerActor.__init__", "AROUND", "SP526"),
    ("sglang.srt.managers.multi_tokenizer_mixin.TokenizerWorker.__init__", "AROUND", "SP526"),  # its processes load no plugins
    ("sglang.srt.managers.detokenizer_manager.DetokenizerManager", "REPLACE", "SP526"),
    ("sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.__init__", "AROUND", "SP517"),
]


@pytest.mark.parametrize(("target", "kind", "code"), KINDS, ids=[f"{code}-{target.rpartition('.')[2]}" for target, _, code in KINDS])
def test_kinds_of_targets(codes, target, kind, code):
    found = codes(HEAD + f"def h(*args, **kwargs): ...\nHookRegistry.register({target!r}, h, HookType.{kind})")
    assert found == [code]


@pytest.mark.parametrize(
    ("target", "hook"),
    [
        ("sglang.srt.entrypoints.engine.Engine.async_generate", "async def h(result, *args, **kwargs):\n    return await result"),
        (
            "sglang.srt.managers.tokenizer_manager.TokenizerManager.generate_request",
            "async def h(result, *args, **kwargs):\n    async for item in result:\n        yield item",
        ),
        (
            "sglang.srt.model_loader.loader.DefaultModelLoader._filter_mtp_weights",
            "def h(result, *args, **kwargs):\n    yield from result",
        ),
    ],
)
def test_an_after_hook_that_can_wait_for_its_result(codes, target, hook):
    """The caller awaits, or runs through, what an AFTER hook returns (S9.1)."""
    assert codes(HEAD + f"{hook}\nHookRegistry.register({target!r}, h, HookType.AFTER)") == []


def test_a_struct_is_one_since_0_5_20(findings):
    source = HEAD + 'HookRegistry.register("sglang.srt.server_args.ServerArgs.__post_init__", lambda r, *a, **k: None)'
    (finding,) = findings(source, "0.5.18", "0.5.19", "0.5.20", "0.5.21")
    assert finding.data["releases"] == ["0.5.20", "0.5.21"]


def test_the_detokenizer_loads_plugins_since_0_5_22(findings):
    target = "sglang.srt.managers.detokenizer_manager.DetokenizerManager.event_loop"
    source = HEAD + f"HookRegistry.register({target!r}, lambda original, *a, **k: original(*a, **k), HookType.AROUND)"
    (finding,) = findings(source, "0.5.20", "0.5.21", "0.5.22", "0.5.23")
    assert (finding.code, finding.data["releases"]) == ("SP526", ["0.5.20", "0.5.21"])


def test_the_diffusion_registry(codes):
    head = "from sglang.multimodal_gen.runtime.platforms.plugins import HookRegistry, HookType\ndef h(*a, **k): ...\n"
    assert codes(head + "HookRegistry.register('sglang.multimodal_gen.runtime.managers.gpu_worker.GPUWorker.__init__', h)") == []
    assert codes(head + "HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.run_batch', h)") == ["SP517"]


RUN_BATCH = "sglang.srt.managers.scheduler.Scheduler.run_batch"  # (self, batch, pp_proxy_tensors=None)
FITTING = [
    # definition, type, codes
    ("def h(original, *args, **kwargs): return original(*args, **kwargs)", "AROUND", []),
    ("def h(original, self, batch, pp_proxy_tensors=None): return original(self, batch)", "AROUND", []),
    ("def h(original, scheduler, b, *rest, **words): ...", "AROUND", []),
    ("def h(result, self, batch, *args, **kwargs): ...", "AFTER", []),
    ("def h(self, batch, pp_proxy_tensors=None): ...", "REPLACE", []),
    ("def h(*args, **kwargs): return args, kwargs", "BEFORE", []),
    ("def h(*args, **kwargs): return None", "BEFORE", []),
    ("def h(*args, **kwargs):\n    new = (args, kwargs)\n    return new", "BEFORE", []),
    ("def h(original, self, batch, extra): ...", "AROUND", ["SP513"]),  # callers may leave the third out
    ("def h(original, self, batch, pp_proxy_tensors, extra): ...", "AROUND", ["SP513"]),
    ("def h(original, self): ...", "AROUND", ["SP513"]),
    ("def h(original, self, batch): ...", "AROUND", ["SP513"]),  # callers may pass pp_proxy_tensors
    ("def h(): ...", "AFTER", ["SP513"]),
    ("def h(result): ...", "AFTER", ["SP513"]),
    ("def h(original, *args, **kwargs): return original(*args, **kwargs)", None, ["SP512"]),
    ("def h(original_fn, *args, **kwargs): return original_fn(*args, **kwargs)", "AFTER", ["SP512"]),
    ("def h(*args, **kwargs): return args", "BEFORE", []),  # may be a pair
    ("def h(*args, **kwargs): return (args,)", "BEFORE", ["SP514"]),
    ("def h(*args, **kwargs): return True", "BEFORE", ["SP514"]),
    ("def h(*args, **kwargs): return {}", "BEFORE", ["SP514"]),
    ("async def h(original, *args, **kwargs): ...", "AROUND", ["SP515"]),  # decorators keep a function plain
    ("class H: ...", "AROUND", ["SP511"]),
    ("import functools\ndef other(f): return f\n@other\ndef h(): ...", "AROUND", []),
]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("sglang.srt.managers.schedule_batch.Modality.from_str", []),  # the module imports the class, which has it
        ("sglang.srt.multimodal.modality.Modality.from_str", []),
        ("sglang.srt.managers.multi_tokenizer_mixin.MultiTokenizerRouter.__init__", []),
        ("sglang.srt.models.deepseek_nextn.DeepseekV3ForCausalLMNextN.num_fusable_shared_experts", ["SP508"]),
    ],
)
def test_a_member_is_judged_in_its_class_whatever_module_names_it(codes, target, expected):
    assert codes(f"{HEAD}def h(result, *args, **kwargs): ...\nHookRegistry.register({target!r}, h, HookType.AFTER)") == expected


@pytest.mark.parametrize(("definition", "kind", "expected"), FITTING)
def test_hooks_and_their_parameters(codes, definition, kind, expected):
    given = f", HookType.{kind}" if kind else ""
    assert codes(f"{HEAD}{definition}\nHookRegistry.register({RUN_BATCH!r}, {'H' if 'class H' in definition else 'h'}{given})") == expected


def test_levels_of_a_gap(findings):
    certain = f"def h(original, self): ...\nHookRegistry.register({RUN_BATCH!r}, h, HookType.AROUND)"
    possible = f"def h(original, self, batch): ...\nHookRegistry.register({RUN_BATCH!r}, h, HookType.AROUND)"
    assert [finding.level for finding in findings(HEAD + certain)] == ["error"]
    assert [finding.level for finding in findings(HEAD + possible)] == ["warning"]


def test_an_async_hook_on_a_plain_function(codes):
    target = "sglang.srt.managers.scheduler.Scheduler.get_next_batch_to_run"
    source = f"async def h(original, *a, **k): ...\nHookRegistry.register({target!r}, h, HookType.AROUND)"
    assert codes(HEAD + source) == ["SP515"]
    assert "SP515" in codes(HEAD + source.replace(target, "sglang.srt.utils.common.is_cuda_alike"))  # cached


def test_static_and_class_methods_have_their_own_first_parameter(codes):
    static = "def h(result, parser): ...\nHookRegistry.register('sglang.srt.server_args.ServerArgs.add_cli_args', h)"
    klass = "def h(result, cls, args): ...\nHookRegistry.register('sglang.srt.server_args.ServerArgs.from_cli_args', h)"
    assert codes(HEAD + static) == []
    assert codes(HEAD + klass) == []


def test_a_replacement_that_calls_itself(codes):
    source = (
        "from sglang.srt.distributed.parallel_state import get_tp_group as _orig\n"
        "def h(): return _orig()\n"
        "HookRegistry.register('sglang.srt.distributed.parallel_state.get_tp_group', h, HookType.{})\n"
    )
    assert codes(HEAD + source.format("REPLACE")) == ["SP522"]
    assert codes(HEAD + source.replace("return", "return original and").replace("h():", "h(original):").format("AROUND")) == []


def test_a_replacing_class_that_calls_its_base_by_name(codes):
    source = (
        "from sglang.srt.managers.scheduler import Scheduler\n"
        "class Mine(Scheduler):\n    def run_batch(self, *a, **k):\n        return {}\n"
        "HookRegistry.register('sglang.srt.managers.scheduler.Scheduler', Mine, HookType.REPLACE)\n"
    )
    assert codes(HEAD + source.format("Scheduler.run_batch(self, *a, **k)")) == ["SP522"]
    assert codes(HEAD + source.format("super().run_batch(*a, **k)")) == []


def test_writing_to_sealed_arguments(findings):
    source = (
        "def h(original, self, server_args, *a, **k):\n    server_args.page_size = 1\n    return original(self, server_args, *a, **k)\n"
        "HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.__init__', h, HookType.AROUND)\n"
    )
    (finding,) = findings(HEAD + source, "0.5.15", "0.5.18", "0.5.23")
    assert (finding.code, finding.data["releases"]) == ("SP709", ["0.5.18", "0.5.23"])


def test_a_flag_that_reaches_nobody(codes):
    source = (
        "def h(result, parser):\n    parser.add_argument('--mine')\n"
        "HookRegistry.register('sglang.srt.server_args.ServerArgs.add_cli_args', h)\n"
    )
    assert codes(HEAD + source) == ["SP710"]


def test_what_can_be_read_of_a_sum_is_read(findings):
    source = (
        HEAD
        + "import os\nKNOWN = [S + '.schedule']\nfor t in KNOWN + os.environ['MORE'].split(','):\n    HookRegistry.register(t, print)\n"
    )
    assert sorted(finding.code for finding in findings(source)) == ["SP501", "SP706"]
    source = source.replace("KNOWN + os.environ['MORE'].split(',')", "[*KNOWN, *os.environ['MORE'].split(',')]")
    assert sorted(finding.code for finding in findings(source)) == ["SP501", "SP706"]


def test_an_optional_parameter_that_was_renamed(findings):
    """`use_mscclpp_allreduce` became `use_mscclpp` in 0.5.21, and callers pass it by name."""
    source = HEAD + (
        "def h(group_ranks, local_rank, backend, use_pynccl=None, use_custom_allreduce=None, use_message_queue_broadcaster=False,\n"
        "      group_name=None, use_mscclpp_allreduce=None, use_torch_symm_mem_allreduce=None, recovered_rank=False, rank_offset=0,\n"
        "      max_world_size=None): ...\n"
        "HookRegistry.register('sglang.srt.distributed.parallel_state.init_model_parallel_group', h, HookType.REPLACE)\n"
    )
    (finding,) = findings(source, "0.5.11", "0.5.20", "0.5.21", "0.5.23")
    assert (finding.code, finding.level, finding.data["releases"]) == ("SP513", "warning", ["0.5.21", "0.5.23"])
    assert "'use_mscclpp'" in finding.message


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ("def h(original, self, batch): return None", "warning never uses"),
        ("def h(fn, *args, **kwargs):\n    print(args)", "warning never uses"),
        ("h = lambda original, *a, **k: None", "warning never uses"),
        ("def h(self, batch): return self.x", "error lacks the parameter"),
        ("def h(self, batch): return self(batch)", None),
        ("def h(original, *a, **k): return original(*a, **k)", None),
        ("def h(_original, *a, **k): return None", None),
        ("def h(original, *a, **k): raise RuntimeError('not here')", None),
        ("def h(original, *a, **k): return locals()", None),
        ("def h(original, *a, **k):\n    def inner(): return original(*a, **k)\n    return inner()", None),
        ("def h(*args, **kwargs): return args[0](*args[1:], **kwargs)", None),
        ("def h(original, *a, **k): ...", None),
        ("class K:\n    def __call__(self, original, *a, **k): return None\nh = K()", None),
    ],
)
def test_an_around_hook_calls_the_original(findings, definition, told):
    source = f"{HEAD}{definition}\nHookRegistry.register('sglang.srt.managers.scheduler.Scheduler.run_batch', h, HookType.AROUND)\n"
    found = [f"{finding.level.value} {finding.message}" for finding in findings(source) if finding.code == "SP512"]
    assert len(found) == bool(told)
    if told:
        level, words = told.split(" ", 1)
        assert found[0].startswith(level)
        assert words in found[0]


RUN_BATCH_HOOK = "{}\nHookRegistry.register('sglang.srt.managers.scheduler.Scheduler.run_batch', h, HookType.AROUND)\n"


@pytest.mark.parametrize(
    ("hook", "wanted"),
    [
        ("def h(original, *a, **k):\n    original(*a, **k)", ["SP514"]),
        ("def h(original, *a, **k):\n    result = original(*a, **k)\n    return None", ["SP514"]),
        ("def h(original, *a, **k):\n    result = original(*a, **k)\n    return result", []),
        ("def h(original, *a, **k):\n    original(*a, **k)\n    raise RuntimeError", []),
        ("async def h(original, *a, **k):\n    return original(*a, **k)", ["SP515"]),
    ],
)
def test_what_callers_of_a_plain_target_get(codes, hook, wanted):
    """`run_batch` is no coroutine and promises a result; `scheduler_stage_method` decorates it."""
    assert codes(HEAD + RUN_BATCH_HOOK.format(hook)) == wanted


def test_a_target_without_a_result_loses_none(codes):
    source = "def h(original, *a, **k):\n    original(*a, **k)\nHookRegistry.register(S + '.process_batch_result', h, HookType.AROUND)\n"
    assert codes(HEAD + source) == []
