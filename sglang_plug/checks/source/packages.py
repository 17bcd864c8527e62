"""The packages of a project that its build leaves out: setuptools' lists and finders, retraced on the source."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from sglang_plug.checks.source.found import found

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sglang_plug.checks.model import Finding
    from sglang_plug.checks.source.plugin import Plugin


def missing_packages(plugin: Plugin) -> Iterator[Finding]:
    """SP801: packages of the source that the build does not take along."""
    project, declared = plugin.project, plugin.project.declared
    if declared.packages is None or not (declared.backend.startswith("setuptools") or declared.source in {"setup.py", "setup.cfg"}):
        return
    how, options = declared.packages
    packages = {name.rpartition(".")[0] if not file.is_package else name for name, file in project.modules.items() if not file.is_test}
    present = {name for name in packages if name}
    taken = set(options) if how == "list" else _found_packages(project.root, options)
    wanted_tops = {name.partition(".")[0] for name in taken} | {
        _top(entry.value) for entry in declared.entries if entry.group.startswith("sglang.")
    }
    for name in sorted(present - taken):
        if name.partition(".")[0] not in wanted_tops or not _is_imported(plugin, name):
            continue
        why = "it is not in the list of packages" if how == "list" else _why_not_found(project.root, options, name)
        hint = f"add {name!r} to packages" if how == "list" else "add an __init__.py, or widen include"
        message = f"the package {name} is not part of the build: it works from the source and is missing from the wheel"
        yield found("SP801", declared.source, None, name, message, cause=why, hint=hint)


def _top(value: str) -> str:
    return value.partition(":")[0].strip().partition(".")[0]


def _found_packages(root: Path, options: dict[str, Any]) -> set[str]:
    """What setuptools' finder takes: folders with an `__init__.py` (namespaces: any) whose names match."""
    taken: set[str] = set()
    include, exclude = options.get("include") or ["*"], options.get("exclude") or []
    for where in options.get("where") or ["."]:
        base = root / where
        folders = {path.parent for path in base.rglob("*.py")} if base.is_dir() else set()
        for folder in folders:
            name = ".".join(folder.relative_to(base).parts)
            if not name or not all(part.isidentifier() for part in name.split(".")):
                continue
            chain = [base.joinpath(*name.split(".")[: index + 1]) for index in range(len(name.split(".")))]
            regular = all((place / "__init__.py").is_file() for place in chain)
            matched = any(fnmatchcase(name, pattern) for pattern in include) and not any(fnmatchcase(name, pattern) for pattern in exclude)
            if matched and (regular or options.get("namespaces")):
                taken.add(name)
    return taken


def _why_not_found(root: Path, options: dict[str, Any], name: str) -> str:
    include = options.get("include")
    if include and not any(fnmatchcase(name, pattern) for pattern in include):
        return f"include = {include} does not match it"
    if any(fnmatchcase(name, pattern) for pattern in options.get("exclude") or []):
        return f"exclude = {options['exclude']} matches it"
    return "it has no __init__.py, and the finder takes only folders that have one"


def _is_imported(plugin: Plugin, package: str) -> bool:
    """True where the plugin, or an entry point, needs something of a package."""
    if any(entry.value.startswith((f"{package}:", f"{package}.")) for entry in plugin.project.declared.entries):
        return True
    for file in plugin.project.files:
        if file.is_test or not file.module:
            continue
        facts = plugin.module(file.module)
        for item in facts.imports if facts else ():
            if item.dotted == package or item.dotted.startswith(f"{package}."):
                return True
    return False
