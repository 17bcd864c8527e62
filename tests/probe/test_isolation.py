"""Whatever a plugin does, the child answers with a fact about that plugin, goes on, and leaves nothing behind."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from sglang_plug.probe.parent import Probe
    from tests.plugins.install import Site


def activate(probe: Probe, site: Site, body: str, *, timeout: float = 10.0, memory: int | None = None) -> dict[str, Any]:
    """Install `body` as module `pa`, activate `pa:activate`, and check that the child still works afterwards."""
    site.write({"pa.py": body, "sound.py": "def activate():\n    return 'sound.Plat'\n"})
    request = {
        "op": "activate",
        "candidates": [{"value": "pa:activate"}, {"value": "sound:activate"}],
        "timeout": timeout,
        "memory": memory,
    }
    reply = probe.ask(request, timeout=60.0)
    assert reply.ended == "ok"
    found, sound = reply.value
    assert sound["returned"] == "sound.Plat"
    return found


def test_the_returned_text_is_the_answer(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "def activate():\n    return 'pa.plat.Plat'\n")
    assert (found["kind"], found["returned"], found["ended"], found["leftovers"]) == ("returned", "pa.plat.Plat", {"kind": "ok"}, [])


def test_none_means_absent_hardware(probe: Probe, site: Site) -> None:
    assert activate(probe, site, "def activate():\n    return None\n")["kind"] == "none"


@pytest.mark.parametrize(
    ("expression", "kind"),
    [("(True, 'x')", "tuple"), ("True", "bool"), ("int", "type"), ("b'x'", "bytes"), ("(lambda: (yield))()", "generator")],
)
def test_a_wrong_return_is_told_by_its_type(probe: Probe, site: Site, expression: str, kind: str) -> None:
    found = activate(probe, site, f"def activate():\n    return {expression}\n")
    assert (found["kind"], found["type"]) == ("wrong_type", kind)


def test_a_coroutine_is_a_wrong_type_and_not_a_warning(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "async def activate():\n    return 'x.Y'\n")
    assert (found["kind"], found["type"], found["output"]["head"]) == ("wrong_type", "coroutine", "")


def test_the_root_cause_is_the_innermost_failure_with_its_line(probe: Probe, site: Site) -> None:
    body = """
        def low():
            raise OSError('libacme.so.3')

        def activate():
            try:
                low()
            except OSError as exc:
                raise RuntimeError('no device') from exc
    """
    error = activate(probe, site, body)["error"]
    assert (error["type"], error["message"]) == ("RuntimeError", "no device")
    assert (error["root"]["type"], error["root"]["message"], error["root"]["where"]["line"]) == ("OSError", "libacme.so.3", 3)


def test_a_failing_import_is_told_apart_from_a_failing_call(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "import vendor_rt_missing\n")
    assert (found["stage"], found["error"]["type"], found["error"]["root"]["where"]["line"]) == ("load", "ModuleNotFoundError", 1)


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit"])
def test_what_except_exception_does_not_catch_is_marked(probe: Probe, site: Site, name: str) -> None:
    error = activate(probe, site, f"def activate():\n    raise {name}(0)\n")["error"]
    assert (error["type"], error["exception"]) == (name, False)


def test_an_exit_behind_pythons_back(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "import os\ndef activate():\n    os._exit(0)\n")
    assert (found["kind"], found["stage"], found["ended"]["code"]) == ("ended", "call", 0)


def test_a_segfault_is_named_with_its_line(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "import ctypes\ndef activate():\n    ctypes.string_at(0)\n")
    assert found["ended"]["name"] == "SIGSEGV"
    assert any(frame["file"].endswith("pa.py") and frame["line"] == 3 for frame in found["ended"]["stack"])


def test_a_hang_ends_in_time_and_shows_where_it_hangs(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "import time\ndef activate():\n    while True:\n        time.sleep(1)\n", timeout=0.5)
    assert found["ended"]["kind"] == "timeout"
    assert found["ended"]["stack"][0] == {"file": str(site.root / "pa.py"), "line": 4, "function": "activate"}


def test_a_hang_at_import_says_so(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "import threading\nthreading.Event().wait()\ndef activate(): pass\n", timeout=0.5)
    assert (found["stage"], found["ended"]["kind"]) == ("load", "timeout")


def test_a_plugin_that_ignores_sigterm_and_blocks_signals_still_ends(probe: Probe, site: Site) -> None:
    body = """
        import signal, time
        def activate():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
            time.sleep(600)
    """
    assert activate(probe, site, body, timeout=0.5)["ended"]["kind"] == "timeout"


def test_a_flood_is_counted_and_cut(probe: Probe, site: Site) -> None:
    body = """
        import os
        def activate():
            for _ in range(30):
                os.write(1, b'x' * (1 << 20))
            print('{"ok": true}')
            return 'pa.Plat'
    """
    found = activate(probe, site, body)
    assert found["returned"] == "pa.Plat"
    assert found["output"]["bytes"] > 30 << 20
    assert len(found["output"]["head"]) == 32 << 10


def test_an_endless_flood_ends_in_time(probe: Probe, site: Site) -> None:
    body = "import os\ndef activate():\n    while True:\n        os.write(2, b'y' * 65536)\n"
    assert activate(probe, site, body, timeout=0.7)["ended"]["kind"] == "timeout"


def test_closed_descriptors_do_not_cost_the_answer(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "import os\ndef activate():\n    os.closerange(0, 4096)\n    return 'pa.Plat'\n")
    assert found["returned"] == "pa.Plat"


def test_writing_into_every_descriptor_does_not_corrupt_the_answer(probe: Probe, site: Site) -> None:
    body = """
    import os
    def activate():
        for fd in range(3, 512):
            try:
                os.write(fd, b'{"ok": true, "reply": []}\\n')
            except OSError:
                continue
        return 'pa.Plat'
    """
    assert activate(probe, site, body)["returned"] == "pa.Plat"


def test_a_left_over_child_is_reported_and_ended(probe: Probe, site: Site, tmp_path: Path) -> None:
    body = f"""
    import subprocess, sys
    def activate():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
        return "pa.Plat"
    """
    found = activate(probe, site, body)
    pid = int((tmp_path / "pid").read_text())
    assert found["returned"] == "pa.Plat"
    assert [left["pid"] for left in found["leftovers"]] == [pid]
    assert not Path(f"/proc/{pid}").exists()


def test_a_daemon_in_a_session_of_its_own_is_ended_too(probe: Probe, site: Site, tmp_path: Path) -> None:
    body = f"""
    import os, time
    def activate():
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(write, str(os.getpid()).encode())
                time.sleep(600)
            os._exit(0)
        open({str(tmp_path / "pid")!r}, "w").write(os.read(read, 20).decode())
        return "pa.Plat"
    """
    found = activate(probe, site, body)
    assert found["returned"] == "pa.Plat"
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


def test_a_fork_that_returns_twice_answers_once(probe: Probe, site: Site) -> None:
    found = activate(
        probe, site, "import os\ndef activate():\n    return 'child.Plat' if os.fork() == 0 else (os.wait(), 'parent.Plat')[1]\n"
    )
    assert found["returned"] == "parent.Plat"


def test_the_answer_of_another_process_is_no_answer(probe: Probe, site: Site) -> None:
    body = """
        import os
        def activate():
            if os.fork() == 0:
                return "child.Plat"
            os.wait()
            os._exit(5)
    """
    found = activate(probe, site, body)
    assert (found["kind"], found["ended"]["code"]) == ("ended", 5)


def test_a_plugin_that_kills_its_process_group_kills_itself_alone(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "import os\ndef activate():\n    os.killpg(0, 9)\n")
    assert found["ended"]["name"] == "SIGKILL"


def test_a_memory_limit_holds(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "def activate():\n    return len(bytearray(1 << 30))\n", memory=256 << 20)
    assert found["error"]["type"] == "MemoryError"


def test_an_answer_beyond_all_measure_is_told(probe: Probe, site: Site) -> None:
    found = activate(probe, site, "def activate():\n    return 'x' * (9 << 20)\n")
    assert (found["kind"], found["ended"]["kind"]) == ("ended", "too_large")


def test_threads_left_running_do_not_hold_the_answer(probe: Probe, site: Site) -> None:
    body = "import threading\ndef activate():\n    threading.Thread(target=threading.Event().wait).start()\n    return 'pa.Plat'\n"
    assert activate(probe, site, body)["ended"] == {"kind": "ok"}


@pytest.mark.parametrize(
    "body",
    [
        "def activate():\n    import sglang.srt.platforms\n",
        "import sglang\ndef activate(): return 'pa.Plat'\n",
        "def activate():\n    try:\n        import sglang\n    except Exception:\n        return None\n",
        "def activate():\n    try:\n        import sglang\n    except BaseException:\n        return 'pa.Plat'\n",
        "import importlib.util\ndef activate():\n    return importlib.util.find_spec('sglang') and 'pa.Plat'\n",
    ],
)
def test_a_plugin_that_imports_sglang_is_not_judged_without_it(probe: Probe, site: Site, body: str) -> None:
    found = activate(probe, site, body)
    assert found["kind"] == "needs_host"
    assert found["at"]["file"] == str(site.root / "pa.py")


def test_what_a_plugin_changes_stays_in_its_fork(probe: Probe, site: Site) -> None:
    activate(
        probe, site, "import os, sys\nos.environ['SGLANG_PLATFORM'] = 'x'\nos.chdir('/')\nsys.path.clear()\ndef activate(): return None\n"
    )
    facts = probe.require({"op": "environment"})
    assert facts["interpreter"]["cwd"] != "/"
    assert str(site.root) in facts["interpreter"]["path"]


def test_the_child_ends_when_the_tool_goes_away_in_the_middle_of_a_call(probe: Probe, site: Site) -> None:
    note = str(site.root / "pid")
    site.write({"pa.py": f"import time, os\ndef activate():\n    open({note!r}, 'w').write(str(os.getpid()))\n    time.sleep(600)\n"})
    reply = probe.ask({"op": "activate", "candidates": [{"value": "pa:activate"}], "timeout": 600}, timeout=2.0)
    assert reply.ended == "timeout"
    pid = int((site.root / "pid").read_text())
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        os.sched_yield()
    assert not Path(f"/proc/{pid}").exists()
