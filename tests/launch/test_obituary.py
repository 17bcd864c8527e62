"""Logs as real engines wrote them, and what is read from them."""

from __future__ import annotations

import pytest

from sglang_plug.launch.obituary import MEANINGS, Listener

NUMA = """\
[2026-01-01 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/e/sglang/srt/managers/scheduler.py", line 6355, in run_scheduler_process
    scheduler = Scheduler(
  File "/e/sglang/srt/utils/numa_utils.py", line 463, in init_threads_binding
    assert world_size <= n_numa_node, (
AssertionError: SGLANG_CPU_OMP_THREADS_BIND is not set, in this case, the total number of ranks (...)

[2026-01-01 10:00:00] Received sigquit from a child process. It usually means the child failed.
"""
CHAINED = """\
Traceback (most recent call last):
  File "/e/a.py", line 1, in <module>
    import vendor
ModuleNotFoundError: No module named 'vendor_rt'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/e/sglang/srt/utils/common.py", line 1122, in get_device
    raise RuntimeError("No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available.")
RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available.
"""
TWO = CHAINED + "[2026-01-01 10:00:01] later\nTraceback (most recent call last):\n  File x\nKeyError: 'second'\n"
DETOKENIZER = """\
[2026-01-01 10:00:00] DetokenizerManager hit an exception: Traceback (most recent call last):
  File "/e/sglang/srt/managers/detokenizer_manager.py", line 560, in run_detokenizer_process
    manager.event_loop()
ZeroDivisionError: division by zero
"""


def obituary(log: str, status: int = 1):
    listener = Listener()
    for line in log.splitlines():
        if line.strip():
            listener.hear(line)
    return listener.write(status, "weights loaded")


def test_process_error_and_meaning_of_a_known_end():
    found = obituary(NUMA, -9)
    assert found.process == "scheduler TP1"
    assert found.error.startswith("AssertionError: SGLANG_CPU_OMP_THREADS_BIND is not set")
    assert "SGLANG_CPU_OMP_THREADS_BIND='0|1'" in found.hint
    assert found.ended == "signal SIGKILL, after: weights loaded"


@pytest.mark.parametrize("log", [CHAINED, TWO])
def test_the_first_traceback_counts_and_its_last_exception(log):
    found = obituary(log)
    assert found.error == "RuntimeError: No accelerator (CUDA, XPU, HPU, NPU, MUSA, MPS) or platform plugin is available."
    assert "get_device" in found.hint


def test_the_detokenizer_is_named():
    found = obituary(DETOKENIZER)
    assert (found.process, found.error, found.meaning) == ("detokenizer", "ZeroDivisionError: division by zero", None)


def test_the_stand_ins_own_word():
    found = obituary("sglang serve: scheduler_TP0: TypeError: zeros(): argument 'dtype' must be torch.dtype, not str")
    assert (found.process, found.error) == ("scheduler TP0", "TypeError: zeros(): argument 'dtype' must be torch.dtype, not str")


TOLERATED = """\
Failed to apply hooks to sglang.srt.managers.scheduler.Scheduler.gone
Traceback (most recent call last):
  File "/e/sglang/srt/plugins/hook_registry.py", line 10, in resolve
AttributeError: type object 'Scheduler' has no attribute 'gone'
Failed to load plugin other from group sglang.srt.plugins
Traceback (most recent call last):
  File "/p/other.py", line 1, in <module>
ModuleNotFoundError: No module named 'vendor'
Failed to apply hooks to sglang.x
sglang_plug.errors.TargetError: SGLang 0.5.23 has this target, the stand-in has not
"""
RAISED = """\
[2026-01-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/e/sglang/srt/managers/scheduler.py", line 10, in run_scheduler_process
    scheduler.event_loop()
  File "/p/acme_hooks/inner.py", line 7, in boom
    return helper()
  File "/e/json/decoder.py", line 3, in decode
    raise ValueError
ValueError: no JSON
"""


def test_what_the_engine_survived_is_not_its_end():
    assert obituary(TOLERATED).error is None
    assert obituary(TOLERATED + RAISED).error == "ValueError: no JSON"
    assert obituary(TOLERATED + "KeyError: 'x'").error == "KeyError: 'x'"


def test_a_plugin_whose_code_raised_is_named():
    listener = Listener({"acme_hooks": "acme"})
    for line in (TOLERATED + RAISED).splitlines():
        listener.hear(line)
    found = listener.write(1, "serving")
    assert (found.process, found.raised) == ("scheduler TP0", "plugin acme, /p/acme_hooks/inner.py:7, in boom")
    assert obituary(RAISED).raised is None


PASSED = """\
Traceback (most recent call last):
  File "/e/sglang/multimodal_gen/runtime/managers/worker_bootstrap.py", line 10, in bootstrap_scheduler_process
    run_scheduler_process()
  File "/p/acme_hooks/hooks.py", line 27, in announce
    original(self)
  File "/e/sglang/multimodal_gen/a.py", line 46, in get_attn_backend
    raise ValueError
ValueError: Invalid attention backend for acme
"""


@pytest.mark.parametrize(
    ("log", "raised"),
    [
        (
            PASSED,
            "/e/sglang/multimodal_gen/a.py:46, in get_attn_backend; called through plugin acme, /p/acme_hooks/hooks.py:27, in announce",
        ),
        (  # what the plugin raised, and the engine wrapped on the way through a hook
            'Traceback (most recent call last):\n  File "/p/acme_hooks/ops.py", line 3, in forward\nKeyError: 1\n'
            "The above exception was the direct cause of the following exception:\n" + PASSED,
            "plugin acme, /p/acme_hooks/ops.py:3, in forward",
        ),
    ],
)
def test_a_hook_that_called_its_original_is_not_held_for_the_cause(log, raised):
    listener = Listener({"acme_hooks": "acme"})
    for line in log.splitlines():
        listener.hear(line)
    found = listener.write(1, "imports")
    assert (found.process, found.raised) == ("diffusion worker", raised)
    assert "get_attn_backend_cls_str" in (found.meaning or "")


@pytest.mark.parametrize(
    ("log", "hint"),
    [(RAISED, "`sglang-plug doctor acme` tries it"), (CHAINED.replace("No acc", "Acc"), "`sglang-plug doctor` tries the plugins")],
)
def test_where_nothing_is_known_doctor_is_the_way(log, hint):
    listener = Listener({"acme_hooks": "acme"})
    for line in log.splitlines():
        listener.hear(line)
    assert (listener.write(1, "imports").hint or "").startswith(hint)
    assert obituary(log).hint is None


def test_a_diffusion_worker_that_was_killed():
    found = obituary("error: sglang-diffusionWorker-1 ended while serving (signal SIGKILL)")
    assert (found.process, found.error) == ("diffusion worker 1", "ended while serving (signal SIGKILL)")
    assert "oom`; offload" in (found.hint or "")
    assert obituary("error: the port is taken").error == "the port is taken"


def test_what_was_said_before_it_served_is_not_its_end():
    listener = Listener()
    listener.hear("RuntimeError: early")
    listener.begin_anew()
    listener.hear("late")
    assert listener.write(1, "serving").error is None


@pytest.mark.parametrize(("name", "hint"), [("SIGKILL", True), ("SIGTERM", False)])
def test_a_process_that_was_killed_is_named_and_memory_only_suspected_for_sigkill(name, hint):
    found = obituary(f"[2026-01-01 10:00:00 MainProcess] CRITICAL x: scheduler_TP1 (pid 7) has ended: killed by {name}; shutting down")
    assert (found.process, found.error) == ("scheduler TP1", f"killed by {name}")
    assert ("oom" in (found.hint or "")) is hint


@pytest.mark.parametrize(
    "line",
    ["sglang serve: no such option: --prot; did you mean --port?", "sglang serve: error: no such option: --prot; did you mean --port?"],
)
def test_a_command_line_that_the_engine_refuses(line):
    found = obituary(f"usage: sglang serve [-h]\n{line}", 2)
    assert (found.process, found.error) == ("main", "no such option: --prot; did you mean --port?")


def test_a_silent_death():
    found = obituary("Loading", 3)
    assert (found.error, found.process, found.meaning) == (None, None, None)
    assert found.tail == ("Loading",)


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: No accelerator (CUDA, XPU) or platform plugin is available.",
        "AttributeError: 'torch.device' object has no attribute 'split'",
        "_pickle.PicklingError: Can't pickle <function run_scheduler_process at 0x7f>: it's not the same object",
        "OSError: [Errno 98] Address already in use",
        "RuntimeError: Expected one of cpu, cuda, ipu, xpu device type at start of device string: mydev",
        "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
        "OSError: [Errno 28] No space left on device",
        "ImportError: cannot import name 'current_platform' from 'sglang.srt.platforms' (unknown location)",
        "RuntimeError: SGLANG_PLATFORM='x' not found in discovered platform plugins (available: none).",
        "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge",
    ],
)
def test_every_known_error_is_explained(line):
    found = obituary("Traceback (most recent call last):\n  File x\n" + line)
    assert found.error == line
    assert found.meaning
    assert found.hint


def test_each_meaning_says_what_to_do():
    assert all(meaning.means and meaning.hint for meaning in MEANINGS)
