"""The finder answers `sglang` in this process and in every kind of child, and only where no real one is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from sglang_plug import standin

if TYPE_CHECKING:
    from pathlib import Path

WHERE = "import sglang; print(sglang.__version__)"


def run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, env=env, check=False)


def standin_run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return run("-m", "sglang_plug.standin", *arguments, cwd=cwd, env=env)


def test_code_and_its_arguments_reach_the_program() -> None:
    done = standin_run("-c", "import sglang, sys; print(sglang.__version__, sys.argv)", "a", "b c")
    assert done.stdout == "0.5.23+standin ['-c', 'a', 'b c']\n", done.stderr


def test_without_the_finder_there_is_no_sglang(tmp_path: Path) -> None:
    assert "No module named 'sglang'" in run("-c", WHERE, cwd=tmp_path).stderr


@pytest.mark.parametrize("way", ["subprocess", "spawn", "forkserver"])
def test_children_of_any_kind_find_it(tmp_path: Path, way: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, subprocess, sys\n"
        "def child():\n    import sglang; print(sglang.__version__, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    if sys.argv[1] == 'subprocess':\n"
        f"        subprocess.run([sys.executable, '-c', {WHERE!r}], check=True)\n"
        "    else:\n"
        "        p = multiprocessing.get_context(sys.argv[1]).Process(target=child); p.start(); p.join(); sys.exit(p.exitcode)\n"
    )
    done = standin_run(str(script), way)
    assert (done.returncode, done.stdout) == (0, "0.5.23+standin\n"), done.stderr


def test_exit_status_is_the_programs() -> None:
    assert standin_run("-c", "raise SystemExit(7)").returncode == 7


def test_a_bare_directory_is_no_installation(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    done = standin_run("-c", f"{WHERE}; from sglang_plug.standin import finder; print(finder.bare_directories())", cwd=tmp_path)
    version, directories = done.stdout.splitlines()
    assert version == "0.5.23+standin"
    assert str(tmp_path / "sglang") in directories


def test_a_real_installation_wins(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "__init__.py").write_text("__version__ = 'real'\n")
    env = standin.environment({**os.environ, "PYTHONPATH": str(tmp_path)})
    assert run("-c", WHERE, env=env).stdout == "real\n"
    refused = standin_run("-c", WHERE, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert refused.returncode == 1
    assert "SGLang is installed" in refused.stderr
    assert "hint:" in refused.stderr


def test_the_hidden_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.marked = True\n")
    env = standin.environment({**os.environ, "PYTHONPATH": str(tmp_path)})
    assert run("-c", "import sys; print(sys.marked)", env=env).stdout == "True\n"


def test_environment_adds_the_folder_once() -> None:
    once = standin.environment({"PYTHONPATH": "/x"})
    assert once["PYTHONPATH"] == f"{standin.SITE}{os.pathsep}/x"
    assert standin.environment(once) == once


def test_refuses_a_second_name() -> None:
    done = run("-c", "import sglang_plug.standin.sglang")
    assert "can only be imported as 'sglang'" in done.stderr


def test_install_is_idempotent_across_copies() -> None:
    code = "import sys; from sglang_plug.standin import finder as f; f.install(); print(str(sys.meta_path).count('StandinFinder'))"
    assert standin_run("-c", code).stdout == "1\n"


def test_works_by_path_where_the_tool_is_not_installed(tmp_path: Path) -> None:
    """Isolated from this environment's packages, the finder file alone makes both packages importable."""
    code = (
        "import importlib.util as u, sys\n"
        f"spec = u.spec_from_file_location('f', {str(standin.SITE.parent / 'finder.py')!r})\n"
        "m = u.module_from_spec(spec); sys.modules['f'] = m; spec.loader.exec_module(m); m.install()\n"
        "import sglang_plug.core; import sglang.version; print(sglang.version.__version__)\n"
    )
    assert run("-I", "-S", "-c", code, cwd=tmp_path).stdout == "0.5.23+standin\n"


def test_nothing_to_run_is_a_usage_error() -> None:
    done = standin_run()
    assert done.returncode == 2
    assert "usage:" in done.stderr
