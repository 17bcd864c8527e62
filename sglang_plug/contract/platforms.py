"""What a release expects of a platform class, read off its source: members, defaults, status, and where the core really uses them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sglang_plug.contract.bindings import absolute
from sglang_plug.contract.folding import dotted_name
from sglang_plug.contract.signatures import decorator_names, format_signature

if TYPE_CHECKING:
    from sglang_plug.contract.source import SourceFile, SourceTree

_STATUS = re.compile(r"\[(Active|Planned)\]")
_SITES = 6

SRT_BASE = "sglang.srt.platforms.interface.SRTPlatform"
DIFFUSION_BASE = "sglang.multimodal_gen.runtime.platforms.interface.Platform"
_DIFFUSION_PLATFORMS = "sglang.multimodal_gen.runtime.platforms"


def extract(tree: SourceTree) -> dict[str, Any]:
    """Return the platform contract of both runtimes as plain values; a runtime without one is left out."""
    files = {file.module: file for file in tree.files}
    uses = _uses(tree)
    found: dict[str, Any] = {}
    interface, mixin = files.get("sglang.srt.platforms.interface"), files.get("sglang.srt.platforms.device_mixin")
    if interface and mixin:
        classes = _classes(mixin) | _classes(interface)
        chain = _srt_chain(files.get("sglang.srt.platforms"))
        found["srt"] = _contract(SRT_BASE, ["SRTPlatform", "DeviceMixin"], classes, uses["srt"], chain) | {"accepts_plugins": True}
    interface = files.get("sglang.multimodal_gen.runtime.platforms.interface")
    if interface:
        accepts = f"{_DIFFUSION_PLATFORMS}.plugins" in files
        chain = _diffusion_chain(files.get(_DIFFUSION_PLATFORMS))
        found["diffusion"] = _contract(DIFFUSION_BASE, ["Platform"], _classes(interface), uses["diffusion"], chain) | {
            "accepts_plugins": accepts
        }
    return found


def _classes(file: SourceFile) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in ast.parse(file.content or b"").body if isinstance(node, ast.ClassDef)}


def _contract(
    base: str, owners: list[str], classes: dict[str, ast.ClassDef], uses: dict[str, list[str]], chain: list[list[str]]
) -> dict[str, Any]:
    present = [owner for owner in owners if owner in classes]
    internal = _reached([classes[owner] for owner in present], set(uses))
    members: dict[str, Any] = {}
    for owner in present:
        for name, facts in _members(classes[owner]).items():
            if name not in members:
                members[name] = {
                    "owner": owner,
                    **facts,
                    "internal": name in internal,
                    "uses": len(uses[name]),
                    "sites": uses[name][:_SITES],
                }
    enums = {name: _enum_names(node) for name, node in classes.items() if name.endswith("Enum")}
    capabilities = [*_enum_names(classes["PlatformCapabilities"])] if "PlatformCapabilities" in classes else []
    return {"base": base, "members": members, "capabilities": capabilities, "enums": enums, "chain": chain}


def _members(node: ast.ClassDef) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            default = describe_body(item)
            status = _STATUS.search(ast.get_docstring(item) or "")
            facts = {"kind": "method", "signature": format_signature(item), "default": default, "raises": default.startswith("raises")}
            decorators = decorator_names(item.decorator_list)
            found[item.name] = facts | {"decorators": decorators, "documented": status[1] if status else None}
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            found[item.target.id] = {"kind": "attribute", "default": ast.unparse(item.value) if item.value else ""}
        elif isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name):
            found[item.targets[0].id] = {"kind": "attribute", "default": ast.unparse(item.value)}
    return found


def describe_body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return what a method does by default, in short: `no-op`, `raises X`, `returns X`, or `computes`."""
    body = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    if not body or isinstance(body[0], ast.Pass):
        return "no-op"
    if isinstance(body[0], ast.Raise):
        error = body[0].exc
        name = dotted_name(error.func if isinstance(error, ast.Call) else error) if error else None
        return f"raises {name or 'an error'}"
    if isinstance(body[0], ast.Return):
        text = ast.unparse(body[0].value) if body[0].value else "None"
        return f"returns {text}" if len(text) <= 60 and "\n" not in text else "computes"
    return "computes"


def _reached(classes: list[ast.ClassDef], used: set[str]) -> set[str]:
    """The members that others read, which the core uses directly or through further members."""
    reads: dict[str, set[str]] = defaultdict(set)
    for method in (item for node in classes for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))):
        for part in ast.walk(method):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in {"self", "cls"}:
                reads[method.name].add(part.attr)
    found: set[str] = set()
    todo = list(used)
    while todo:
        new = reads[todo.pop()] - found
        found |= new
        todo += new
    return found


def _enum_names(node: ast.ClassDef) -> list[str]:
    names = []
    for item in node.body:
        target = item.targets[0] if isinstance(item, ast.Assign) else item.target if isinstance(item, ast.AnnAssign) else None
        if isinstance(target, ast.Name):
            names.append(target.id)
    return names


# -- who uses the current platform


def _uses(tree: SourceTree) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {"srt": defaultdict(list), "diffusion": defaultdict(list)}
    for file in tree.files:
        if file.content is None or b"current_platform" not in file.content or _is_test(file.path):
            continue
        try:
            module = ast.parse(file.content)
        except SyntaxError:
            continue
        reads = _Reads(_platform_names(module, file))
        reads.visit(module)
        for runtime, line, where, attribute in reads.found:
            found[runtime][attribute].append(f"{file.path.removeprefix('sglang/')}:{line} ({where or 'module level'})")
    return found


def _is_test(path: str) -> bool:
    return "/test/" in path or path.startswith("sglang/test")


def _platform_names(module: ast.Module, file: SourceFile) -> dict[str, str]:
    """The spellings under which a file reads the current platform, and of which runtime it is."""
    package = file.module if file.is_package else file.module.rpartition(".")[0]
    names: dict[str, str] = {"_resolve_current_platform()": "diffusion"} if file.module == _DIFFUSION_PLATFORMS else {}
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom):
            source = absolute(package, node.module, node.level)
            runtime = _runtime(source)
            for alias in node.names:
                if alias.name == "current_platform":
                    names[alias.asname or alias.name] = runtime
                elif alias.name == "platforms" and source.startswith("sglang"):
                    names[f"{alias.asname or alias.name}.current_platform"] = runtime
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("sglang.") and alias.name.endswith(".platforms"):
                    names[f"{alias.asname or alias.name}.current_platform"] = _runtime(alias.name)
    return names


def _runtime(module: str) -> str:
    return "diffusion" if module.startswith("sglang.multimodal_gen") else "srt"


class _Reads(ast.NodeVisitor):
    """Collects `PLATFORM.attribute`, `getattr(PLATFORM, "attribute")` and `hasattr(…)`, through local names for it too."""

    def __init__(self, names: dict[str, str]) -> None:
        self.scopes = [("", names)]
        self.found: list[tuple[str, int, str, str]] = []  # runtime, line, function, attribute

    def _enter(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        where, names = self.scopes[-1]
        self.scopes.append((f"{where}.{node.name}" if where else node.name, dict(names)))
        self.generic_visit(node)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _enter  # noqa: N815 - NodeVisitor's names

    def _runtime(self, node: ast.expr) -> str | None:
        name = dotted_name(node)
        if isinstance(node, ast.Call) and not node.args:
            name = f"{dotted_name(node.func)}()"
        return self.scopes[-1][1].get(name) if name else None

    def visit_Assign(self, node: ast.Assign) -> None:
        runtime = self._runtime(node.value)
        if runtime and isinstance(node.targets[0], ast.Name):
            self.scopes[-1][1][node.targets[0].id] = runtime
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._add(node.value, node, node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if dotted_name(node.func) in {"getattr", "hasattr"} and len(node.args) >= 2:
            attribute = node.args[1]
            if isinstance(attribute, ast.Constant) and isinstance(attribute.value, str):
                self._add(node.args[0], node, attribute.value)
        self.generic_visit(node)

    def _add(self, owner: ast.expr, node: ast.expr, attribute: str) -> None:
        runtime = self._runtime(owner)
        if runtime is not None:
            self.found.append((runtime, node.lineno, self.scopes[-1][0], attribute))


# -- selection chains


def _srt_chain(file: SourceFile | None) -> list[list[str]]:
    """The built-in fallbacks in order: `if _is_cuda_available(): return CudaSRTPlatform()`."""
    function = _function(file, "_resolve_platform")
    if function is None or file is None:
        return []
    imports = _imports(file)
    steps = []
    tests = (node for node in ast.walk(function) if isinstance(node, ast.If) and isinstance(node.test, ast.Call))
    for node in sorted(tests, key=lambda node: node.lineno):
        name = re.fullmatch(r"_is_(\w+)_available", dotted_name(node.test.func) or "")  # type: ignore[attr-defined]
        returned = next((part.value for part in node.body if isinstance(part, ast.Return)), None)
        if name and isinstance(returned, ast.Call):
            cls = dotted_name(returned.func) or "?"
            steps.append([name[1], imports.get(cls, cls)])
    return [*steps, ["", SRT_BASE]]


def _diffusion_chain(file: SourceFile | None) -> list[list[str]]:
    if file is None:
        return []
    module = ast.parse(file.content or b"")
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    classes = {name: _first_class(node) for name, node in functions.items() if name.endswith("_platform_plugin")}
    order: list[str] = []
    for name in ("resolve_current_platform_cls_qualname", "_select_current_platform"):
        if name in functions and not order:
            called = (node for node in ast.walk(functions[name]) if isinstance(node, ast.Name) and node.id in classes)
            order = list(dict.fromkeys(node.id for node in sorted(called, key=lambda node: (node.lineno, node.col_offset))))
    if not order:
        table = next(
            (node for node in module.body if isinstance(node, ast.Assign) and dotted_name(node.targets[0]) == "builtin_platform_plugins"),
            None,
        )
        values = table.value.values if table and isinstance(table.value, ast.Dict) else []
        order = [name for name in map(dotted_name, values) if name and name in classes]
    return [[name.removesuffix("_platform_plugin"), classes[name]] for name in order]


def _first_class(node: ast.FunctionDef) -> str:
    texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
    return next((text for text in texts if text.startswith("sglang.")), "?")


def _function(file: SourceFile | None, name: str) -> ast.FunctionDef | None:
    if file is None:
        return None
    return next((node for node in ast.parse(file.content or b"").body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _imports(file: SourceFile) -> dict[str, str]:
    package = file.module if file.is_package else file.module.rpartition(".")[0]
    nodes = (node for node in ast.walk(ast.parse(file.content or b"")) if isinstance(node, ast.ImportFrom))
    return {
        alias.asname or alias.name: f"{absolute(package, node.module, node.level)}.{alias.name}" for node in nodes for alias in node.names
    }
