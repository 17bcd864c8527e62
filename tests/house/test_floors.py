"""The house keeps its shape: imports go down, never in a circle, and heavy libraries stay inside functions."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "sglang_plug"
#: From the ground up. A module imports only from its own floor or from floors below; function-level imports count.
FLOORS = (
    {"errors", "data", "wording", "report.escape"},
    {"core"},
    {"contract"},
    {"standin"},
    {"probe"},
    {"checks"},
    {"testing", "scaffold", "launch"},
    {"report"},
    {"cli", "__main__"},
)
#: Imported inside functions only: the command must start fast, and the tool must live without them.
HEAVY = {"torch", "cookiecutter", "uvicorn", "griffe", "fastapi", "transformers", "zmq", "numpy", "PIL", "safetensors", "tokenizers"}


def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name, without the stand-in's inside (it bears upstream's names)."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[:2] == ("standin", "sglang") or "_data" in parts:
            continue
        found[".".join(parts).removesuffix(".__init__") if parts != ("__init__",) else ""] = path
    return found


def imported(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """Return the package's own modules that `path` imports, wherever in the file."""
    found: set[str] = set()
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = [*package[: len(package) - node.level + 1]] if node.level else []
            base = ".".join(["sglang_plug", *above, *([node.module] if node.module else [])]) if node.level else node.module or ""
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        inside = {n.removeprefix("sglang_plug").removeprefix(".") for n in names if n == "sglang_plug" or n.startswith("sglang_plug.")}
        deepest = {n for n in inside if n in known}
        found |= {n for n in deepest if not any(other.startswith(n + ".") or (not n and other) for other in deepest if other != n)}
    return found - {name}


def floor(name: str) -> int:
    """Return the index of the floor that a module stands on."""
    for index, members in enumerate(FLOORS):
        if name in members or (name.split(".", maxsplit=1)[0] in members and name != "report.escape"):
            return index
    return -1  # the package's face: below everything


def test_every_module_stands_on_a_floor():
    unplaced = [name for name in modules() if name and floor(name) < 0]
    assert not unplaced, f"name a floor for {unplaced}"


def test_imports_go_down():
    known = modules()
    wrong = [
        f"{name} imports {other}" for name, path in known.items() for other in imported(name, path, known) if floor(other) > floor(name)
    ]
    assert not wrong, wrong


def test_no_circle():
    known = modules()
    graph = {name: imported(name, path, known) for name, path in known.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle in it


@pytest.mark.parametrize("name", sorted(modules()))
def test_heavy_libraries_are_imported_inside_functions(name: str):
    tree = ast.parse(modules()[name].read_text())
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    roots = {(alias.name if isinstance(node, ast.Import) else node.module or "").split(".")[0] for node in top for alias in node.names}
    assert not roots & HEAVY


def test_only_the_text_renderers_import_rich():
    users = [name for name, path in modules().items() if "import rich" in (text := path.read_text()) or "from rich" in text]
    assert [name for name in users if not name.startswith(("report.", "cli."))] == []
