"""Imports of SGLang's inside: what a release lacks is found, what is guarded is not."""

from __future__ import annotations

import pytest

# What releases have was read off their wheels: get_pp_group left `sglang.srt.distributed`'s star export in 0.5.21;
# create_flashinfer_kv_indices_triton is bound in sglang.kernels.ops.attention.utils in 0.5.16 to 0.5.22 alone.
GONE = "from sglang.srt.distributed import get_pp_group"
MODULE_GONE = "import sglang.srt.layers.attention.fla.chunk"  # until 0.5.15


def test_a_name_that_left(findings):
    (finding,) = findings(GONE)
    assert finding.code == "SP701"
    assert finding.location.line == 1
    assert "parallel_state.get_pp_group" in finding.hint


def test_the_same_name_where_it_is_still_there(codes):
    assert codes(GONE, "0.5.20") == []


def test_releases_are_merged_into_one_finding(findings):
    (finding,) = findings(GONE, "0.5.19", "0.5.20", "0.5.21", "0.5.22")
    assert finding.data["releases"] == ["0.5.21", "0.5.22"]


def test_a_module_that_left(findings):
    (finding,) = findings(MODULE_GONE, "0.5.15", "0.5.16")
    assert (finding.code, finding.data["releases"]) == ("SP702", ["0.5.16"])
    assert "sglang.kernels.ops.attention.fla.chunk" in finding.hint


def test_a_binding_of_some_releases(findings):
    source = "from sglang.kernels.ops.attention.utils import create_flashinfer_kv_indices_triton"
    (finding,) = findings(source, "0.5.21", "0.5.22", "0.5.23")
    assert finding.data["releases"] == ["0.5.23"]


@pytest.mark.parametrize(
    "source",
    [
        "from sglang.srt.managers.scheduler import Scheduler",
        "import sglang.srt.managers.scheduler as s\ns.Scheduler.run_batch",
        "import sglang\nsglang.Engine",
        "from sglang import ServerArgs, Engine, gen, function",
        "from sglang.srt.platforms import current_platform",  # a module's __getattr__
        "from sglang.srt.server_args import FunctionCallParser",  # a lazy re-export from a table
        "from sglang.multimodal_gen import DiffGenerator, SamplingParams",
        "from sglang.srt import utils",  # a submodule of a folder without __init__.py
        "from sglang.srt.utils import is_cuda",
        "from sglang.srt.layers.attention.nsa import dsa_indexer",  # a shim's star import
        "from torch import nope",
        "from mine import other",
    ],
)
def test_what_is_there_is_no_finding(codes, source):
    assert codes(source) == []


@pytest.mark.parametrize(
    "source",
    [
        f"try:\n    {GONE}\nexcept ImportError:\n    get_pp_group = None",
        f"try:\n    {GONE}\nexcept (ImportError, AttributeError):\n    from sglang.srt.distributed.parallel_state import get_pp_group",
        f"try:\n    {GONE}\nexcept Exception:\n    pass",
        f"import contextlib\nwith contextlib.suppress(ImportError):\n    {GONE}",
        f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {GONE}",
        f"import typing\nif typing.TYPE_CHECKING:\n    {GONE}",
        f"import sglang\nfrom packaging.version import Version\nif Version(sglang.__version__) < Version('0.5.21'):\n    {GONE}",
        f"import sglang\nfrom packaging import version as v\nif v.parse(sglang.__version__) >= v.parse('0.5.21'):\n    pass\nelse:\n    {GONE}",  # noqa: E501 - a row of a table
        f"from importlib.metadata import version\nO = tuple(int(x) for x in version('sglang').split('.')[:3]) < (0, 5, 21)\nif O:\n    {GONE}",  # noqa: E501 - a row of a table
        f"import sglang.srt.distributed as d\nif hasattr(d, 'get_pp_group'):\n    {GONE}",
        f"from importlib.util import find_spec\nif find_spec('sglang.srt.layers.attention.fla'):\n    {MODULE_GONE}",
        f"def has_it(): ...\ndef f():\n    if not has_it():\n        return\n    {GONE}",
        f"try:\n    from sglang.srt.runtime_nope import x\nexcept ImportError:\n    x = None\nif x is not None:\n    {GONE}",
        f"try:\n    from sglang.nope import x\n    HAVE = True\nexcept ImportError:\n    HAVE = False\nif HAVE:\n    {GONE}",
        f"def f():\n    try:\n        {GONE}\n    except ImportError:\n        return\n    return get_pp_group()",
    ],
)
def test_guards_hold(codes, source):
    assert codes(source) == []


@pytest.mark.parametrize(
    "source",
    [
        f"def later():\n    {GONE}",
        f"import os\nif os.environ.get('FLAG'):\n    {GONE}",
        f"try:\n    {GONE}\nexcept ValueError:\n    pass",
        f"try:\n    {GONE}\nexcept ImportError as exc:\n    raise RuntimeError('too old') from exc",
        f"import sglang\nfrom packaging.version import Version\nif Version(sglang.__version__) >= Version('0.5.20'):\n    {GONE}",
        f"class A:\n    def m(self):\n        {GONE}",
        f"try:\n    from sglang.nope import x\nexcept ImportError:\n    {GONE}",
    ],
)
def test_what_does_not_guard(codes, source):
    assert "SP701" in codes(source)


def test_a_fallback_is_judged_where_it_runs(findings):
    source = """
        try:
            from sglang.srt.layers.attention.fla.chunk import chunk_gated_delta_rule
        except ImportError:
            from sglang.kernels.ops.attention.fla.chunk import chunk_gated_delta_rule
    """
    assert findings(source, "0.5.12", "0.5.15", "0.5.16", "0.5.23") == []


def test_a_module_imported_by_its_name(findings):
    (finding,) = findings("import importlib\nimportlib.import_module('sglang.srt.layers.attention.fla.chunk')")
    assert finding.code == "SP702"


def test_attributes_of_modules_and_classes(findings):
    source = """
        import sglang.srt.distributed as d
        from sglang.srt.managers.scheduler import Scheduler
        d.get_pp_group()
        Scheduler.run_batch
        original = Scheduler.schedule
    """
    found = {(finding.code, finding.location.line) for finding in findings(source)}
    assert found == {("SP703", 4), ("SP703", 6)}


@pytest.mark.parametrize(
    "source",
    [
        "from sglang.srt.managers.scheduler import Scheduler\nif hasattr(Scheduler, 'schedule'):\n    Scheduler.schedule",
        "from sglang.srt.managers.scheduler import Scheduler\ntry:\n    Scheduler.schedule\nexcept AttributeError:\n    pass",
        "from sglang.srt.managers.scheduler import Scheduler\nScheduler.mine = 1\nScheduler.mine",
        "from sglang.srt.managers.scheduler import Scheduler\nScheduler.__mro__\nScheduler.__name__\nScheduler.mro()",
        "from sglang.srt.server_args import ServerArgs\nServerArgs.tp_size\nServerArgs.resolve_once",
        "from sglang.srt.layers.linear import ColumnParallelLinear\nColumnParallelLinear.register_buffer",  # torch.nn.Module's
        "from sglang.srt.managers.io_struct import GenerateReqInput\nx = hasattr(GenerateReqInput, 'q') and GenerateReqInput.q",
        "from sglang.srt.utils import torch\ntorch.anything",
    ],
)
def test_attributes_that_are_no_finding(codes, source):
    assert codes(source) == []


def test_a_file_that_is_not_python(findings):
    (finding,) = findings("from sglang import (\n")
    assert finding.code == "SP707"


def test_a_comment_silences_a_line(codes):
    assert codes(f"{GONE}  # sglang-plug: ignore[SP701]") == []
    assert codes(f"{GONE}  # sglang-plug: ignore") == []
    assert codes(f"# sglang-plug: ignore[SP7]\n{GONE}") == []
    assert codes(f"# sglang-plug: ignore-file[SP701]\n\n{GONE}") == []
    assert codes(f"{GONE}  # sglang-plug: ignore[SP501]") == ["SP701"]


def test_a_version_helper_is_answered(findings):
    source = (
        "import sglang\nfrom packaging.version import Version\n"
        "def at_least(v):\n    mine = Version(sglang.__version__)\n    return mine >= Version(v)\n"
        "if at_least('0.5.22'):\n    from sglang.srt.gone import x\n"
    )
    (finding,) = findings(source, "0.5.21", "0.5.23")
    assert (finding.code, finding.data["releases"]) == ("SP702", ["0.5.23"])


def test_a_name_that_comes_later_says_when(findings):
    (found,) = findings("from sglang.srt.runtime_context import mamba_cache_chunk_size\n", "0.5.16", "0.5.17", "0.5.23")
    assert found.data["releases"] == ["0.5.16", "0.5.17"]
    assert "sglang>=0.5.18" in found.hint


def test_a_folder_that_nobody_may_look_into_is_said(plugins, monkeypatch):
    import os

    from sglang_plug.checks.source.run import check

    root = plugins.lay({"plug/__init__.py": "import sglang\n", "plug/closed/mod.py": "import sglang\n"})
    scandir = os.scandir

    def refuse(path):  # what a mode of 0 does to everybody but root
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = [finding for finding in check(root, ("0.5.23",)).findings if finding.code == "SP707"]
    assert [(finding.location.path, "Permission denied" in finding.message) for finding in found] == [("plug/closed", True)]


@pytest.mark.parametrize(
    ("source", "silent"),
    [
        ("from sglang.srt.distributed import (\n    get_tp_group,\n    get_pp_group,  # sglang-plug: ignore[SP701]\n)\n", True),
        ("from sglang.srt.distributed import (  # sglang-plug: ignore[SP701]\n    get_tp_group,\n    get_pp_group,\n)\n", True),
        ("from sglang.srt.distributed import (\n    get_pp_group,\n)  # sglang-plug: ignore[SP5, SP701] why\n", True),
        ("# sglang-plug: ignore[import-missing]\nfrom sglang.srt.distributed import get_pp_group\n", True),
        ("from sglang.srt.distributed import get_pp_group  # sglang-plug: ignore[SP501, SP702]\n", False),
        ("def f():\n    from sglang.srt.distributed import get_pp_group\n    return 1  # sglang-plug: ignore\n", False),
    ],
)
def test_a_comment_silences_its_whole_statement(codes, source, silent):
    assert codes(source) == ([] if silent else ["SP701"])


def test_a_missing_name_is_found_on_its_own_line(findings):
    (found,) = findings("from sglang.srt.distributed import (\n    get_tp_group,\n    get_pp_group,\n)\n")
    assert (found.location.line, found.location.column) == (3, 5)


def test_odd_files_end_in_words(plugins):
    """Links in circles, too large, nested beyond the parser, other encodings, names that go in circles: never a traceback, and soon."""
    from sglang_plug.checks.source.run import check

    circles = """\
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType
        def h(o, *a, **k): return o(*a, **k)
        def t(x): return t(x)
        A = B
        B = A
        class C(C): pass
        class D:
            def __init__(self, d): self.d = D(self); self.t = self.t
            def go(self): HookRegistry.register(self.t, h, HookType.AROUND); self.go(); D(self).go()
        HookRegistry.register(t(1), h, HookType.AROUND)
        HookRegistry.register(A, h, HookType.AROUND)
        register = register
        register("x", h)
        L = []
        for q in L: L.append(q)
        for q in L: HookRegistry.register(q, h, HookType.AROUND)
        for i in range(10**9): HookRegistry.register(f"sglang.x.{i}", h, HookType.AROUND)
        """
    root = plugins.lay({"plug/__init__.py": "", "plug/circles.py": circles, "plug/deep.py": "import sglang\nx = " + "-" * 5000 + "1\n"})
    (root / "plug/self.py").symlink_to("self.py")
    (root / "plug/loop").symlink_to("..")
    (root / "plug/large.py").write_bytes(b"import sglang\n" * 400_000)
    (root / "plug/latin.py").write_bytes(b"# coding: latin-1\nX = '\xfc'\nfrom sglang.srt.distributed import get_pp_group\n")
    (root / "plug/nul.py").write_bytes(b"import sglang\x00\n")
    told = {(finding.location.path, finding.code, finding.level.value) for finding in check(root, ("0.5.23",)).findings}
    assert {
        ("plug/self.py", "SP707", "error"),
        ("plug/large.py", "SP707", "info"),
        ("plug/deep.py", "SP707", "error"),
        ("plug/nul.py", "SP707", "error"),
        ("plug/latin.py", "SP701", "error"),
        ("plug/circles.py", "SP706", "info"),
    } <= told


def test_a_table_of_thousands_is_read_to_its_end(findings):
    rows = "".join(f"    ('sglang.srt.managers.scheduler.Scheduler.run_batch', {number}),\n" for number in range(3000))
    source = (
        "from sglang.srt.plugins.hook_registry import HookRegistry, HookType\ndef h(o, *a, **k): return o(*a, **k)\n"
        f"T = [\n{rows}    ('sglang.srt.managers.scheduler.Scheduler.gone_name', 0)]\n"
        "for t, _ in T: HookRegistry.register(t, h, HookType.AROUND)\n"
    )
    assert [finding.code for finding in findings(source)] == ["SP501"]
