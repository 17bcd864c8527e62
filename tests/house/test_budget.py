"""What a start may load: measured in modules, which do not depend on the machine's mood."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "numpy", "cookiecutter", "griffe", "uvicorn", "fastapi", "jinja2", "sglang", "transformers")


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nsys.stderr.write(' '.join({{m.split('.')[0] for m in sys.modules}}))"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stderr.split())


def test_the_version_costs_no_library():
    code = "sys.argv = ['sglang-plug', '--version']\nfrom sglang_plug.__main__ import main\ntry: main()\nexcept SystemExit: pass"
    assert not loaded_by(code) & {"typer", "rich", "click", "importlib_metadata", *HEAVY}


@pytest.mark.parametrize("args", [["--help"], ["doctor", "--help"], ["resolve", "--help"], ["list", "--help"]])
def test_help_loads_nothing_heavy(args: list[str]):
    code = f"from sglang_plug.cli.app import run\ntry: run({args!r})\nexcept SystemExit: pass"
    assert not loaded_by(code) & set(HEAVY)


def test_the_core_is_standard_library_only():
    allowed = set(sys.stdlib_module_names) | {"sglang_plug", "sitecustomize", "usercustomize", "__main__", "__mp_main__"}
    extra = {name for name in loaded_by("import sglang_plug.core.process") - allowed if not name.startswith(("_", "__editable"))}
    assert not extra - {"distutils-precedence", "coloredlogs"}, extra
