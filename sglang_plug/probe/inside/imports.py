"""Which imports of a module surely fail, followed through its own package in the order in which Python runs them; nothing is imported.

Only what runs at module scope, whatever the machine, counts: an import under `if`, `try … except`, `with` or in a function may be
meant to fail. A package that changes its own names or the import system while it is imported gets the benefit of the doubt.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

HOST = "sglang"
BUDGET = 80_000  # bytes of source that are read: a large package is not worth the time of a quick answer
ALWAYS = {"__name__", "__file__", "__doc__", "__spec__", "__loader__", "__package__", "__path__", "__builtins__", "__dict__", "__cached__"}
REBINDS = {"globals", "vars", "exec", "setattr", "__dict__"}  # a module that uses these may hold any name
REROUTES = {"__path__", "exec", "addsitedir", "extend_path"}  # with these, and with what `sys` holds of it, any module may be found
MACHINERY = {"path", "modules", "meta_path", "path_hooks", "path_importer_cache"}


def walk(parts: list[str]) -> tuple[Any, int]:
    """Return the spec of the longest prefix of `parts` that is a module, and its length, importing nothing."""
    spec = top(parts[0])
    if spec is None:
        return None, 0
    for count, _part in enumerate(parts[1:], 1):
        below = _below(".".join(parts[: count + 1]), folders(spec))
        if below is None:
            return spec, count
        spec = below
    return spec, len(parts)


def top(name: str) -> Any:
    """Return the spec of a top-level module, or None."""
    if name in sys.builtin_module_names:
        return importlib.machinery.BuiltinImporter.find_spec(name)
    try:
        return importlib.util.find_spec(name)
    except ValueError:  # it is loaded, and has no spec: __main__
        return importlib.machinery.ModuleSpec(name, None)
    except ImportError:
        return None


def _below(name: str, places: list[str] | None) -> Any:
    """Return the spec of a submodule looked for in the package's folders, and by the finders of editable installs."""
    if places is None:
        return None
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is None or finder is importlib.machinery.BuiltinImporter or finder is importlib.machinery.FrozenImporter:
            continue
        try:
            spec = find(name, places)
        except KeyError:  # a namespace package inside a package: importlib would want the package imported
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            found = [os.path.join(place, name.rpartition(".")[2]) for place in places]
            spec.submodule_search_locations = [place for place in found if os.path.isdir(place)]
        if spec is not None:
            return spec
    return None


def folders(spec: Any) -> list[str] | None:
    """Return where a package's modules are looked for; None for a plain module. A namespace's own list would want its parent imported."""
    places = spec.submodule_search_locations
    return None if places is None else list(getattr(places, "_path", places))


def read(spec: Any) -> ast.Module | None:
    """Return a module's syntax tree, None where its source is not there to be read (compiled, in an archive, a namespace).

    Raises:
        OSError: the file cannot be opened.
        SyntaxError: it is not Python.
    """
    if spec.origin is None or not str(spec.origin).endswith(".py") or not os.path.isfile(spec.origin):
        return None
    with open(spec.origin, "rb") as file:
        text = file.read()
    try:
        return ast.parse(text, filename=spec.origin)
    except (RecursionError, MemoryError):
        return None
    except ValueError as exc:  # null bytes, before Python 3.12
        raise SyntaxError(str(exc)) from exc


def complaint(module: str, exc: OSError | SyntaxError) -> str:
    """Return what is wrong with a module's source file, without its path."""
    if isinstance(exc, SyntaxError):
        return f"{module} is not valid Python: {exc.msg}"
    return f"the file of {module} cannot be read: {exc.strerror}"


def absolute(node: ast.ImportFrom, module: str, spec: Any) -> str:
    """Return the dotted name that `from … import` names, by the module in which it stands; empty where it leads out of the package."""
    if not node.level:
        return node.module or ""
    base = module.split(".") if spec.submodule_search_locations is not None else module.split(".")[:-1]
    base = base[: max(0, len(base) - node.level + 1)]
    return ".".join(base + ([node.module] if node.module else [])) if base else ""


class Walk:
    """One walk along the imports of a module: reads each file at most once, within a budget.

    Args:
        owned: the top-level modules of the plugin's distribution; only these are looked into.
    """

    def __init__(self, owned: set[str]) -> None:
        self.owned = owned
        self.failures: list[dict[str, Any]] = []
        self._trees: dict[str, ast.Module | None] = {}
        self._specs: dict[str, Any] = {}
        self._names: dict[str, set[str]] = {}
        self._left = BUDGET
        self._stage = ""

    def follow(self, module: str) -> list[dict[str, Any]]:
        """Return what fails: [{"type", "module", "file", "line", "why", "own", "stage"}].

        `stage` is the prefix of `module` whose import runs into it.
        """
        parts = module.split(".")
        for count in range(1, len(parts) + 1):
            self._stage = ".".join(parts[:count])
            self._enter(self._stage)
        if self.failures and any(tree is not None and uses(tree, REROUTES) for tree in self._trees.values()):
            return [row for row in self.failures if row["type"] == "SyntaxError"]
        return self.failures

    def _enter(self, module: str) -> None:
        """Import a module of the plugin, as Python would: its parents first, then its statements."""
        if module in self._trees or module.split(".", maxsplit=1)[0] not in self.owned or self._left <= 0:
            return
        if "." in module:
            self._enter(module.rpartition(".")[0])
        spec, count = walk(module.split("."))
        if spec is None or count < len(module.split(".")):
            return
        self._specs[module], self._trees[module] = spec, None
        try:
            tree = read(spec)
        except (OSError, SyntaxError) as exc:
            line = exc.lineno if isinstance(exc, SyntaxError) else None
            self._fail(type(exc).__name__, module, spec.origin, line, complaint(module, exc))
            return
        if tree is not None:
            self._trees[module] = tree
            self._left -= os.path.getsize(spec.origin)
            self._run(module, tree.body)

    def _run(self, module: str, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._import(module, node, alias.name)
            elif isinstance(node, ast.ImportFrom):
                self._import_from(module, node)
            elif isinstance(node, ast.ClassDef):
                self._run(module, node.body)
            elif isinstance(node, ast.Try) and not node.handlers:
                self._run(module, node.body + node.finalbody)
            elif isinstance(node, ast.Raise):
                return

    def _import(self, module: str, node: ast.stmt, wanted: str) -> bool:
        parts = wanted.split(".")
        if parts[0] == HOST:
            return False
        own = parts[0] in self.owned
        spec, count = walk(parts if own else parts[:1])
        if spec is None or (own and count < len(parts)):
            missing = ".".join(parts[: count + 1])
            self._enter(".".join(parts[:count]) or parts[0])
            why = f"No module named {missing!r}"
            self._fail("ModuleNotFoundError", missing, self._specs[module].origin, node.lineno, why, own=own)
            return False
        if own:
            self._enter(wanted)
        return own

    def _import_from(self, module: str, node: ast.ImportFrom) -> None:
        spec = self._specs[module]
        source = absolute(node, module, spec)
        if not source:
            why = "attempted relative import beyond top-level package"
            self._fail("ImportError", module, spec.origin, node.lineno, why)
            return
        if not self._import(module, node, source):
            return
        for alias in node.names:
            if alias.name == "*" or self.holds(source, alias.name):
                continue
            inner = f"{source}.{alias.name}"
            if walk(inner.split("."))[1] == len(inner.split(".")):
                self._enter(inner)
                continue
            why = f"cannot import name {alias.name!r} from {source!r}"
            self._fail("ImportError", source, spec.origin, node.lineno, why)

    def holds(self, module: str, name: str, depth: int = 8) -> bool:
        """Tell whether a module may hold a name: False only where it surely does not."""
        tree = self._trees.get(module)
        if tree is None or depth == 0 or name in ALWAYS:
            spec = self._specs.get(module)
            return spec is None or spec.origin is not None or depth == 0  # a namespace package holds modules alone
        if module not in self._names:
            self._names[module] = bound(tree)
        if {name, "__getattr__"} & self._names[module] or uses(tree, REBINDS):
            return True
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                source = absolute(node, module, self._specs[module])
                if source not in self._trees or self.holds(source, name, depth - 1):
                    return True
        return False

    def _fail(self, kind: str, module: str, file: str, line: int | None, why: str, *, own: bool = True) -> None:
        self.failures.append({"type": kind, "module": module, "file": file, "line": line, "why": why, "own": own, "stage": self._stage})


def uses(tree: ast.Module, marks: set[str]) -> bool:
    """Tell whether a module mentions one of these names, or changes how `sys` finds modules."""
    return any(
        (isinstance(node, ast.Name) and node.id in marks)
        or (isinstance(node, ast.Attribute) and (node.attr in marks or (node.attr in MACHINERY and _name(node.value) == "sys")))
        or (isinstance(node, ast.ImportFrom) and (node.module == "sys" or any(alias.name in marks for alias in node.names)))
        for node in ast.walk(tree)
    )


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def bound(tree: ast.Module) -> set[str]:
    """Return the names that a module may bind: at its own scope, by whatever statement, and by `global` in its functions."""
    names: set[str] = set()
    queue: list[ast.AST] = list(tree.body)
    while queue:
        node = queue.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            names.update(name for inner in ast.walk(node) if isinstance(inner, ast.Global) for name in inner.names)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        queue += ast.iter_child_nodes(node)
    return names
