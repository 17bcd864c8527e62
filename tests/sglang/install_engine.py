"""Install real SGLang for tests on a CPU: 1.5 GB in two to three minutes, in a cache folder outside the clone, finished or not there.

    python tests/sglang/install_engine.py [RELEASE] [--torch-index URL]    prints the path of the environment's python

The last thing written is a stamp with the hash of the recipe (requirements, stand-ins, steps): an environment without it, or with
another one, is built anew. Two callers at once wait for each other. Standard library only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
STUBS = HERE / "stubs"

# Raise it when the steps of `build` change: environments of another layout are built anew.
LAYOUT = 1

# Installed without dependencies: their metadata asks for the CUDA world.
BARE = {
    "0.5.23": ("sglang==0.5.23", "xgrammar==0.2.7", "cache-dit==1.5.1"),
    "0.5.22": ("sglang==0.5.22", "xgrammar==0.2.7", "cache-dit==1.5.1"),
    "0.5.21": ("sglang==0.5.21", "xgrammar==0.2.7", "cache-dit==1.5.1"),
    "0.5.17": ("sglang==0.5.17", "xgrammar==0.2.1"),  # before diffusion plugins
}


def main(argv: list[str]) -> int:
    """Print the python of a finished environment for the release, building it when needed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", nargs="?", default="0.5.23", choices=sorted(BARE))
    parser.add_argument("--torch-index", help="a package index that has CPU builds of torch")
    options = parser.parse_args(argv)
    home = cache_root() / "engines" / f"sglang-{options.release}-cpu"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_finished(home, options.release):
            build(home, options.release, options.torch_index)
    sys.stdout.write(f"{home / 'bin' / 'python'}\n")
    return 0


def cache_root() -> Path:
    """Return where what is expensive to make is kept."""
    return Path(os.environ.get("SGLANG_PLUG_CACHE") or Path.home() / ".cache" / "sglang-plug")


def requirements(release: str) -> list[Path]:
    own = HERE / f"requirements-{release}.txt"
    return [own, HERE / "requirements-diffusion.txt"] if any(name.startswith("cache-dit") for name in BARE[release]) else [own]


def recipe(release: str) -> str:
    """Return the hash of everything that decides what the environment holds."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {sysconfig.get_platform()} {BARE[release]} {LAYOUT}".encode())
    for path in (*requirements(release), *sorted(STUBS.rglob("*.py"))):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def is_finished(home: Path, release: str) -> bool:
    stamp = home / "recipe"
    return stamp.is_file() and stamp.read_text() == recipe(release) and (home / "bin" / "python").exists()


def build(home: Path, release: str, torch_index: str | None) -> None:
    """Build the environment in place; the stamp comes last."""
    started = time.monotonic()
    say(f"installing SGLang {release} for the CPU into {home}: two to three minutes")
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", home], check=True, stdout=sys.stderr)
    pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    index = ["--extra-index-url", torch_index] if torch_index else []
    files = [part for path in requirements(release) for part in ("--requirement", path)]
    subprocess.run([*pip, *index, *files], check=True, stdout=sys.stderr)
    subprocess.run([*pip, "--no-deps", *BARE[release]], check=True, stdout=sys.stderr)
    site = subprocess.run(
        [home / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    shutil.copytree(STUBS, site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    beside = home / "recipe.new"
    beside.write_text(recipe(release))
    beside.replace(home / "recipe")
    say(f"SGLang {release} is ready after {time.monotonic() - started:.0f} s")


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
