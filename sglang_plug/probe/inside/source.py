"""Find a class in its source without importing anything: does the path that a callback returned lead somewhere?"""

from __future__ import annotations

import ast
from typing import Any

from .imports import HOST, REBINDS, Walk, absolute, complaint, folders, read, uses, walk

NOWHERE = frozenset({"missing_module", "missing_name", "malformed", "not_a_class"})  # verdicts on a name that leads to no class
REQUIRING = HOST + ".multimodal_gen.runtime.platforms"
REQUIRED = ("_enum", "device_name", "device_type")
SAID = ("id", "attr", "value", "arg", "name")  # where a name stands in a syntax tree
DEPTH = 6  # re-exports that are followed


def locate(request: dict[str, Any]) -> dict[str, Any]:
    """Look for the class `qualname` (`module.Class` or `module:Class`), and for what its module imports.

    Args:
        request: {"qualname", "owned"}: `owned` are the top-level modules of the plugin's distribution.

    Returns:
        {"verdict", "module", "name", "file", "line", "bases", "plain", "why", "near", "missing_imports"}, where `verdict` is
        `defined`, `reexported`, `dynamic` (a module `__getattr__`, an extension module: only an import can tell),
        `missing_module`, `missing_name`, `not_a_class`, `unparsable`, `unreadable` or `malformed`; see `imports.Walk.follow`
        for `missing_imports`. `plain` is true of a class without bases, which nothing can make a platform; `lacks` are what diffusion
        requires of a class and neither this one nor anything else of its module speaks of, where SGLang's own base is its only one.
    """
    qualname = request["qualname"]
    dotted, colon, rest = qualname.strip().partition(":")
    parts = dotted.split(".")
    attributes = rest.split(".") if colon else []
    if not all(part.isidentifier() for part in parts + attributes):
        return _verdict("malformed", why=f"not a dotted name: {qualname!r}")
    spec, walked = walk(parts)
    module = ".".join(parts[:walked])
    if spec is None or (colon and walked < len(parts)):
        wanted = ".".join(parts[: walked + 1])
        found = _verdict("missing_module", module=wanted, why=f"no module named {wanted!r}", near=_siblings(parts, walked))
    else:
        attributes = parts[walked:] + attributes
        if attributes:
            found = _find(spec, module, attributes, DEPTH)
        else:
            found = _verdict("not_a_class", module=module, file=spec.origin, why=f"{module} is a module")
    if module and module.split(".")[0] != HOST:
        found["missing_imports"] = Walk({parts[0], *request.get("owned", ())} - {HOST}).follow(module)
    return found


def _verdict(verdict: str, **facts: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "module": None,
        "name": None,
        "file": None,
        "line": None,
        "bases": [],
        "why": "",
        "near": [],
        "plain": False,
        "lacks": [],
        "missing_imports": [],
    }
    return {"verdict": verdict, **empty, **facts}


def _siblings(parts: list[str], walked: int) -> list[str]:
    """Names of modules that look like the missing one."""
    import difflib
    import pkgutil

    if walked == 0:
        return []
    spec, _ = walk(parts[:walked])
    names = [module.name for module in pkgutil.iter_modules(folders(spec) or [])]
    prefix = ".".join(parts[:walked])
    return [prefix + "." + name for name in difflib.get_close_matches(parts[walked], names, n=3)]


def _find(spec: Any, module: str, attributes: list[str], depth: int) -> dict[str, Any]:
    facts = {"module": module, "name": attributes[0], "file": spec.origin}
    try:
        tree = read(spec)
    except (OSError, SyntaxError) as exc:
        verdict = "unparsable" if isinstance(exc, SyntaxError) else "unreadable"
        return _verdict(verdict, **facts, line=getattr(exc, "lineno", None), why=complaint(module, exc))
    if tree is None:
        kind = "a namespace package" if spec.origin is None else "not Python source"
        return _verdict("missing_name" if spec.origin is None else "dynamic", **facts, why=f"{module} is {kind}")
    statements = list(_flatten(tree.body))
    bindings = _bindings(statements, attributes[0])
    if not bindings and uses(tree, REBINDS):
        return _verdict("dynamic", **facts, why=f"{module} makes names at run time")
    if not bindings:
        return _absent(statements, facts, attributes, spec, depth)
    if bindings[-1] in tree.body:  # the last one that surely runs hides those before
        bindings = bindings[-1:]
    verdicts = [_judge(node, facts, attributes, spec, depth) for node in reversed(bindings)]
    if verdicts[0]["verdict"] == "defined":
        verdicts[0]["lacks"] = _lacks(tree, verdicts[0]["bases"])
    return next((found for found in verdicts if found["verdict"] in {"defined", "reexported", "dynamic"}), verdicts[0])


def _judge(node: Any, facts: dict[str, Any], attributes: list[str], spec: Any, depth: int) -> dict[str, Any]:
    """Say what one statement binds the name to."""
    if isinstance(node, ast.ClassDef):
        return _in_class(node, facts, attributes[1:])
    if isinstance(node, ast.ImportFrom):
        return _follow(node, facts, attributes, spec, depth)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and len(attributes) == 1 and not node.decorator_list:
        return _verdict("not_a_class", **facts, line=node.lineno, why="{}.{} is a function".format(facts["module"], facts["name"]))
    return _verdict("dynamic", **facts, line=node.lineno, why="assigned or imported at run time")


def _lacks(tree: ast.Module, bases: list[str]) -> list[str]:
    """Return the required names that occur nowhere in the module, for a class whose only base is diffusion's own."""
    own = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module in {REQUIRING, REQUIRING + ".interface"}
        for alias in node.names
        if alias.name == "Platform"
    }
    if len(bases) != 1 or bases[0] not in own:
        return []
    said = {value for node in ast.walk(tree) for value in (getattr(node, key, None) for key in SAID) if isinstance(value, str)}
    return [name for name in REQUIRED if name not in said]


def _in_class(node: ast.ClassDef, facts: dict[str, Any], inner: list[str]) -> dict[str, Any]:
    """A class, or what is nested in it."""
    if not inner:
        plain = not (node.bases or node.keywords or node.decorator_list)
        return _verdict("defined", **facts, line=node.lineno, bases=[ast.unparse(base) for base in node.bases], plain=plain)
    below = _bindings(list(_flatten(node.body)), inner[0])
    if below and isinstance(below[-1], ast.ClassDef):
        return _in_class(below[-1], facts, inner[1:])
    if below or node.bases or node.keywords or node.decorator_list:
        return _verdict("dynamic", **facts, line=node.lineno, why=f"{inner[0]} may be inherited or made at run time")
    return _verdict("missing_name", **facts, line=node.lineno, why=f"class {node.name!r} has no attribute {inner[0]!r}")


def _follow(node: ast.ImportFrom, facts: dict[str, Any], attributes: list[str], spec: Any, depth: int) -> dict[str, Any]:
    """The name is imported from elsewhere: say whether it is there."""
    source = absolute(node, facts["module"], spec)
    original = next(alias.name for alias in node.names if (alias.asname or alias.name) == facts["name"])
    elsewhere, walked = walk(source.split("."))
    if source.split(".")[0] == HOST and (elsewhere is None or walked < len(source.split("."))):
        return _verdict("dynamic", **facts, line=node.lineno, why=f"imported from {source}, which is not installed here")
    if elsewhere is None or walked < len(source.split(".")):
        why = "{} imports {} from {}, and there is no such module".format(facts["module"], original, source or "outside its package")
        return _verdict("missing_module", **{**facts, "module": source}, line=node.lineno, why=why)
    if depth == 0:
        return _verdict("dynamic", **facts, line=node.lineno, why="re-exported too often")
    inner = _find(elsewhere, source, [original, *attributes[1:]], depth - 1)
    return {**inner, "verdict": "reexported"} if inner["verdict"] == "defined" else inner


def _absent(statements: list[ast.stmt], facts: dict[str, Any], attributes: list[str], spec: Any, depth: int) -> dict[str, Any]:
    import difflib

    stars = [node for node in statements if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    for star in stars:
        source = absolute(star, facts["module"], spec)
        elsewhere, walked = walk(source.split("."))
        if elsewhere is None or walked < len(source.split(".")) or depth == 0:
            return _verdict("dynamic", **facts, line=star.lineno, why=f"may come from {source}")
        inner = _find(elsewhere, source, attributes, depth - 1)
        if inner["verdict"] != "missing_name":
            return {**inner, "verdict": "reexported"} if inner["verdict"] == "defined" else inner
    if _bindings(statements, "__getattr__"):
        return _verdict("dynamic", **facts, why="{} has a module __getattr__".format(facts["module"]))
    names = [node.name for node in statements if isinstance(node, ast.ClassDef)]
    near = [facts["module"] + "." + name for name in difflib.get_close_matches(facts["name"], names, n=3, cutoff=0.4)]
    why = "module {!r} has no attribute {!r}".format(facts["module"], facts["name"])
    return _verdict("missing_name", **facts, why=why, near=near)


def _flatten(body: list[ast.stmt]) -> Any:
    """Yield the statements of one scope, those inside `if`, `try`, `with`, `match` and loops included."""
    for node in body:
        yield node
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for field in ("body", "orelse", "finalbody"):
            yield from _flatten(getattr(node, field, []))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from _flatten(part.body)


def _bindings(statements: list[ast.stmt], name: str) -> list[ast.stmt]:
    """The statements that bind `name`, in their order."""
    found = []
    for node in statements:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [node.name]
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
        else:
            heads = [part for field, part in ast.iter_fields(node) if field not in {"body", "orelse", "finalbody", "handlers", "cases"}]
            leaves = [
                leaf
                for part in heads
                for one in (part if isinstance(part, list) else [part])
                if isinstance(one, ast.AST)
                for leaf in ast.walk(one)
            ]
            names = [leaf.id for leaf in leaves if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store)]
        if name in names:
            found.append(node)
    return found
