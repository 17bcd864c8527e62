"""Monkey patches: a name set on SGLang that SGLang does not have is found; a plugin's own names and guarded patches are not."""

from __future__ import annotations

import pytest

# get_next_batch_to_run is a method of Scheduler in every release; `sglang.srt.distributed.get_pp_group` left in 0.5.21.
SCHEDULER = "from sglang.srt.managers.scheduler import Scheduler\n"
DISTRIBUTED = "import sglang.srt.distributed as dist\n"


@pytest.mark.parametrize(
    "source",
    [
        SCHEDULER + "Scheduler.get_next_batch_to_runs = print",
        SCHEDULER + "setattr(Scheduler, 'get_next_batch_to_runs', print)",
        SCHEDULER + "NAME = 'get_next_batch_to_runs'\nsetattr(Scheduler, NAME, print)",
        SCHEDULER + "for name in ('run_batch', 'get_next_batch_to_runs'):\n    setattr(Scheduler, name, print)",
        SCHEDULER + "S = Scheduler\ndef patch():\n    S.get_next_batch_to_runs = print",
        "import sglang.srt.managers.scheduler as m\nm.Scheduler.get_next_batch_to_runs = print",
        "import importlib\nm = importlib.import_module('sglang.srt.managers.scheduler')\nm.Scheduler.get_next_batch_to_runs = print",
        (
            "import sys, sglang.srt.managers.scheduler\nm = sys.modules['sglang.srt.managers.scheduler']\n"
            "m.Scheduler.get_next_batch_to_runs = print"
        ),
        "def own(module):\n    module.x = 1\n" + SCHEDULER + "Scheduler.get_next_batch_to_runs = Scheduler.run_batch",
    ],
)
def test_a_patch_on_a_name_that_is_nearly_there(findings, source):
    (finding,) = findings(source)
    assert (finding.code, finding.level) == ("SP711", "warning")
    assert finding.subject["name"].endswith("Scheduler.get_next_batch_to_runs")
    assert "Scheduler.get_next_batch_to_run" in finding.hint


def test_a_patch_on_a_name_that_left(findings):
    (finding,) = findings(DISTRIBUTED + "dist.get_pp_group = print", "0.5.20", "0.5.21", "0.5.23")
    assert (finding.code, finding.data["releases"]) == ("SP711", ["0.5.21", "0.5.23"])
    assert "parallel_state.get_pp_group" in finding.hint
    assert finding.cause == "SGLang 0.5.11 to 0.5.20 has it"


@pytest.mark.parametrize(
    "source",
    [
        SCHEDULER + "Scheduler.run_batch = print",
        SCHEDULER + "Scheduler._my_plugin_patched = True\nif Scheduler._my_plugin_patched: print()",
        SCHEDULER + "if hasattr(Scheduler, 'get_next_batch_to_runs'):\n    Scheduler.get_next_batch_to_runs = print",
        SCHEDULER + "old = getattr(Scheduler, 'get_next_batch_to_runs', None)\nif old is not None:\n"
        "    Scheduler.get_next_batch_to_runs = print",
        SCHEDULER + "try:\n    Scheduler.get_next_batch_to_runs = print\nexcept AttributeError:\n    pass",
        SCHEDULER + "for name in open('names'):\n    setattr(Scheduler, name, print)",
        SCHEDULER + "def patch(name):\n    setattr(Scheduler, name, print)\n    Scheduler.whatever",
        "from sglang.version import __version__\nfrom packaging.version import Version\n" + DISTRIBUTED
        + "if Version(__version__) < Version('0.5.21'):\n    dist.get_pp_group = print",
        DISTRIBUTED + "dist.my_own_thing = 1",
        "from sglang.srt import nothing_there\nnothing_there.x = 1  # the import is the finding",
    ],
)  # fmt: skip
def test_what_is_no_lost_patch(codes, source):
    assert "SP711" not in codes(source)
    assert "SP703" not in codes(source)


def test_the_original_is_read_first(codes):
    """It raises AttributeError there; the store is never reached."""
    source = SCHEDULER + "original = Scheduler.get_next_batch_to_runs\nScheduler.get_next_batch_to_runs = print"
    assert codes(source) == ["SP703"]
    assert codes(SCHEDULER + "Scheduler.get_next_batch_to_runs = wrap(Scheduler.get_next_batch_to_runs)") == ["SP703"]


def test_a_name_that_another_file_sets_may_be_read(codes):
    files = {
        "plug/__init__.py": "",
        "plug/flags.py": SCHEDULER + "Scheduler.mine = 1",
        "plug/use.py": SCHEDULER + "print(Scheduler.mine)",
    }
    assert codes(files) == []


def test_the_else_of_a_guarded_import_runs_where_the_import_succeeded(codes):
    source = "try:\n    from sglang.srt.distributed import get_pp_group\nexcept ImportError:\n    pass\nelse:\n    {}"
    body = "import sglang.srt.distributed as dist\n    dist.get_pp_group"
    assert codes(source.format(body)) == []
    assert codes(source.format("from sglang.srt.distributed import get_pp_groups"), "0.5.20") == ["SP701"]
