"""Environments that a generated package is installed into: made in a moment, without the network, gone with the test's folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("SGLANG_", "SGL_", "PYTHONPATH")


@dataclass(frozen=True)
class Environment:
    """A virtual environment that sees the libraries of this one, and sglang-plug; what is installed goes into it alone."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @classmethod
    def make(cls, folder: Path, *libraries: Path) -> Environment:
        """Make one in `folder` that sees the given folders of libraries, else those of this environment."""
        venv.create(folder, with_pip=False, symlinks=True)
        site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        borrowed = libraries or (Path(sysconfig.get_path("purelib")),)
        (site / "borrowed.pth").write_text("".join(f"{place}\n" for place in (*borrowed, ROOT)))
        return cls(folder)

    def install(self, *arguments: str) -> None:
        """Install with pip, from files that are here, with the build tools that are here."""
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.python,
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
            "--no-build-isolation",
        ]
        run([*pip, "--disable-pip-version-check", "--no-warn-conflicts", *arguments])

    def install_built(self, project: Path, way: str) -> None:
        """Install a project as its wheel, its sdist, or as it lies there: `wheel`, `sdist` or `editable`."""
        if way == "editable":
            self.install("--editable", str(project))
            return
        out = self.folder.parent / "dist"
        run([sys.executable, "-m", "build", f"--{way}", "--no-isolation", "--outdir", str(out), str(project)])
        self.install(*map(str, out.glob("*.whl" if way == "wheel" else "*.tar.gz")))

    def uninstall(self, name: str) -> None:
        run([sys.executable, "-m", "pip", "--python", self.python, "uninstall", "--quiet", "--yes", name])

    def run(self, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run this environment's Python and return what it said, whatever its status."""
        return run([self.python, *arguments], cwd=cwd, check=False, **variables)

    def tool(self, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run `sglang-plug` here."""
        return self.run("-m", "sglang_plug", *arguments, cwd=cwd, **variables)


def run(command: list[str], *, cwd: Path | None = None, check: bool = True, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program with none of our variables but those given; fail the test with its output when it fails."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    done = subprocess.run(
        command, cwd=cwd, env=env | {"NO_COLOR": "1"} | variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert not check or done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done
