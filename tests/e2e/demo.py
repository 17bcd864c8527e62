"""The whole road, shown step by step: scaffold, install, doctor, resolve, serve, one answered request, one image.
Leaves nothing behind but the image.

python tests/e2e/demo.py                     on the stand-in engine, with its built-in tiny model
python tests/e2e/demo.py --python PYTHON     on the real SGLang of that interpreter
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

TOOL = Path(sys.executable).with_name("sglang-plug")
MARK = "SGLANG_PLUG_DEMO"
READY = "answered a request"
LIMIT = 300.0
GRACE = 5.0
ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(tempfile.gettempdir()) / "sglang-plug-demo.png"


def main(argv: list[str]) -> int:
    """Run the demo; return 0 when a request was answered and nobody is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="the interpreter of an environment with SGLang")
    options = parser.parse_args(argv)
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="sglang-plug-demo-"))
    demo = Demo(folder, options.python)
    try:
        demo.run()
    finally:
        shutil.rmtree(folder)
    left = demo.left_behind()
    say(f"\nDone in {time.monotonic() - started:.0f} s. {folder} is removed; {len(left) or 'no'} process is left.")
    return 1 if left else 0


class Demo:
    """One run in one folder. `python` is the engine's interpreter, None for the stand-in."""

    def __init__(self, folder: Path, python: str | None) -> None:
        self.folder = folder
        self.python = python or sys.executable
        self.where = ["--python", python] if python else []
        self.real = python is not None
        self.mark = uuid.uuid4().hex
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("SGLANG_", "SGL_"))}
        self.env |= {
            MARK: self.mark,
            "PYTHONPATH": str(folder / "site"),
            "PATH": os.pathsep.join([str(TOOL.parent), os.environ["PATH"]]),
            "SGLANG_PLUG_CACHE": str(folder / "cache"),
            "HF_HOME": str(folder / "cache" / "huggingface"),
            "HF_HUB_OFFLINE": "1",
            "TMPDIR": str(folder / "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        (folder / "tmp").mkdir()

    def run(self) -> None:
        say(f"In {self.folder}, with PYTHONPATH={self.env['PYTHONPATH']}")
        self.step("1. Scaffold a platform package", "sglang-plug", "new-platform", "mydev", "--runtime", "both", "--yes")
        self.step(
            "2. Install it, here into a folder; usually: pip install ./mydev",
            *(self.python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"),
            *("--target", "site", "./mydev"),
        )
        self.step("3. Is everything sound?", "sglang-plug", "doctor", *self.where)
        self.step("4. Which platform will be used, and why?", "sglang-plug", "resolve", "--runtime", "srt", *self.where)
        self.serve()
        self.draw()

    def step(self, title: str, *command: str, quietly: bool = False, **variables: str) -> None:
        """Show a command and run it; end the demo when it fails."""
        self.show(title, (*(f"{name}={value}" for name, value in variables.items()), *command))
        silence = subprocess.DEVNULL if quietly else None
        subprocess.run(command, cwd=self.folder, env=self.env | variables, check=True, stdout=silence, stderr=silence)

    def show(self, title: str, command: tuple[str, ...]) -> None:
        say(f"\n{title}\n$ {shlex.join(command)}")

    def serve(self) -> None:
        port = free_port()
        command = ["sglang-plug", "serve", "--platform", "mydev", *self.where, "--port", str(port)]
        if self.real:
            command += ["--model-path", self.tiny_model(), "--dtype", "float32", "--mem-fraction-static", "0.3"]
            command += ["--max-total-tokens", "4096", "--sleep-on-idle"]
        self.show("5. Serve on it", tuple(command))
        with subprocess.Popen(
            command, cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as server:
            try:
                self.wait(server)
                self.chat(port)
            finally:
                say("\n7. Shut down (Ctrl-C)")
                server.send_signal(signal.SIGINT)
                _, rest = server.communicate(timeout=60)
                say("".join(line for line in rest.splitlines(keepends=True) if line.startswith("sglang-plug:")).rstrip())
        if server.returncode != 0:
            raise SystemExit(f"the server ended with status {server.returncode}")

    def wait(self, server: subprocess.Popen[str]) -> None:
        """Show what the tool says until the engine answered; the engine's own log is kept for the case that it does not."""
        assert server.stderr is not None
        log, screen, deadline = [], True, time.monotonic() + LIMIT
        for line in server.stderr:
            log.append(line)
            ours = line.startswith(("sglang-plug:", "error SP", "warning SP", "info SP", "  cause:", "  hint:"))
            screen = screen and not line.startswith("sglang-plug:")
            if ours or screen or not self.real:
                say(line.rstrip())
            if READY in line:
                return
            if time.monotonic() > deadline:
                break
        raise SystemExit("".join(log) + "\nthe engine did not become ready")

    def chat(self, port: int) -> None:
        say("\n6. Ask it, with the official client")
        code = (
            "from openai import OpenAI\n"
            f'client = OpenAI(base_url="http://127.0.0.1:{port}/v1", api_key="none")\n'
            'answer = client.chat.completions.create(model="default", max_tokens=12, temperature=0,\n'
            '    messages=[{"role": "user", "content": "Hello!"}])\n'
            'print("answer:", repr(answer.choices[0].message.content))\n'
            'print("usage: ", answer.usage.prompt_tokens, "tokens in,", answer.usage.completion_tokens, "out")\n'
        )
        say("$ python - <<'EOF'\n" + code + "EOF")
        subprocess.run([sys.executable, "-c", code], env=self.env, check=True, timeout=120)

    def draw(self) -> None:
        """Make an image on the package's diffusion platform, and keep it."""
        platform = {"SGLANG_DIFFUSION_PLATFORM_OVERRIDE": "mydev"}
        request = ["--prompt", "a red cube", "--seed", "1", "--num-inference-steps", "8", "--height", "256", "--width", "256"]
        title = "8. Draw, on the diffusion platform of the same package"
        if self.real:
            subprocess.run([self.python, ROOT / "tests/sglang/tiny_sd3.py", self.folder / "sd3"], check=True, capture_output=True)
            command = [
                str(Path(self.python).with_name("sglang")),
                "generate",
                "--model-path",
                "sd3",
                "--model-id",
                "stable-diffusion-3-medium",
            ]
            self.step(title, *command, *request, "--save-output", "--output-path", "drawn", quietly=True, **platform)
        else:
            command = [sys.executable, "-m", "sglang_plug.standin", "generate", "--log-level", "error"]
            self.step(title, *command, *request, "--output-path", "drawn", quietly=True, **platform)
        (drawn,) = (self.folder / "drawn").iterdir()
        shutil.copyfile(drawn, PICTURE)
        say(f"The image, random weights and all: {PICTURE}")

    def tiny_model(self) -> str:
        """Make the stand-in's tiny model, which real SGLang serves as well."""
        code = "from sglang_plug.standin.models import tiny_llama; print(tiny_llama())"
        env = {name: value for name, value in self.env.items() if name != "PYTHONPATH"}
        return subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True).stdout.strip()

    def left_behind(self) -> list[int]:
        """Return the processes that this demo started and that stay; Python's resource tracker ends a moment after its program."""
        until = time.monotonic() + GRACE
        while (left := self.started()) and time.monotonic() < until:
            time.sleep(0.05)
        return left

    def started(self) -> list[int]:
        """Return the processes that this demo started and that are there now."""
        left = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                if f"{MARK}={self.mark}".encode() in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                    left.append(int(name))
            except OSError:
                continue  # gone, or somebody else's
        return left


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
