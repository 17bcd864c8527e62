"""Find a class in its source without importing anything: does the path that a callback returned lead somewhere?"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import sys
from typing import Any

DEPTH = 6  # re-exports that are followed
HOST = "sglang"


def locate(request: dict[str, Any]) -> dict[str, Any]:
    """Look for the class `qualname` (`module.Class` or `module:Class`).

    Returns:
        {"verdict", "module", "name", "file", "line", "bases", "why", "near", "missing_imports"}, where `verdict` is
        `defined`, `reexported`, `dynamic` (a module `__getattr__`, an extension module: only an import can tell),
        `missing_module`, `missing_name`, `not_a_class`, `unparsable` or `malformed`.
    """
    qualname = request["qualname"]
    dotted, colon, rest = qualname.strip().partition(":")
    parts = dotted.split(".")
    attributes = rest.split(".") if colon else []
    if not all(part.isidentifier() for part in parts + attributes):
        return _verdict("malformed", why=f"not a dotted name: {qualname!r}")
    spec, walked = _walk(parts)
    if spec is None or (colon and walked < len(parts)):
        wanted = ".".join(parts[: walked + 1])
        return _verdict("missing_module", module=wanted, why=f"no module named {wanted!r}", near=_siblings(parts, walked))
    attributes = parts[walked:] + attributes
    module = ".".join(parts[:walked])
    if not attributes:
        return _verdict("not_a_class", module=module, file=spec.origin, why=f"{module} is a module")
    return _find(spec, module, attributes[0], DEPTH)


def _verdict(verdict: str, **facts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "module": None,
        "name": None,
        "file": None,
        "line": None,
        "bases": [],
        "why": "",
        "near": [],
        "missing_imports": [],
    }
    return {"verdict": verdict, **empty, **facts}


def _walk(parts: list[str]) -> tuple[Any, int]:
    """Return the spec of the longest prefix of `parts` that is a module, and its length, importing nothing."""
    spec = _top(parts[0])
    if spec is None:
        return None, 0
    for count, _part in enumerate(parts[1:], 1):
        below = _below(".".join(parts[: count + 1]), folders(spec))
        if below is None:
            return spec, count
        spec = below
    return spec, len(parts)


def _below(name: str, places: list[str] | None) -> Any:
    """Return the spec of a submodule looked for in the package's folders."""
    if places is None:
        return None
    try:
        return importlib.machinery.PathFinder.find_spec(name, places)
    except KeyError:  # a namespace package inside a package: importlib would want the package imported
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        found = [os.path.join(place, name.rpartition(".")[2]) for place in places]
        spec.submodule_search_locations = [place for place in found if os.path.isdir(place)]
        return spec


def folders(spec: Any) -> list[str] | None:
    """Return where a package's modules are looked for; None for a plain module. A namespace's own list would want its parent imported."""
    places = spec.submodule_search_locations
    return None if places is None else list(getattr(places, "_path", places))


def _top(name: str) -> Any:
    if name in sys.builtin_module_names:
        return importlib.machinery.BuiltinImporter.find_spec(name)
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _siblings(parts: list[str], walked: int) -> list[str]:
    """Names of modules that look like the missing one."""
    import difflib
    import pkgutil

    if walked == 0:
        return []
    spec, _ = _walk(parts[:walked])
    names = [module.name for module in pkgutil.iter_modules(folders(spec) or [])]
    prefix = ".".join(parts[:walked])
    return [prefix + "." + name for name in difflib.get_close_matches(parts[walked], names, n=3)]


def _find(spec: Any, module: str, name: str, depth: int) -> dict[str, Any]:
    if spec.origin is None or not str(spec.origin).endswith(".py"):
        kind = "a namespace package" if spec.origin is None else "not Python source"
        verdict = "missing_name" if spec.origin is None else "dynamic"
        return _verdict(verdict, module=module, name=name, file=spec.origin, why=f"{module} is {kind}")
    try:
        with open(spec.origin, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError) as exc:
        return _verdict("unparsable", module=module, name=name, file=spec.origin, line=getattr(exc, "lineno", None), why=str(exc))
    facts = {"module": module, "name": name, "file": spec.origin}
    statements = list(_flatten(tree.body))
    found = _definition(statements, name)
    if isinstance(found, ast.ClassDef):
        missing = _missing_imports(tree.body)
        return _verdict("defined", **facts, line=found.lineno, bases=[ast.unparse(base) for base in found.bases], missing_imports=missing)
    if isinstance(found, ast.ImportFrom):
        return _follow(found, facts, spec, depth)
    if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return _verdict("not_a_class", **facts, line=found.lineno, why=f"{module}.{name} is a function")
    if found is not None:
        return _verdict("dynamic", **facts, line=found.lineno, why="assigned or imported at run time")
    return _absent(statements, facts, spec, depth)


def _follow(node: ast.ImportFrom, facts: dict[str, Any], spec: Any, depth: int) -> dict[str, Any]:
    """The name is imported from elsewhere: say whether it is there."""
    source = _absolute(node, facts["module"], spec)
    original = next(alias.name for alias in node.names if (alias.asname or alias.name) == facts["name"])
    elsewhere, walked = _walk(source.split("."))
    if source.split(".")[0] == HOST and (elsewhere is None or walked < len(source.split("."))):
        return _verdict("dynamic", **facts, line=node.lineno, why=f"imported from {source}, which is not installed here")
    if elsewhere is None or walked < len(source.split(".")):
        why = "{} imports {} from {}, and there is no such module".format(facts["module"], original, source)
        return _verdict("missing_module", **{**facts, "module": source}, line=node.lineno, why=why)
    if depth == 0:
        return _verdict("dynamic", **facts, line=node.lineno, why="re-exported too often")
    inner = _find(elsewhere, source, original, depth - 1)
    return {**inner, "verdict": "reexported"} if inner["verdict"] == "defined" else inner


def _absent(statements: list[ast.stmt], facts: dict[str, Any], spec: Any, depth: int) -> dict[str, Any]:
    import difflib

    stars = [node for node in statements if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    for star in stars:
        source = _absolute(star, facts["module"], spec)
        elsewhere, walked = _walk(source.split("."))
        if elsewhere is None or walked < len(source.split(".")) or depth == 0:
            return _verdict("dynamic", **facts, line=star.lineno, why=f"may come from {source}")
        inner = _find(elsewhere, source, facts["name"], depth - 1)
        if inner["verdict"] != "missing_name":
            return {**inner, "verdict": "reexported"} if inner["verdict"] == "defined" else inner
    if _definition(statements, "__getattr__") is not None:
        return _verdict("dynamic", **facts, why="{} has a module __getattr__".format(facts["module"]))
    names = [node.name for node in statements if isinstance(node, ast.ClassDef)]
    near = [facts["module"] + "." + name for name in difflib.get_close_matches(facts["name"], names, n=3, cutoff=0.4)]
    why = "module {!r} has no attribute {!r}".format(facts["module"], facts["name"])
    return _verdict("missing_name", **facts, why=why, near=near)


def _absolute(node: ast.ImportFrom, module: str, spec: Any) -> str:
    if not node.level:
        return node.module or ""
    base = module.split(".") if spec.submodule_search_locations is not None else module.split(".")[:-1]
    base = base[: len(base) - node.level + 1]
    return ".".join(base + ([node.module] if node.module else []))


def _flatten(body: list[ast.stmt]) -> Any:
    """Yield the statements of module scope, those under `if`, `try` and `with` included."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from _flatten(getattr(node, field, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from _flatten(handler.body)


def _definition(statements: list[ast.stmt], name: str) -> Any:
    """The last statement that binds `name`."""
    found = None
    for node in statements:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [node.name]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
        else:
            continue
        if name in names:
            found = node
    return found


def _missing_imports(body: list[ast.stmt]) -> list[dict[str, Any]]:
    """Unguarded imports at module scope of packages that are not installed (SGLang itself left out)."""
    missing = []
    for node in body:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names = [node.module]
        else:
            continue
        for name in names:
            top = name.split(".")[0]
            if top != HOST and top not in sys.builtin_module_names and _top(top) is None:
                missing.append({"module": top, "line": node.lineno})
    return missing
