"""Children as real processes: the order of phases seen from inside, what crosses the boundary, and how they end (S7)."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

from sglang_plug.core import spawn
from tests.core.worlds import PLATFORMS
from tests.plugins.install import DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS, SRT_PLATFORMS, SRT_PLUGINS, Site

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = {"srt": (SRT_PLATFORMS, SRT_PLUGINS), "diffusion": (DIFFUSION_PLATFORMS, DIFFUSION_PLUGINS)}
ENGINE = {
    "note.py": """
        import os
        def note(text):
            with open(os.environ["NOTES"], "a") as file:
                file.write(text + "\\n")
    """,
    "fake_engine.py": """
        from enum import Enum
        class PlatformEnum(Enum):
            OOT = "oot"
        class Platform:
            _enum = None
            device_name = device_type = "none"
            def init_backend(self): pass
    """,
    "fakert/__init__.py": "",
    "fakert/args.py": """
        from note import note
        note("import args")
        class ServerArgs:
            def __init__(self, model): self.model = model
            def __setstate__(self, state):
                note("materialise")
                self.__dict__.update(state)
    """,
    "fakert/worker.py": """
        from note import note
        note("import worker")
        def run(args, pipe):
            note(f"original run {args.model}")
            pipe.send("ready")
    """,
    "fakert/boot.py": """
        import os
        from functools import partial
        from sglang_plug.core import spawn
        from sglang_plug.core.policy import policy
        from sglang_plug.core.runtime import Runtime

        def made():
            global current
            rules = policy(os.environ["RUNTIME"])
            oot = rules.oot_enum and "fake_engine.PlatformEnum.OOT"
            current = Runtime(rules._replace(platform_class="fake_engine.Platform", oot_enum=oot))
            return current

        def scheduler(spec):
            spawn.die_with_parent()
            spawn.warn_of_early_imports("fakert.", ["fakert.boot"])
            def serve():
                args = spec.server_args.materialize()
                from fakert import worker
                return partial(worker.run, args, spec.pipe_writer)
            spawn.bootstrap(made(), serve=serve, init_backend=True)

        def http(payload, pipe):
            def serve():
                from fakert import worker
                return partial(worker.run, payload.materialize(), pipe)
            spawn.bootstrap(made(), serve=serve, init_backend=False)
    """,
}
PLUGIN = """
    from note import note
    note("import plugin")
    def activate():
        note("activate")
        return "plug_platform.Dev"
    def register():
        from fakert import boot
        from sglang_plug.core.hooktypes import HookType
        note("register")
        def around(original, args, pipe):
            note("patched run")
            return original(args, pipe)
        boot.current.hooks.register("fakert.worker.run", around, HookType.AROUND)
"""
PLATFORM = (
    """
from note import note
note("import platform")
"""
    + PLATFORMS
    + """
class Dev(A):
    def init_backend(self): note("init_backend")
"""
)
SCRIPT = """
import multiprocessing, os, sys
from sglang_plug.core import spawn
{module_scope}
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    from fakert import boot
    from fakert.args import ServerArgs
    import fakert
    fakert.patched_in_parent = True
    payload = spawn.ServerArgsPayload.capture(ServerArgs("tiny"))
    reader, writer = multiprocessing.Pipe(duplex=False)
    if os.environ.get("HTTP"):
        child = spawn.context().Process(target=boot.http, args=(payload, writer))
    else:
        child = spawn.context().Process(target=boot.scheduler, args=(spawn.SchedulerProcessSpec(0, 0, payload, writer),))
    open(os.environ["NOTES"], "w").close()
    child.start()
    child.join(60)
    print(reader.recv() if reader.poll() else "silent", child.exitcode)
"""


def world(tmp_path: Path, runtime: str, *, module_scope: str = "", **files: str) -> tuple[Path, dict[str, str]]:
    """Write an engine, a plugin and a script; return the script and the environment."""
    site = Site(tmp_path / "site")
    site.write(ENGINE)
    platforms, plugins = GROUPS[runtime]
    entries = {platforms: {"dev": "plug:activate"}, plugins: {"dev": "plug:register"}}
    site.add("plug-dist", entries, {"plug.py": textwrap.dedent(PLUGIN), "plug_platform.py": PLATFORM, **files})
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(module_scope=module_scope))
    env = site.env(NOTES=str(tmp_path / "notes"), RUNTIME=runtime)
    return script, env


def run(script: Path, env: dict[str, str]) -> tuple[str, str, list[str]]:
    done = subprocess.run([sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=90, check=False)
    with open(env["NOTES"]) as file:
        return done.stdout.strip(), done.stderr, file.read().split("\n")[:-1]


@pytest.mark.parametrize("runtime", ["srt", "diffusion"])
def test_a_scheduler_comes_up_in_order(runtime: str, tmp_path: Path):
    """S7.1: backend, registration, targets, arguments, the patched function."""
    script, env = world(tmp_path, runtime)
    answer, errors, notes = run(script, env)
    assert answer == "ready 0", errors
    assert notes == [
        "import plugin",
        "activate",
        "import platform",
        "init_backend",
        "register",
        "import worker",
        "import args",
        "materialise",
        "patched run",
        "original run tiny",
    ]


def test_the_http_child_does_not_touch_the_device(tmp_path: Path):
    """S7.2"""
    script, env = world(tmp_path, "diffusion")
    answer, errors, notes = run(script, {**env, "HTTP": "1"})
    assert answer == "ready 0", errors
    assert "init_backend" not in notes
    assert notes.index("register") < notes.index("import worker") < notes.index("import args") < notes.index("patched run")


def test_a_failing_backend_ends_the_child_before_anything_else(tmp_path: Path):
    """S7.4"""
    broken = PLATFORM.replace('note("init_backend")', 'raise OSError("no hw")')
    script, env = world(tmp_path, "diffusion", **{"plug_platform.py": broken})
    answer, errors, notes = run(script, env)
    assert answer == "silent 1"
    assert "OSError: no hw" in errors
    assert "register" not in notes


def test_early_imports_are_named_with_the_script(tmp_path: Path):
    """S7.5"""
    script, env = world(tmp_path, "diffusion", module_scope="import fakert.worker")
    answer, errors, _ = run(script, env)
    assert answer == "ready 0", errors
    assert "fakert.worker" in errors
    assert str(script) in errors
    assert "fakert.boot" not in errors.split("Runtime modules were imported")[1]


def test_a_clean_script_is_not_warned(tmp_path: Path):
    script, env = world(tmp_path, "diffusion")
    assert "Runtime modules" not in run(script, env)[1]


def test_many_early_imports_are_counted(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    for name in ("early.a", "early.b", "early.c", "early.d", "early.e", "early.f", "early.ok", "early.ok.deep", "early.okay"):
        monkeypatch.setitem(sys.modules, name, sys)
    found = spawn.warn_of_early_imports("early.", ["early.ok"], namespaces=["early.a"])
    assert found == ("early.b", "early.c", "early.d", "early.e", "early.f", "early.okay")
    assert "early.f (+1 more)" in caplog.text


def test_a_payload_names_no_module_of_its_arguments():
    payload = spawn.ServerArgsPayload.capture(Site)
    blob = pickle.dumps(spawn.SchedulerProcessSpec(0, 1, payload, None))  # type: ignore[arg-type]
    code = (
        "import pickle, sys; spec = pickle.loads(sys.stdin.buffer.read())\n"
        "assert not any(name.startswith('tests') for name in sys.modules)\n"
        "spec.server_args.materialize(); assert 'tests.plugins.install' in sys.modules; print(spec)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=blob, capture_output=True, check=True)
    assert done.stdout.decode().startswith("SchedulerProcessSpec(local_rank=0, rank=1, server_args=ServerArgsPayload()")


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "watcher"])
def test_a_child_dies_with_its_parent(kernel: bool, tmp_path: Path):
    child = (
        "import os, sys, time\nfrom sglang_plug.core import spawn\n"
        + ("" if kernel else "spawn._arm_kernel = lambda: False\n")
        + "spawn.die_with_parent()\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n"
    )
    parent = f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {child!r}])\ntime.sleep(600)\n"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert alive(pid)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        deadline = time.monotonic() + 20
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        dead = not alive(pid)
        if not dead:
            os.kill(pid, signal.SIGKILL)
    assert dead


def test_a_child_whose_parent_is_gone_already_ends(tmp_path: Path):
    code = "from sglang_plug.core import spawn; spawn.die_with_parent(parent=1 << 22); print('survived')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_child_that_starts_after_its_parent_died_ends(tmp_path: Path):
    """The parent dies while the child still imports its modules: nobody is left to notice but the child."""
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import os, sys, time\n"
        "def work(reader):\n"
        "    while os.getppid() == int(os.environ['PARENT']): time.sleep(0.01)\n"
        "    from sglang_plug.core import spawn\n"
        "    spawn.die_with_parent()\n"
        "    open(os.environ['SURVIVED'], 'w').close()\n"
        "if __name__ == '__main__':\n"
        "    import multiprocessing\n"
        "    os.environ['PARENT'] = str(os.getpid())\n"
        "    child = multiprocessing.get_context('spawn').Process(target=work, args=(3,))\n"
        "    child.start()\n"
        "    print(child.pid, flush=True)\n"
        "    os._exit(0)\n"
    )
    survived = tmp_path / "survived"
    env = {**os.environ, "SURVIVED": str(survived)}
    with subprocess.Popen([sys.executable, str(slow)], stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
    deadline = time.monotonic() + 20
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)
    assert not survived.exists()
