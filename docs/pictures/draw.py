"""Draws the README's pictures from what the commands really print, on two made-up packages. Run: python docs/pictures/draw.py [--check]."""

from __future__ import annotations

import argparse
import difflib
import fcntl
import html
import os
import pty
import re
import struct
import subprocess
import sys
import sysconfig
import tempfile
import termios
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WIDTH, HEIGHT = 118, 60

PACKAGES = {
    "acme-sglang": {
        "entry_points": "[sglang.srt.platforms]\nacme = acme_sglang:activate\n",
        "acme_sglang.py": "import libacme_runtime\n\ndef activate():\n    return 'acme_sglang.platform:AcmePlatform'\n",
    },
    "request-metrics": {
        "entry_points": "[sglang.srt.plugins]\nrequest_metrics = request_metrics:register\n",
        "request_metrics.py": (
            "from sglang.srt.plugins.hook_registry import HookRegistry, HookType\n\n"
            "def timed(original, self, *args, **kwargs):\n    return original(self, *args, **kwargs)\n\n"
            "def register():\n"
            "    HookRegistry.register('sglang.srt.managers.scheduler.Scheduler.schedule', timed, HookType.AROUND)\n"
        ),
    },
}


#: `resolve` reads torch's build from its version file: with this one the picture is the same on a machine with another torch.
TORCH = {
    "__init__.py": "raise ImportError('only looked at')\n",
    "version.py": "__version__ = '2.11.0+cpu'\ncuda = None\nhip = None\nxpu = None\n",
}


def lay(site: Path) -> None:
    """Write the made-up packages as a package manager would."""
    for name, files in PACKAGES.items():
        info = site / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(files["entry_points"])
        for path, text in files.items():
            if path.endswith(".py"):
                (site / path).write_text(text)


def environment(folder: Path, site: Path) -> Path:
    """Make an environment that holds `site` alone, whatever is installed where the tool runs, and return its interpreter."""
    venv.create(folder, symlinks=True)
    (next(folder.glob("lib/python3*/site-packages")) / "site.pth").write_text(f"{site}\n")
    return folder / "bin" / "python"


#: The tool, run by that interpreter, from where it is installed.
TOOL = "import sys; sys.path += sys.argv.pop(1).split(':'); from sglang_plug.__main__ import main; main()"


def record(command: list[str], site: Path) -> str:
    """Return what `command` writes to a terminal, colours included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SGL", "NO_COLOR", "PYTHONPATH"))}
    env |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": str(WIDTH)}
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=env, cwd=site)
    os.close(theirs)
    seen = b""
    try:
        while chunk := os.read(ours, 65536):
            seen += chunk
    except OSError:  # the terminal's other end is closed: the command has ended
        pass
    process.wait()
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


def settle(text: str, folder: Path, site: Path) -> str:
    """Take out what differs from machine to machine: paths, times, Python's patch level."""
    text = text.replace(str(site), "/opt/venv/site-packages").replace(str(folder), "/opt/venv")
    text = re.sub(r"Python 3\.\d+\.\d+", "Python 3.11", text)
    return re.sub(r"\[[\d.]+ m?s\]", "[1 ms]", text)


def draw(text: str, title: str) -> str:
    """Return the terminal's text as an SVG picture."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.from_ansi(text))
    return console.export_svg(title=title, unique_id=re.sub(r"\W+", "-", title))


def words(picture: str) -> list[str]:
    """Return the words that a picture shows: rich's version, a font, and where lines break between words make no difference."""
    lines: dict[float, str] = {}
    for found in re.finditer(r'<text [^>]*?y="([\d.]+)"[^>]*>([^<]*)</text>', picture):
        lines[float(found[1])] = lines.get(float(found[1]), "") + html.unescape(found[2])
    return " ".join(line.lstrip("│") for _, line in sorted(lines.items())).split()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 when a picture no longer shows what the command prints")
    check = parser.parse_args().check
    stale = False
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        place, site = Path(folder) / "venv", Path(folder) / "packages"
        lay(site)
        python = environment(place, site)
        tools = ":".join((str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
        for name, args in {"doctor": ["doctor"], "resolve": ["resolve", "--runtime", "srt"]}.items():
            if name == "resolve":
                for file, lines in TORCH.items():
                    (site / "torch").mkdir(exist_ok=True)
                    (site / "torch" / file).write_text(lines)
            text = settle(record([str(python), "-c", TOOL, tools, *args], site), place, site)
            picture = draw(f"$ sglang-plug {' '.join(args)}\n{text}", f"sglang-plug {name}")
            path = HERE / f"{name}.svg"
            if not check:
                path.write_text(picture)
            elif words(path.read_text()) != words(picture):
                stale = True
                print("\n".join(difflib.unified_diff(words(path.read_text()), words(picture), path.name, "today", lineterm="", n=3)))
    if stale:
        print("redraw: python docs/pictures/draw.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
